"""What `gateway tune` gains on requests that it did not see.

    python -m benchmarks.tuning --fit DIR --judge DIR --json

Both folders hold the same catalog. Without ``--judge`` every second request of ``--fit`` is judged,
and learned from is what is left. Nothing outside a temporary folder is written.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.data import Benchmark, Row, read
from benchmarks.metrics import gold_of
from benchmarks.ranking import opened
from benchmarks.tables import print_figures
from gateway import Embedder, Gateway
from gateway.errors import ConfigError
from gateway.plugins.local.embedder import LocalEmbedder
from gateway.plugins.quality import EvalRequest, RequestSet, Tuning, evaluate, freeze, tune, undo
from gateway.types import Filters

_SEED = 7


async def measure(
    benchmark: Benchmark, fit: Sequence[Row], judged: Sequence[Row], embedder: Embedder
) -> tuple[float, float, Tuning]:
    """Return recall@5 of *judged* before and after tuning on *fit*, in percent, and the tuning."""
    async with opened(benchmark, strategy="auto", edges="none", embedder=embedder) as gateway:
        known = {tool: key for key, tool in benchmark.tool_ids.items()}
        before = await _recall(gateway, judged, known)
        tuning = await tune(gateway, RequestSet(requests=tuple(_requests(fit, known))))
        after = await _recall(gateway, judged, known) if tuning.kept else before
        await undo(gateway, tuning)
    return before, after, tuning


async def _recall(gateway: Gateway, rows: Sequence[Row], known: dict[str, str]) -> float:
    requests = RequestSet(requests=tuple(_requests(rows, known)))
    frozen = freeze(requests.requests, await gateway.snapshot(vectors=True), Filters())
    return 100 * (await evaluate(gateway, frozen)).summary.figures["recall@5"]


def _requests(rows: Iterable[Row], known: dict[str, str]) -> Iterable[EvalRequest]:
    for row in rows:
        wanted = (tuple(sorted(known[tool] for tool in group)) for group in gold_of(row))
        yield EvalRequest(text=str(row["query"]), wanted=tuple(wanted))


def main(
    fit: Annotated[Path, typer.Option(help="Learned from.")],
    judge: Annotated[Path | None, typer.Option(help="Judged; the same catalog.")] = None,
    limit: Annotated[int, typer.Option(help="Learn from so many requests; 0 is all.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Tune on some requests of a catalog, and judge others."""
    embedder = LocalEmbedder()
    learned = read(fit)
    rows = [row for row in learned.queries if gold_of(row)]
    random.Random(_SEED).shuffle(rows)
    if judge is None:
        rows, judged = rows[::2], rows[1::2]
    else:
        other = read(judge)
        if other.tool_ids != learned.tool_ids:
            raise ConfigError(f"{fit.name} and {judge.name} have not the same catalog")
        judged = [row for row in other.queries if gold_of(row)]
    before, after, tuning = asyncio.run(measure(learned, rows[: limit or None], judged, embedder))
    figures = {
        "requests": tuning.requests,
        "judged": len(judged),
        "before": round(before, 1),
        "after": round(after, 1),
        "kept": tuning.kept,
        "reason": tuning.reason,
    }
    print_figures(figures, as_json=as_json)


if __name__ == "__main__":
    typer.run(main)
