"""Retrieval quality of the gateway over any folder in the common format.

    python -m benchmarks.retrieval run --data DIR --strategy auto --out run.jsonl

Everything goes through the public API. The run holds one line a query: its id, the tools ranked
best first, and, where the data knows the first step of a task, what is suggested next.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console
from rich.progress import track

from benchmarks.data import Benchmark, Row, edge_documents, read, sources
from benchmarks.typos import noisy
from gateway import Gateway, Match, SearchResult
from gateway.types import Strategy
from graphs import write

View = Literal["matches", "shown"]
Edges = Literal["given", "derived", "none"]
RANKED = 10
"""How many tools a run holds for a query: the scorer looks no further."""
SUGGESTED = 5

app = typer.Typer(no_args_is_help=True, add_completion=False)


@app.callback()
def main() -> None:
    """Measure how well the gateway finds tools."""


@app.command()
def run(  # noqa: PLR0913  (the options of a command)
    *,
    data: Annotated[Path, typer.Option(help="A folder in the common format.")],
    out: Annotated[Path, typer.Option(help="Where the run goes, as JSON Lines.")],
    strategy: Annotated[str, typer.Option(help="auto, graph or embeddings.")] = "auto",
    view: Annotated[str, typer.Option(help="matches, or shown: all lists as one.")] = "matches",
    edges: Annotated[str, typer.Option(help="given, derived or none.")] = "given",
    noise: Annotated[float, typer.Option(help="Share of misspelt words, 0 to 1.")] = 0.0,
    seed: Annotated[int, typer.Option(help="Another seed misspells otherwise.")] = 7,
    limit_queries: Annotated[int, typer.Option(help="A fixed sample of so many.")] = 0,
    catalog: Annotated[list[Path] | None, typer.Option(help="More tools, as distractors.")] = None,
) -> None:
    """Rank the tools of a folder for each of its queries."""
    benchmark = read(data, extra=catalog or [], limit=limit_queries)
    if noise:
        asked = {
            str(query["id"]): noisy(
                str(query["query"]), rate=noise, seed=seed, key=str(query["id"])
            )
            for query in benchmark.queries
        }
    else:
        asked = {str(query["id"]): str(query["query"]) for query in benchmark.queries}
    lines = asyncio.run(_run(benchmark, asked, strategy, view, edges))
    out.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


async def _run(
    benchmark: Benchmark, asked: dict[str, str], strategy: str, view: str, edges: str
) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        given = edges == "given" and bool(benchmark.edges)
        if given:
            write(edge_documents(benchmark), Path(folder))
        async with Gateway(
            strategy=_strategy(strategy),
            embedder=None if strategy == "graph" else "local",
            graph=Path(folder) if given else None,
        ) as gateway:
            for source in sources(benchmark):
                gateway.add_source(source)
            await gateway.report()
            progress = track(
                benchmark.queries,
                description=benchmark.name,
                console=Console(stderr=True),
                transient=True,
            )
            return [
                json.dumps(await _line(gateway, benchmark, query, asked[str(query["id"])], view))
                for query in progress
            ]


def _strategy(name: str) -> Strategy:
    known: dict[str, Strategy] = {"auto": "auto", "graph": "graph", "embeddings": "embeddings"}
    if name not in known:
        raise typer.BadParameter(f"{name!r} is not one of {', '.join(known)}")
    return known[name]


async def _line(
    gateway: Gateway, benchmark: Benchmark, query: Row, text: str, view: str
) -> dict[str, object]:
    result = await gateway.search(text, limit=RANKED)
    line: dict[str, object] = {
        "id": query["id"],
        "ranked": [benchmark.tool_ids[match.id] for match in _ranked(result, view)],
    }
    first = _first_step(query)
    if first in benchmark.entity_ids:
        steps = await gateway.next_steps([benchmark.entity_ids[first]], query=text, limit=SUGGESTED)
        line["next"] = [benchmark.tool_ids[match.id] for match in steps]
    return line


def _ranked(result: SearchResult, view: str) -> Iterator[Match]:
    found = result.shown if view == "shown" else result.matches
    yield from found[:RANKED]


def _first_step(query: Row) -> str:
    sequence = query.get("sequence")
    steps = [str(step) for step in sequence] if isinstance(sequence, list) else []
    return str(query.get("main") or (steps[0] if len(set(steps)) > 1 else ""))


if __name__ == "__main__":
    app()
