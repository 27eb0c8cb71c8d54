"""What the graph brings, and what it costs.

    python -m benchmarks.graph --data DIR
    python -m benchmarks.graph --costs-only --json

Quality is measured on a folder in the common format, costs on synthetic data. Progress goes to
standard error, so that the output can be kept.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, get_args

import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks import costs, quality
from benchmarks.costs import Cost, Sizes
from benchmarks.data import read
from benchmarks.metrics import COLUMNS
from benchmarks.quality import Judged, Row
from benchmarks.retrieval import one_of, percents
from gateway.types import Strategy

NEXT = ("next_hit@5", "next_rec@5")
_WIDE = 180
"""Columns of a table that goes into a file."""

app = typer.Typer(add_completion=False)


@app.command()
def main(  # noqa: PLR0913  (the options of a command)
    *,
    data: Annotated[Path | None, typer.Option(help="A folder in the common format.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print every digit.")] = False,
    costs_only: Annotated[bool, typer.Option("--costs-only", help="No folder is read.")] = False,
    quality_only: Annotated[bool, typer.Option("--quality-only", help="Skip the costs.")] = False,
    strategies: Annotated[str, typer.Option(help="With commas between.")] = "auto,graph",
    limit_queries: Annotated[int, typer.Option(help="A fixed sample of so many.")] = 0,
    documents: Annotated[int, typer.Option(help="Documents that are searched.")] = 10_000,
    tools: Annotated[str, typer.Option(help="Sizes of the two builds.")] = "1000,10000",
    small: Annotated[int, typer.Option(help="Tools that are searched whole.")] = 120,
    repeats: Annotated[int, typer.Option(help="Measurements a figure, its median counts.")] = 5,
    batch: Annotated[int, typer.Option(help="Searches that are timed as one.")] = 50,
) -> None:
    """Measure quality on a folder, and costs in this process."""
    if costs_only and quality_only:
        raise typer.BadParameter("--costs-only and --quality-only exclude each other")
    if data is None and not costs_only:
        raise typer.BadParameter("--data is needed, or --costs-only")
    told: dict[str, object] = {}
    if data is not None and not costs_only:
        told["quality"] = _quality(data, strategies, limit_queries, quiet=as_json)
    if not quality_only:
        few, _, many = tools.partition(",")
        sizes = Sizes(
            documents=documents,
            few=int(few),
            many=int(many or few),
            small=small,
            repeats=repeats,
            batch=batch,
        )
        told["costs"] = _costs(sizes, quiet=as_json)
    if as_json:
        print(json.dumps(told, indent=2, ensure_ascii=False))


def _quality(data: Path, strategies: str, limit: int, *, quiet: bool) -> dict[str, object]:
    known: tuple[Strategy, ...] = get_args(Strategy)
    chosen = [one_of(name.strip(), known) for name in strategies.split(",")]
    benchmark = read(data, limit=limit)
    rows = list(quality.table(benchmark, chosen))
    goals = quality.judged(benchmark.name, rows)
    lost = quality.losing(rows)
    if not quiet:
        title = f"{benchmark.name}: {len(benchmark.tools)} tools, {len(benchmark.queries)} queries"
        _print(_quality_table(title, rows, lost))
        if goals:
            _print(_goal_table(goals))
    return {
        "set": benchmark.name,
        "tools": len(benchmark.tools),
        "queries": len(benchmark.queries),
        "rows": [_row(row, loss) for row, loss in zip(rows, lost, strict=True)],
        "goals": [_goal(each) for each in goals],
    }


def _row(row: Row, loss: str) -> dict[str, object]:
    return {
        "strategy": row.strategy,
        "edges": row.edges,
        "view": row.view,
        **row.figures,
        **row.next_figures,
        "direct": row.direct,
        "loses": loss,
    }


def _goal(each: Judged) -> dict[str, object]:
    goal = each.goal
    return {
        "figure": goal.figure,
        "edges": goal.edges,
        "view": goal.view,
        "reached": each.reached,
        "target": goal.least,
        "met": each.met,
    }


def _quality_table(title: str, rows: Sequence[Row], lost: Sequence[str]) -> Table:
    table = Table(title=title)
    for name in ("strategy", "edges", "view"):
        table.add_column(name)
    for name in (*COLUMNS, *NEXT, "direct"):
        table.add_column(name.replace("recall", "r").replace("next_", "next "), justify="right")
    table.add_column("loses")
    for row, loss in zip(rows, lost, strict=True):
        direct = "-" if row.direct is None else f"{100 * row.direct:.1f}"
        table.add_row(
            row.strategy,
            row.edges,
            row.view,
            *percents(row.figures, COLUMNS),
            *percents(row.next_figures, NEXT),
            direct,
            loss,
        )
    return table


def _goal_table(goals: Sequence[Judged]) -> Table:
    table = Table("figure", "edges", "view", "reached", "target", "", title="strategy auto")
    for each in goals:
        goal = each.goal
        table.add_row(
            goal.figure,
            goal.edges,
            goal.view,
            f"{100 * each.reached:.1f}",
            f"≥ {100 * goal.least:.1f}",
            _verdict(met=each.met),
        )
    return table


def _costs(sizes: Sizes, *, quiet: bool) -> list[dict[str, object]]:
    console = Console(stderr=True)
    measured = costs.measure(sizes)
    found = list(track(measured, "costs", total=costs.COUNT, console=console, transient=True))
    if not quiet:
        table = Table("cost", "measured", "target", "", "ms of CPU", title="costs")
        for cost in found:
            parts = ", ".join(f"{name} {value:.3g}" for name, value in cost.parts.items())
            said = _said(cost, cost.value), f"≤ {_said(cost, cost.target)}"
            table.add_row(cost.name, *said, _verdict(met=cost.met), parts)
        _print(table)
    return [
        {
            "name": cost.name,
            "value": cost.value,
            "target": cost.target,
            "unit": cost.unit,
            "met": cost.met,
            **cost.parts,
        }
        for cost in found
    ]


def _said(cost: Cost, value: float) -> str:
    if cost.unit == "ms":
        return f"{value:.2f} ms"
    return f"1/{1 / value:.0f}" if 0 < value < 0.5 else f"{value:.2f} x"


def _verdict(*, met: bool) -> str:
    return "met" if met else "MISSED"


def _print(table: Table) -> None:
    console = Console()
    (console if console.is_terminal else Console(width=_WIDE)).print(table)


if __name__ == "__main__":
    app()
