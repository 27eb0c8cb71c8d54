"""What the graph brings, and what it costs.

    python -m benchmarks.graph --data DIR
    python -m benchmarks.graph --costs-only --json
    python -m benchmarks.graph --data DIR --small-catalogs

Quality is measured on a folder in the common format, costs on synthetic data. Progress goes to
standard error, so that the output can be kept.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, get_args

import typer
from rich.console import Console
from rich.progress import track

from benchmarks import costs, quality, supplements
from benchmarks.costs import Sizes
from benchmarks.data import read
from benchmarks.metrics import COLUMNS
from benchmarks.recalled import Recalled
from benchmarks.retrieval import one_of
from benchmarks.tables import percents, print_table
from gateway import LocalEmbedder
from gateway.types import Strategy

_FIGURES = (*COLUMNS, "next_hit@5", "next_rec@5", "direct")

app = typer.Typer(add_completion=False)


@app.command()
def main(
    *,
    data: Annotated[Path | None, typer.Option(help="A folder in the common format.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print every digit.")] = False,
    costs_only: Annotated[bool, typer.Option("--costs-only", help="No folder is read.")] = False,
    quality_only: Annotated[bool, typer.Option("--quality-only", help="Skip the costs.")] = False,
    small_only: Annotated[
        bool, typer.Option("--small-catalogs", help="Of 30 tools, alone.")
    ] = False,
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
    if data is not None and small_only:
        _small(data, strategies, as_json=as_json)
        return
    figures: dict[str, object] = {}
    if data is not None and not costs_only:
        figures["quality"] = _quality(data, strategies, limit_queries, quiet=as_json)
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
        figures["costs"] = _costs(sizes, quiet=as_json)
    if as_json:
        print(json.dumps(figures, indent=2, ensure_ascii=False))


def _quality(data: Path, strategies: str, limit: int, *, quiet: bool) -> dict[str, object]:
    known: tuple[Strategy, ...] = get_args(Strategy)
    chosen = [one_of(name.strip(), known) for name in strategies.split(",")]
    benchmark = read(data, limit=limit)
    rows = list(quality.table(benchmark, chosen))
    goals = quality.goals(benchmark.name, rows)
    losses = quality.losses(rows)
    heads = [{"strategy": row.strategy, "edges": row.edges, "view": row.view} for row in rows]
    if not quiet:
        title = f"{benchmark.name}: {len(benchmark.tools)} tools, {len(benchmark.queries)} queries"
        lines = [
            {**head, **percents(row.figures, _FIGURES), "loses": loss}
            for head, row, loss in zip(heads, rows, losses, strict=True)
        ]
        print_table(title, lines)
        if goals:
            print_table("strategy auto", goals)
    return {
        "set": benchmark.name,
        "tools": len(benchmark.tools),
        "queries": len(benchmark.queries),
        "rows": [
            {**head, **row.figures, "loses": loss}
            for head, row, loss in zip(heads, rows, losses, strict=True)
        ],
        "goals": goals,
    }


def _small(data: Path, strategies: str, *, as_json: bool) -> None:
    """Measure what the graph adds in small catalogs; see `benchmarks.supplements`."""
    benchmark = read(data)
    known: tuple[Strategy, ...] = get_args(Strategy)
    chosen = [one_of(name.strip(), known) for name in strategies.split(",")]
    embedder = Recalled(LocalEmbedder()) if set(chosen) - {"graph"} else None
    found = [
        {"strategy": way, **asdict(asyncio.run(supplements.measure(
            benchmark, strategy=way, embedder=embedder, declared=declared
        )))}
        for way in chosen
        for declared in (False, True)
    ]  # fmt: skip
    if as_json:
        print(json.dumps({"set": benchmark.name, "small": found}, indent=2, ensure_ascii=False))
    else:
        print_table(f"{benchmark.name}: catalogs of {supplements.SIZE} tools", found)


def _costs(sizes: Sizes, *, quiet: bool) -> list[dict[str, object]]:
    progress = track(
        costs.measure(sizes),
        "costs",
        total=costs.COUNT,
        console=Console(stderr=True),
        transient=True,
    )
    found = [
        {
            "name": cost.name,
            "value": cost.value,
            "target": cost.target,
            "unit": cost.unit,
            "met": cost.met,
            **cost.parts,
        }
        for cost in progress
    ]
    if not quiet:
        print_table("costs", found)
    return found


if __name__ == "__main__":
    app()
