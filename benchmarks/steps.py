"""Searches by one query for each step, beside searches by the text of the user.

    python -m benchmarks.steps --data DIR --data DIR

A language model wrote the queries in ``benchmarks/written_steps``: it saw the request and the
definition of the search tool, but not the catalog.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.data import Benchmark, Row, read, sources
from benchmarks.metrics import gold_of
from benchmarks.tables import print_table
from gateway import Embedder, Gateway, LocalEmbedder

FOLDER = Path(__file__).with_name("written_steps")
DEPTHS = (5, 8)
_LIMIT = 20

app = typer.Typer(add_completion=False)


def written_steps(name: str) -> dict[str, list[str]]:
    """Return the queries written for the set *name*, keyed by request id."""
    rows = map(json.loads, (FOLDER / f"{name}.jsonl").read_text("utf-8").splitlines())
    return {row["id"]: row["queries"] for row in rows}


async def measure(
    benchmark: Benchmark, steps: Mapping[str, Sequence[str]], embedder: Embedder | None
) -> list[dict[str, object]]:
    """Return a row for each way to search: the mean recall at each of `DEPTHS`.

    *steps* are the queries of each request, keyed by its id. Without *embedder* the graph ranks.
    """
    queries = [query for query in benchmark.queries if query["id"] in steps]
    recalls: dict[str, list[list[float]]] = {"text": [], "steps": []}
    async with Gateway(strategy="auto" if embedder else "graph", embedder=embedder) as gateway:
        for source in sources(benchmark):
            gateway.add_source(source)
        await gateway.report()
        for query in queries:
            text = await gateway.search(str(query["query"]), limit=_LIMIT)
            several = await gateway.search(queries=steps[str(query["id"])], limit=_LIMIT)
            for way, result in (("text", text), ("steps", several)):
                found = [benchmark.tool_ids[match.id] for match in result.matches]
                recalls[way].append([_recall(query, found[:depth]) for depth in DEPTHS])
    return [
        {"set": benchmark.name, "requests": len(queries), "searched by": way}
        | {
            f"recall@{depth}": round(100 * sum(column) / max(len(column), 1), 1)
            for depth, column in zip(DEPTHS, zip(*rows, strict=True), strict=True)
        }
        for way, rows in recalls.items()
    ]


def _recall(query: Row, found: Sequence[str]) -> float:
    gold = gold_of(query)
    return sum(not group.isdisjoint(found) for group in gold) / len(gold)


@app.command()
def main(
    *,
    data: Annotated[list[Path], typer.Option(help="A folder; may be repeated.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measure what queries for each step find."""
    embedder = LocalEmbedder()
    sets = [read(folder) for folder in data]
    works = (measure(each, written_steps(each.name), embedder) for each in sets)
    rows = [row for work in works for row in asyncio.run(work)]
    if as_json:
        print(json.dumps(rows, indent=2))
    else:
        print_table("one query for each step", rows)


if __name__ == "__main__":
    app()
