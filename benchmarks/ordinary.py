"""Ordinary requests to the tools of real servers: the right tool first, and among five.

    python -m benchmarks.ordinary --catalog FILE --half unread
    python -m benchmarks.ordinary --catalog FILE --without-bundled --json

The requests are in ``benchmarks/requests``, with a README. The catalog is a JSON Lines file of
tools in the common format.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from benchmarks.data import Benchmark, Row, read_catalog, rows, sources
from benchmarks.metrics import gold_of
from benchmarks.tables import print_table
from gateway import Embedder, Gateway, LocalEmbedder
from gateway.options import GraphOptions, IndexOptions, Options
from gateway.types import Filters

FOLDER = Path(__file__).with_name("requests")
SETS = ("plain", "several", "spoken")
_LIMIT = 5
Half = Literal["read", "unread"]

app = typer.Typer(add_completion=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Requests:
    """Requests of one set, all in one half."""

    name: str
    rows: tuple[Row, ...]
    servers: frozenset[str] = frozenset()
    """Servers that are searched; empty for all."""


def load_requests(half: Half) -> Iterator[Requests]:
    """Yield the three sets, then one set for each language."""
    for name in SETS:
        chosen = (row for row in rows(FOLDER / f"{name}.jsonl") if row["half"] == half)
        yield Requests(name=name, rows=tuple(chosen))
    folder = FOLDER / "languages"
    servers = frozenset((folder / "servers.txt").read_text("utf-8").split())
    intents = {str(row["id"]): row for row in rows(folder / "intents.jsonl")}
    wanted = {key: row for key, row in intents.items() if (int(key) % 2 == 1) == (half == "read")}
    english = tuple({**row, "query": row["en"]} for row in wanted.values())
    yield Requests(name="en", rows=english, servers=servers)
    for path in sorted(folder.glob("*.jsonl")):
        if path.stem != "intents":
            translated = (row for row in rows(path) if str(row["id"]) in wanted)
            own = tuple({**wanted[str(row["id"])], **row} for row in translated)
            yield Requests(name=path.stem, rows=own, servers=servers)


async def measure(
    benchmark: Benchmark, requests: Iterable[Requests], embedder: Embedder | None, *, bundled: bool
) -> list[dict[str, object]]:
    """Return a row for each set: the right tool first, and the wanted things among five, in %.

    Without *embedder* the graph ranks.
    """
    results: list[dict[str, object]] = []
    options = Options(graph=GraphOptions(bundled=bundled), index=IndexOptions(saved=False))
    strategy: Literal["auto", "graph"] = "auto" if embedder else "graph"
    async with Gateway(strategy=strategy, embedder=embedder, options=options) as gateway:
        for source in sources(benchmark):
            gateway.add_source(source)
        await gateway.report()
        for each in requests:
            filters = Filters(servers=each.servers)
            found = [
                await gateway.search(str(row["query"]), limit=_LIMIT, filters=filters)
                for row in each.rows
            ]
            ids = [[benchmark.tool_ids[match.id] for match in result.matches] for result in found]
            results.append({"set": each.name, "requests": len(ids)} | _figures(each.rows, ids))
    return results


def _figures(requests: Sequence[Row], found: Sequence[Sequence[str]]) -> dict[str, object]:
    gold = [gold_of(row) for row in requests]
    first = [
        any(set(tools[:1]) & group for group in groups)
        for groups, tools in zip(gold, found, strict=True)
    ]
    among = [
        sum(not group.isdisjoint(tools) for group in groups) / len(groups)
        for groups, tools in zip(gold, found, strict=True)
    ]
    count = max(len(found), 1)
    return {
        "first": round(100 * sum(first) / count, 1),
        "in five": round(100 * sum(among) / count, 1),
    }


@app.command()
def main(
    *,
    catalog: Annotated[Path, typer.Option(help="A file of tools in the common format.")],
    half: Annotated[str, typer.Option(help="read or unread.")] = "read",
    without_bundled: Annotated[
        bool, typer.Option("--without-bundled", help="Without documents about known servers.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measure how well ordinary requests are served."""
    chosen: Half = "unread" if half == "unread" else "read"
    work = measure(
        read_catalog(catalog), load_requests(chosen), LocalEmbedder(), bundled=not without_bundled
    )
    results = asyncio.run(work)
    if as_json:
        print(json.dumps(results, indent=2))
    else:
        print_table(f"ordinary requests, {chosen} half", results)


if __name__ == "__main__":
    app()
