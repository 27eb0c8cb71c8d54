"""What strangers in the catalog do to a ranking.

    python -m benchmarks.robustness --data DIR --distractors FILE --json

* Distractors: honest tools of another catalog. Recall@5 may fall a little.
* Stuffing: servers whose tools want to be used for everything, one style after the other. They
  serve none of the queries, so none of them belongs among the first five.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.data import Benchmark, read
from benchmarks.metrics import gold_of, summary
from benchmarks.ranking import STRATEGIES, Answered, Way, asked, rank
from benchmarks.retrieval import one_of
from benchmarks.stuffing import SERVER, STYLES, Style, stuffed
from gateway import Embedder

MAX_LOST = 0.015
"""Recall@5 that distractors may cost."""
MAX_SEEN = 0.02
"""Share of the queries that may see a stuffed tool among the first five."""
_TOP = 5
_WIDE = 150
"""Columns of a table that goes into a file."""

app = typer.Typer(add_completion=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Robust:
    """One set, alone and with strangers. Figures are shares of 1."""

    name: str
    tools: int
    queries: int
    recall: float
    """Recall@5 of the set's catalog alone."""
    distractors: int
    """How many tools were added; 0 without a catalog of distractors."""
    distracted: float
    """Recall@5 with them."""
    stuffed: float
    """Recall@5 with a stuffed server, the least of all styles."""
    styles: Mapping[str, float]
    """By style, the share of the queries with a stuffed tool among the first five."""

    @property
    def seen(self) -> float:
        """The worst of them; 0 without any."""
        return max(self.styles.values(), default=0.0)

    @property
    def lost(self) -> float:
        """Recall@5 that the distractors cost."""
        return self.recall - self.distracted

    @property
    def met(self) -> bool:
        """Whether both goals are reached."""
        return self.lost <= MAX_LOST and self.seen <= MAX_SEEN


async def measure(
    folder: Path,
    *,
    distractors: Sequence[Path],
    strategy: Way,
    limit: int = 0,
    styles: Sequence[Style] = STYLES,
    embedder: Embedder | Literal["local"] = "local",
) -> Robust:
    """Search one set alone, with *distractors*, and with a stuffed server of each style."""

    async def ranked(benchmark: Benchmark) -> list[Answered]:
        texts = asked(benchmark)
        return await rank(benchmark, texts, strategy=strategy, edges="derived", embedder=embedder)

    alone = read(folder, limit=limit)
    more = read(folder, extra=distractors, limit=limit)
    base = _recall(alone, await ranked(alone))
    distracted = _recall(more, await ranked(more)) if distractors else base
    seen: dict[str, float] = {}
    least = base
    for style in styles:
        tools = stuffed(style, alone.tools)
        with tempfile.TemporaryDirectory() as beside:
            path = Path(beside) / f"{SERVER}.jsonl"
            path.write_text("".join(f"{json.dumps(tool)}\n" for tool in tools), encoding="utf-8")
            crowded = read(folder, extra=[path], limit=limit)
        answers = await ranked(crowded)
        strangers = frozenset(str(tool["id"]) for tool in tools)
        met = [not strangers.isdisjoint(each.matches[:_TOP]) for each in answers]
        seen[style] = sum(met) / len(met)
        least = min(least, _recall(crowded, answers))
    return Robust(
        name=alone.name,
        tools=len(alone.tools),
        queries=sum(bool(gold_of(query)) for query in alone.queries),
        recall=base,
        distractors=len(more.tools) - len(alone.tools),
        distracted=distracted,
        stuffed=least,
        styles=seen,
    )


def _recall(benchmark: Benchmark, answers: Sequence[Answered]) -> float:
    lines = [each.line("matches") for each in answers]
    return summary(benchmark.queries, lines).figures[f"recall@{_TOP}"]


@app.command()
def main(
    *,
    data: Annotated[list[Path], typer.Option(help="A folder; may be repeated.")],
    distractors: Annotated[
        list[Path] | None, typer.Option(help="A catalog of other tools; may be repeated.")
    ] = None,
    strategy: Annotated[str, typer.Option(help="auto, graph or embeddings.")] = "auto",
    limit_queries: Annotated[int, typer.Option(help="A fixed sample of so many a set.")] = 0,
    style: Annotated[
        list[str] | None, typer.Option(help="A style of stuffing; may be repeated. All by default.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print every digit.")] = False,
) -> None:
    """Add distractors, then servers that stuff their descriptions, to each catalog."""
    way: Way = one_of(strategy, STRATEGIES)
    wanted: list[Style] = [one_of(each, STYLES) for each in style or STYLES]
    found = [
        asyncio.run(
            measure(
                each,
                distractors=distractors or [],
                strategy=way,
                limit=limit_queries,
                styles=wanted,
            )
        )
        for each in data
    ]
    if as_json:
        sets = [
            {**asdict(each), "lost": each.lost, "seen": each.seen, "met": each.met}
            for each in found
        ]
        goals = {"lost": MAX_LOST, "seen": MAX_SEEN}
        print(json.dumps({"strategy": way, "goals": goals, "sets": sets}, indent=2))
        return
    console = Console()
    (console if console.is_terminal else Console(width=_WIDE)).print(_table(found))


def _table(found: Sequence[Robust]) -> Table:
    table = Table("set", title="strangers: recall@5, and queries that see a stuffed tool")
    styles = [style for style in STYLES if any(style in each.styles for each in found)]
    for name in ("tools", "alone", "distractors", "with them", "lost", "stuffed", *styles):
        table.add_column(name, justify="right")
    table.add_column("")
    for each in found:
        figures = (
            each.distracted,
            each.lost,
            each.stuffed,
            *(each.styles[style] for style in styles),
        )
        table.add_row(
            each.name,
            f"{each.tools:,}",
            f"{100 * each.recall:.1f}",
            f"{each.distractors:,}",
            *(f"{100 * figure:.1f}" for figure in figures),
            "met" if each.met else "MISSED",
        )
    return table


if __name__ == "__main__":
    app()
