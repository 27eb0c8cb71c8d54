"""What one search costs beside the bare arithmetic of its vectors, in one run.

    python -m benchmarks.latency --tools 1000,10000,100000 --json

* Through `Gateway.search`, result objects and no-op spans included; each query's vector is already
  in the cache of query vectors, so that no model is in the figures. Results are not remembered.
* Process CPU of all threads, medians; after each search the kernel runs on the same vector:
  float32 ``dot(out=)`` and ``argpartition`` on one BLAS thread. Stages are told in wall time.
"""

from __future__ import annotations

import asyncio
import gc
import json
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray
from opentelemetry.trace import (
    INVALID_SPAN,
    NoOpTracer,
    NoOpTracerProvider,
    Span,
    Tracer,
    TracerProvider,
)
from rich.console import Console
from threadpoolctl import threadpool_limits

from benchmarks.lifelike import NumberedEmbedder, near, question, servers, vectors
from benchmarks.tables import print_table
from gateway import Gateway, Options
from gateway.embed.cache import MemoryVectorStore
from gateway.options import CacheOptions
from gateway.plugins.spelling.corrector import SpellingCorrector
from gateway.plugins.spelling.word_lists import find_word_lists
from gateway.runtime.vectors import Matrix, Vector
from gateway.types import Strategy

GOALS: Mapping[Strategy, Mapping[int, float]] = {
    "embeddings": {1_000: 4.0, 10_000: 0.6, 100_000: 0.1},
    "auto": {1_000: 10.0, 10_000: 2.0, 100_000: 0.5},
}
"""At most so many times the kernel's cost, by the number of tools."""
CACHED_GOAL_US = 30.0
SPANS_GOAL = 8
_TOP = 10
"""How many matches are asked for, and of how many recall is measured."""
_WARMING = 20
_REPEATS = 20
"""How often a remembered search is repeated between two looks at the clock."""
_DAY_S = 24 * 3600.0

app = typer.Typer(add_completion=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A catalog's vectors and the questions that are asked of it."""

    rows: Matrix
    texts: Sequence[str]
    queries: Matrix
    """One unit row a text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What one strategy costs, in microseconds of process CPU."""

    cpu_us: float
    numpy_cpu_us: float
    """The kernel on the same vectors, between the searches."""
    recall: float
    """Share of the exact ten nearest among the ten matches; `auto` reorders them by words."""
    answered: float
    """The same of the requests that were answered: what the scan finds."""
    emptied: float
    """Share of the other requests, whose matches were taken for nothing that serves them."""
    stages_us: Mapping[str, float]

    @property
    def ratio(self) -> float:
        """How many times the kernel a search costs."""
        return self.cpu_us / self.numpy_cpu_us


@app.command()
def main(
    *,
    tools: Annotated[str, typer.Option(help="Sizes of the catalogs.")] = "1000,10000,100000",
    as_json: Annotated[bool, typer.Option("--json", help="Print every digit.")] = False,
    dimensions: Annotated[int, typer.Option(help="Of the vectors; the local model's.")] = 1280,
    queries: Annotated[int, typer.Option(help="Questions, each asked once.")] = 200,
) -> None:
    """Measure searches of each size, then a repeated one."""
    sizes = [int(size) for size in tools.split(",")]
    results: dict[str, dict[Strategy, Cost]] = {}
    with threadpool_limits(1):
        for size in sizes:
            about = workload(size, dimensions, queries)
            results[str(size)] = {strategy: _searched(strategy, about) for strategy in GOALS}
        again = asyncio.run(repeating(workload(min(sizes), dimensions, queries)))
    if as_json:
        figures = {size: _figures(costs) for size, costs in results.items()}
        shape = {"dimensions": dimensions, "queries": queries, "limit": _TOP}
        print(json.dumps({"tools": figures, **again, **shape}, indent=2))
    else:
        _print(results, again)


def workload(tools: int, dimensions: int, queries: int) -> Workload:
    """Make vectors and questions; each question is about one tool, spread over the catalog."""
    rows = vectors(tools, dimensions)
    about = (np.arange(queries) * 7919 + 13) % tools
    return Workload(
        rows=rows, texts=[question(int(number)) for number in about], queries=near(rows[about])
    )


async def searching(strategy: Strategy, about: Workload) -> Cost:
    """Search for every question, the kernel after each search."""
    ours: list[int] = []
    theirs: list[int] = []
    shares: list[float] = []
    emptied = 0
    spent: defaultdict[str, list[float]] = defaultdict(list)
    async with _gateway(strategy, about) as gateway:
        # However busy the machine is: a search would wait for the vectors no longer than it may.
        await gateway.report()
        snapshot = await gateway.snapshot(vectors=True)
        if snapshot.vectors is None:
            raise RuntimeError("the catalog was indexed without vectors")
        rows = snapshot.vectors.rows(np.arange(len(snapshot.entities)))
        out = np.empty(len(rows), dtype=np.float32)
        await _remember(gateway, about)
        for text in about.texts[:_WARMING]:
            await gateway.search(text, limit=_TOP)
        for text, query in zip(about.texts, about.queries, strict=True):
            began = time.process_time_ns()
            result = await gateway.search(text, limit=_TOP)
            ours.append(time.process_time_ns() - began)
            began = time.process_time_ns()
            nearest = kernel(rows, query, out)
            theirs.append(time.process_time_ns() - began)
            exact = {snapshot.entities[spot].id for spot in nearest.tolist()}
            shares.append(len(exact & {match.id for match in result.matches}) / len(exact))
            emptied += not result.matches
            for stage, seconds in result.stages.items():
                spent[stage].append(seconds * 1e6)
    return Cost(
        cpu_us=median(ours) / 1000,
        numpy_cpu_us=median(theirs) / 1000,
        recall=fmean(shares),
        answered=sum(shares) / max(len(shares) - emptied, 1),
        emptied=emptied / len(shares),
        stages_us={stage: median(found) for stage, found in spent.items()},
    )


def kernel(rows: Matrix, query: Vector, out: Vector) -> NDArray[np.intp]:
    """Find the nearest rows, as cheaply as numpy can."""
    np.dot(rows, query, out=out)
    return np.argpartition(out, -_TOP)[-_TOP:]


async def repeating(about: Workload) -> Mapping[str, float]:
    """Measure a search that was asked before, and count the spans of one that was not."""
    provider = CountingProvider()
    spent: list[float] = []
    async with _gateway("auto", about, remember=True, spans=provider) as gateway:
        await gateway.report()
        await _remember(gateway, about)
        before = provider.tracer.started
        for text in about.texts:
            await gateway.search(text)
        spans = (provider.tracer.started - before) / len(about.texts)
        for text in about.texts:
            began = time.process_time_ns()
            for _ in range(_REPEATS):
                await gateway.search(text)
            spent.append((time.process_time_ns() - began) / _REPEATS)
    return {"cached_us": median(spent) / 1000, "spans": spans}


class CountingProvider(NoOpTracerProvider):
    """Gives spans that do nothing, and counts them."""

    def __init__(self) -> None:
        self.tracer = _CountingTracer()

    def get_tracer(self, *_: object, **__: object) -> Tracer:
        """Return the one tracer."""
        return self.tracer


class _CountingTracer(NoOpTracer):
    started = 0

    def start_span(self, *_: object, **__: object) -> Span:
        self.started += 1
        return INVALID_SPAN


def _gateway(
    strategy: Strategy,
    about: Workload,
    *,
    remember: bool = False,
    spans: TracerProvider | None = None,
) -> Gateway:
    count = len(about.texts)
    caches = CacheOptions(
        result_items=count * remember, embedding_items=2 * count, embedding_ttl_s=_DAY_S
    )
    console = Console(stderr=True)
    gateway = Gateway(
        strategy=strategy,
        embedder=NumberedEmbedder(about.rows),
        options=Options(cache=caches),
        vector_store=MemoryVectorStore(),
        tracer_provider=spans,
        progress=lambda stage, done, total: console.print(
            f"{strategy}, {len(about.rows):,} tools: {stage} {done:,} of {total:,}", end="\r"
        ),
    )
    for source in servers(len(about.rows)):
        gateway.add_source(source)
    return gateway


async def _remember(gateway: Gateway, about: Workload) -> None:
    """Put the vectors of the questions where they are after having been asked for once.

    A misspelt question is asked in its mended form too, and means the same.
    """
    snapshot, mend = await gateway.snapshot(vectors=True), SpellingCorrector(find_word_lists())
    for text, row in zip(about.texts, about.queries, strict=True):
        for form in (text, mend(snapshot.lexical, text).text):
            gateway.caches.embeddings.put((NumberedEmbedder.MODEL_ID, form), row)


def _searched(strategy: Strategy, about: Workload) -> Cost:
    cost = asyncio.run(searching(strategy, about))
    gc.collect()
    return cost


def _figures(costs: Mapping[Strategy, Cost]) -> Mapping[str, object]:
    rows: dict[str, object] = {strategy: _row(strategy, cost) for strategy, cost in costs.items()}
    return rows | {"numpy_cpu_us": median(cost.numpy_cpu_us for cost in costs.values())}


def _row(strategy: Strategy, cost: Cost) -> Mapping[str, object]:
    row: dict[str, object] = {
        "cpu_us": cost.cpu_us,
        "ratio_to_numpy": cost.ratio,
        "stages_us": cost.stages_us,
        "emptied": cost.emptied,
    }
    if strategy == "embeddings":
        row |= {"recall_at_10": cost.recall, "recall_at_10_answered": cost.answered}
    return row


def _print(results: Mapping[str, Mapping[Strategy, Cost]], again: Mapping[str, float]) -> None:
    lines = [
        {
            "tools": int(size),
            "strategy": strategy,
            "µs": round(cost.cpu_us),
            "numpy µs": round(cost.numpy_cpu_us),
            "ratio": cost.ratio,
            "goal": GOALS[strategy].get(int(size)),
            "recall@10": cost.recall,
            "stages, µs": ", ".join(f"{name} {us:.0f}" for name, us in cost.stages_us.items()),
        }
        for size, costs in results.items()
        for strategy, cost in costs.items()
    ]
    print_table("searches", lines)
    print(f"from the cache: {again['cached_us']:.1f} µs (goal ≤ {CACHED_GOAL_US:.0f})")
    print(f"no-op spans of a search: {again['spans']:.1f} (goal ≤ {SPANS_GOAL})")


if __name__ == "__main__":
    app()
