"""What is learned of the order of calls: half of the tasks are replayed, the other half judged.

    python -m benchmarks.usage --data DIR --data DIR --json

Through the public API: the gold sequences of one half go into the ledger of calls, then next steps
are asked for after each call of the other half, with the task's own text. Which half a task belongs
to is told by the hash of its id; each half is judged once. The same calls in a shuffled order must
change nothing.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from rich.progress import track

from benchmarks.data import Benchmark, Row, read, sources
from benchmarks.metrics import STEPS, strings
from benchmarks.tables import percents, print_table
from gateway import Embedder, Gateway, Options
from gateway.options import CacheOptions, UsageOptions
from gateway.options.search import Learn
from gateway.plugins.usage.call_log import CallNote
from gateway.testing import ManualClock

HISTORIES = ("base", "replayed", "shuffled")
_SEED = 7
_LATER_S = 61.0
_CACHE = CacheOptions(embedding_items=100_000, embedding_ttl_s=1e9)

app = typer.Typer(add_completion=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One call that came after others."""

    query: str
    used: tuple[str, ...]
    """Ids of the tools before it, each once."""
    after: frozenset[str]
    """All gold tools behind them."""
    gold: str
    """The one that was called next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Half:
    """The steps of one half of a set's tasks, and what was suggested for each, by history."""

    set: str
    judged: str
    steps: Sequence[Step]
    suggested: Mapping[str, Sequence[frozenset[str]]]

    def misses(self, history: str, *, first: bool) -> int:
        """Count the steps whose gold is not among five, of first steps or of all."""
        pairs = zip(self.steps, self.suggested[history], strict=True)
        return sum(step.gold not in ids for step, ids in pairs if _counts(step, first=first))

    def count(self, *, first: bool) -> int:
        """Count the steps."""
        return sum(_counts(step, first=first) for step in self.steps)

    def recall(self, history: str) -> float:
        """Return the share of all later gold tools that are suggested after a first step; mean."""
        pairs = zip(self.steps, self.suggested[history], strict=True)
        shares = [len(step.after & ids) / len(step.after) for step, ids in pairs
                  if _counts(step, first=True)]  # fmt: skip
        return fmean(shares) if shares else 0.0


def _counts(step: Step, *, first: bool) -> bool:
    return not first or len(step.used) == 1


@app.command()
def main(
    *,
    data: Annotated[list[Path], typer.Option(help="Folders in the common format.")],
    learn: Annotated[str, typer.Option(help="on, or auto: where the gain is measured.")] = "on",
    as_json: Annotated[bool, typer.Option("--json", help="Print every digit.")] = False,
) -> None:
    """Measure next steps on folders whose queries have sequences."""
    found = measure(data, learn="auto" if learn == "auto" else "on")
    if as_json:
        print(json.dumps(found, indent=2))
        return
    print_table(
        "hit@5 of next steps, in percent",
        [
            {"set": half["set"], "judged": half["judged"], "steps": half[kind]["steps"],
             "of them": kind, **percents(half[kind], (*HISTORIES, "misses_fall"))}
            for half in found["halves"]
            for kind in ("first", "all")
        ],
    )  # fmt: skip


def measure(
    folders: Sequence[Path], *, learn: Learn = "on", embedder: Embedder | Literal["local"] = "local"
) -> dict[str, Any]:
    """Measure next steps on *folders*, and on all of them together.

    Args:
        folders: In the common format; queries without a ``sequence`` are passed over.
        learn: ``on`` where a history is believed, or ``auto`` where its gain is measured besides.
        embedder: Whose vectors are compared.

    Returns:
        ``misses_fall``: the share of misses of next-step hit@5 that a replayed history takes away,
        after the first call of each judged task; ``misses_fall_all``: the same of every call that
        came after another; ``shuffled_loses``: the most that hit@5 or recall@5 of any half loses
        by a shuffled history, in points of 100; and each half.
    """
    halves = [
        half for folder in folders for half in asyncio.run(_measured(read(folder), learn, embedder))
    ]
    return {
        "misses_fall": _fall(halves, first=True),
        "misses_fall_all": _fall(halves, first=False),
        "shuffled_loses": max((_lost(half) for half in halves), default=0.0),
        "halves": [
            {
                "set": half.set,
                "judged": half.judged,
                "rec@5": {name: half.recall(name) for name in HISTORIES},
                "first": _figures(half, first=True),
                "all": _figures(half, first=False),
            }
            for half in halves
        ],
    }


def _figures(half: Half, *, first: bool) -> dict[str, float]:
    count = half.count(first=first)
    hits = {name: 1 - half.misses(name, first=first) / max(count, 1) for name in HISTORIES}
    return {"steps": count, **hits, "misses_fall": _fall([half], first=first)}


def _fall(halves: Sequence[Half], *, first: bool) -> float:
    base, replayed = (
        sum(half.misses(name, first=first) for half in halves) for name in HISTORIES[:2]
    )
    return 1 - replayed / base if base else 0.0


def _lost(half: Half) -> float:
    losses = [
        (half.misses("shuffled", first=first) - half.misses("base", first=first))
        / max(half.count(first=first), 1)
        for first in (False, True)
    ]
    return 100 * max(*losses, half.recall("base") - half.recall("shuffled"))


async def _measured(
    benchmark: Benchmark, learn: Learn, embedder: Embedder | Literal["local"]
) -> list[Half]:
    clock = ManualClock()
    with tempfile.TemporaryDirectory() as folder:
        options = Options(
            catalog_store_path=Path(folder) / "catalog.sqlite3",
            cache=_CACHE,
            usage=UsageOptions(learn=learn),
        )
        async with Gateway(
            strategy="auto", embedder=embedder, options=options, clock=clock
        ) as gateway:
            for source in sources(benchmark):
                gateway.add_source(source)
            return [
                await _half(gateway, benchmark, clock, judge_even=even) for even in (False, True)
            ]


async def _half(
    gateway: Gateway, benchmark: Benchmark, clock: ManualClock, *, judge_even: bool
) -> Half:
    """Judge one half by the other, without a history and with either."""
    halves: dict[bool, list[Row]] = {False: [], True: []}
    for query in benchmark.queries:
        halves[_even(str(query["id"]))].append(query)
    past = [_tools(benchmark, query) for query in halves[not judge_even]]
    steps = [step for query in halves[judge_even] for step in _steps(benchmark, query)]
    name = "even" if judge_even else "odd"
    suggested: dict[str, list[frozenset[str]]] = {}
    for history, tasks in zip(HISTORIES, ([], past, shuffled(past)), strict=True):
        await _remember(gateway, clock, tasks)
        about = f"{benchmark.name} {name} {history}"
        suggested[history] = await _suggest(
            gateway, track(steps, about, console=Console(stderr=True))
        )
    return Half(set=benchmark.name, judged=name, steps=steps, suggested=suggested)


async def _remember(gateway: Gateway, clock: ManualClock, tasks: Sequence[Sequence[str]]) -> None:
    """Put *tasks* in the place of whatever the ledger held, and let the gateway read it."""
    ledger = gateway.usage.call_log
    ledger.forget()
    for number, tools in enumerate(tasks):
        for tool in tools:
            ledger.note(CallNote(tool=tool, outcome="ok", task=str(number)))
    snapshot = await gateway.snapshot(vectors=True)
    for _ in range(2):
        clock.tick(_LATER_S)
        await gateway.usage.signals(snapshot)
        await gateway.usage.measured_gains()


async def _suggest(gateway: Gateway, steps: Iterable[Step]) -> list[frozenset[str]]:
    found = []
    for step in steps:
        nexts = await gateway.next_steps(step.used, query=step.query, limit=STEPS)
        found.append(frozenset(match.id for match in nexts))
    return found


def shuffled(tasks: Sequence[Sequence[str]]) -> list[list[str]]:
    """Deal the calls of *tasks* out anew, always in the same way; each task keeps its length."""
    calls = [call for task in tasks for call in task]
    random.Random(_SEED).shuffle(calls)
    rest = iter(calls)
    return [[next(rest) for _ in task] for task in tasks]


def _tools(benchmark: Benchmark, query: Row) -> list[str]:
    known = benchmark.entity_ids
    return [known[each] for each in strings(query.get("sequence")) if each in known]


def _steps(benchmark: Benchmark, query: Row) -> Iterator[Step]:
    tools = list(dict.fromkeys(_tools(benchmark, query)))
    for at in range(1, len(tools)):
        yield Step(
            query=str(query["query"]),
            used=tuple(tools[:at]),
            after=frozenset(tools[at:]),
            gold=tools[at],
        )


def _even(key: str) -> bool:
    return hashlib.sha256(key.encode()).digest()[0] % 2 == 0


if __name__ == "__main__":
    app()
