"""Other tool searchers beside ours: how well each finds, and the CPU that it takes.

    python -m benchmarks.peers --install
    python -m benchmarks.peers --data DIR --json
    python -m benchmarks.peers --synthetic 1000,10000

Each runs in a process of its own, with an environment of its own in the cache folder. What cannot
be installed or fails has a row that says why.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, get_args

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.data import read
from benchmarks.metrics import Gold, gold_of
from benchmarks.peering.bench import Bench, describe, invent_task, ours
from benchmarks.peering.comparison import FIGURES, Row, compare, to_json
from benchmarks.peering.environments import Environments
from benchmarks.peering.runs import RunCache, Task, task_of
from benchmarks.peering.systems import MEASURED_FOR_COST, Peer, select_peers
from benchmarks.peering.vectors import Vectors
from benchmarks.retrieval import one_of, percents
from gateway import LocalEmbedder
from gateway.options.environment import environment
from gateway.storage.sqlite import SqliteVectorStore
from gateway.testing import HashingEmbedder
from gateway.types import Strategy

_WIDE = 200
"""Columns of a table that goes into a file."""
_HASHING = 512
"""Length of the vectors of invented tools."""

app = typer.Typer(add_completion=False)


@app.command()
def main(  # noqa: PLR0913  (the options of a command)
    *,
    data: Annotated[list[Path] | None, typer.Option(help="Folders in the common format.")] = None,
    synthetic: Annotated[str, typer.Option(help="Sizes of invented catalogs, commas.")] = "",
    only: Annotated[list[str] | None, typer.Option(help="These systems or packages.")] = None,
    strategy: Annotated[str, typer.Option(help="How ours searches.")] = "auto",
    embedder: Annotated[str, typer.Option(help="local, or none: no vectors.")] = "local",
    limit_queries: Annotated[int, typer.Option(help="A fixed sample of so many.")] = 0,
    limit_slow: Annotated[int, typer.Option(help="The same, for slow peers.")] = 40,
    limit_synthetic: Annotated[int, typer.Option(help="Queries to invented tools.")] = 50,
    install: Annotated[bool, typer.Option("--install", help="Make missing environments.")] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Use no kept runs of peers.")] = False,
    timeout: Annotated[float, typer.Option(help="Seconds that one system may take.")] = 3600.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print every digit.")] = False,
) -> None:
    """Measure other systems beside ours, in one run."""
    way: Strategy = one_of(strategy, get_args(Strategy))
    model = one_of(embedder, ("local", "none"))
    try:
        peers = select_peers(only or [])
    except KeyError as error:
        raise typer.BadParameter(str(error.args[0])) from error
    home = environment().cache_dir / "peers"
    bench = Bench(
        environments=Environments(home / "env"),
        cache=RunCache(home / "runs"),
        vectors=Vectors(
            LocalEmbedder() if model == "local" else None,
            SqliteVectorStore(home / "vectors.sqlite3"),
        ),
        fresh=fresh,
        timeout_s=timeout,
        slow_queries=limit_slow,
    )
    if install:
        _install(bench.environments, peers)
    rows: list[Row] = []
    for folder in data or []:
        benchmark = read(folder, limit=limit_queries)
        gold = {str(query["id"]): gold_of(query) for query in benchmark.queries}
        rows += _measured(bench, task_of(benchmark), gold, (ours(way), *peers), quiet=as_json)
    costed = peers if only else select_peers(MEASURED_FOR_COST)
    for size in filter(None, synthetic.split(",")):
        task = asyncio.run(invent_task(int(size), limit_synthetic))
        hashed = _with_hashed_vectors(bench, home)
        systems = (ours(way, hashing=_HASHING), *costed)
        rows += _measured(hashed, task, {}, systems, quiet=as_json)
    if as_json:
        print(json.dumps({"rows": [to_json(row) for row in rows]}, indent=2, ensure_ascii=False))


def _install(environments: Environments, peers: Sequence[Peer]) -> None:
    for package, peer in {peer.package: peer for peer in peers}.items():
        failed = environments.install(peer)
        said = f"NOT INSTALLED: {failed}" if failed else environments.version(peer)
        print(f"{package} {said}", file=Console(stderr=True).file)


def _with_hashed_vectors(bench: Bench, home: Path) -> Bench:
    """Return *bench* with vectors that need no model: invented words mean nothing."""
    store = SqliteVectorStore(home / "hashed.sqlite3")
    return replace(bench, vectors=Vectors(HashingEmbedder(_HASHING), store))


def _measured(
    bench: Bench, task: Task, gold: Mapping[str, Gold], peers: Sequence[Peer], *, quiet: bool
) -> list[Row]:
    console = Console(stderr=True)
    runs = []
    for peer in peers:
        with console.status(f"{task.name}: {peer.name}"):
            runs.append((peer, asyncio.run(bench.run(peer, task))))
    rows = compare(task, gold, runs)
    if not quiet:
        wide = Console()
        (wide if wide.is_terminal else Console(width=_WIDE)).print(table(task, rows))
    return rows


def table(task: Task, rows: Sequence[Row]) -> Table:
    """Set the rows of one catalog in a table; what is measured of each stands below."""
    table = Table(title=f"{task.name}: {len(task.tools)} tools")
    table.add_column("system")
    for name in ("queries", *FIGURES, "ours - this: recall@5", "95 %", "ours"):
        table.add_column(name, justify="right")
    for name in ("build s", "search us", "embed us", "/ ours"):
        table.add_column(name, justify="right")
    table.add_column("note")
    for row in rows:
        table.add_row(
            f"{row.peer.name} {row.version}{' (kept)' if row.cached else ''}",
            str(row.queries),
            *percents(row.figures, FIGURES),
            *_difference(row),
            *_cost(row),
            row.note if row.cost else f"FAILED: {row.note}",
        )
    table.caption = "\n".join(describe([row.peer for row in rows]))
    return table


def _difference(row: Row) -> tuple[str, str, str]:
    found = row.difference
    if found is None:
        return "-", "-", "-"
    interval = f"{100 * found.low:+.1f} … {100 * found.high:+.1f}"
    return f"{100 * found.mean:+.1f}", interval, found.verdict


def _cost(row: Row) -> tuple[str, str, str, str]:
    cost = row.cost
    if cost is None:
        return "-", "-", "-", "-"
    ratio = "-" if cost.ratio is None else f"{cost.ratio:.2f}"
    return f"{cost.build_s:.2f}", f"{cost.search_us:.0f}", f"{cost.embed_us:.0f}", ratio


if __name__ == "__main__":
    app()
