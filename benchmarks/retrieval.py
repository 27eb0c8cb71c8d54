"""Retrieval quality of the gateway over any folder in the common format.

    python -m benchmarks.retrieval run --data DIR --strategy auto --out run.jsonl
    python -m benchmarks.retrieval score --data DIR --run run.jsonl
    python -m benchmarks.retrieval report --data DIR --data DIR --out docs/benchmarks.md

Everything goes through the public API. The run holds one line a query: its id, the tools ranked
best first, and, where the data knows the first step of a task, what is suggested next.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, TypeVar, get_args

import typer
from rich.console import Console

from benchmarks.data import read, rows
from benchmarks.metrics import COLUMNS, summary, to_json
from benchmarks.ranking import STRATEGIES, Edges, View, Way, query_texts, rank
from benchmarks.recalled import Recalled
from benchmarks.report import Plan, feasible, read_given, write_report
from benchmarks.tables import percents, print_table
from gateway.plugins.local.embedder import LocalEmbedder

_Word = TypeVar("_Word", bound=str)
EVERY = "auto,graph,embeddings,hybrid"

app = typer.Typer(no_args_is_help=True, add_completion=False)


@app.callback()
def main() -> None:
    """Measure how well the gateway finds tools."""


@app.command()
def run(
    *,
    data: Annotated[Path, typer.Option(help="A folder in the common format.")],
    out: Annotated[Path, typer.Option(help="Where the run goes, as JSON Lines.")],
    strategy: Annotated[str, typer.Option(help="auto, graph, embeddings or hybrid.")] = "auto",
    view: Annotated[str, typer.Option(help="matches, or shown: all lists as one.")] = "matches",
    edges: Annotated[str, typer.Option(help="given, derived or none.")] = "given",
    noise: Annotated[float, typer.Option(help="Share of misspelt words, 0 to 1.")] = 0.0,
    seed: Annotated[int, typer.Option(help="Another seed misspells otherwise.")] = 7,
    limit_queries: Annotated[int, typer.Option(help="A fixed sample of so many.")] = 0,
    catalog: Annotated[list[Path] | None, typer.Option(help="More tools, as distractors.")] = None,
) -> None:
    """Rank the tools of a folder for each of its queries."""
    way: Way = one_of(strategy, STRATEGIES)
    seen: View = one_of(view, get_args(View))
    used: Edges = one_of(edges, get_args(Edges))
    benchmark = read(data, extra=catalog or [], limit=limit_queries)
    texts = query_texts(benchmark, noise=noise, seed=seed)
    found = asyncio.run(rank(benchmark, texts, strategy=way, edges=used))
    lines = (json.dumps(each.line(seen), ensure_ascii=False) for each in found)
    out.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def one_of(word: str, known: Sequence[_Word]) -> _Word:
    """Return *word* if it is one of *known*.

    Raises:
        typer.BadParameter: If it is not.
    """
    for each in known:
        if each == word:
            return each
    raise typer.BadParameter(f"{word!r} is not one of {', '.join(known)}")


@app.command()
def score(
    *,
    data: Annotated[Path, typer.Option(help="The folder that was searched.")],
    run: Annotated[Path, typer.Option(help="The run, as JSON Lines.")],
    limit_queries: Annotated[int, typer.Option(help="The sample that was asked.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print every digit.")] = False,
) -> None:
    """Judge a run: all figures, whole and by language."""
    benchmark = read(data, limit=limit_queries)
    found = summary(benchmark.queries, list(rows(run)))
    if as_json:
        figures = {"set": benchmark.name, "tools": len(benchmark.tools), **to_json(found)}
        print(json.dumps(figures, indent=2, ensure_ascii=False))
        return
    counts = found.by_language_count
    lines = [{"queries": f"all {found.queries}", **percents(found.figures, COLUMNS)}]
    if len(counts) > 1:
        lines += [
            {"queries": f"{language} {counts[language]}", **percents(figures, COLUMNS)}
            for language, figures in found.by_language.items()
        ]
    title = f"{benchmark.name}: {len(benchmark.tools)} tools"
    steps = ", ".join(f"{name} {100 * value:.1f}" for name, value in found.next_figures.items())
    print_table(
        f"{title}, {found.answered} of {found.queries} queries answered",
        lines,
        caption=f"{found.next_count} queries with a next step: {steps}" if steps else "",
    )


@app.command()
def report(
    *,
    data: Annotated[list[Path], typer.Option(help="A folder; may be repeated.")],
    out: Annotated[Path, typer.Option(help="The document; only what stands between its marks.")],
    strategies: Annotated[str, typer.Option(help="Ours, the chief one first.")] = EVERY,
    embedder: Annotated[str, typer.Option(help="local, or none: what needs no model.")] = "local",
    given: Annotated[
        Path | None, typer.Option("--baselines", help="Figures of others: {set: {name: …}}.")
    ] = None,
    noise: Annotated[float, typer.Option(help="Share of misspelt words, 0 to 1.")] = 0.3,
    seed: Annotated[int, typer.Option(help="Another seed misspells otherwise.")] = 7,
    limit_queries: Annotated[int, typer.Option(help="A fixed sample of so many a set.")] = 0,
) -> None:
    """Hold every strategy against every baseline, and write a document."""
    local = LocalEmbedder() if one_of(embedder, ("local", "none")) == "local" else None
    # Every way of searching asks the same requests: each is embedded once.
    model = Recalled(local) if local else None
    chosen, left = feasible(strategies.split(","), model=model is not None)
    if not chosen:
        raise typer.BadParameter(f"the gateway can serve none of {strategies!r}")
    console = Console(stderr=True)
    if left:
        console.print(f"left out: {', '.join(left)}")
    plan = Plan(strategies=chosen, embedder=model, noise=noise, seed=seed, limit=limit_queries)
    write_report(data, out, plan, given=read_given(given))


if __name__ == "__main__":
    app()
