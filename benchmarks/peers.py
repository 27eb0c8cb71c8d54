"""Other tool searchers beside ours: how well each finds, and the CPU that it takes.

    python -m benchmarks.peers --install
    python -m benchmarks.peers --data DIR --json

Each runs in a process of its own, with an environment of its own in the cache folder. What cannot
be installed or fails has a row that says why.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, get_args

import typer
from rich.console import Console

from benchmarks.data import read
from benchmarks.metrics import gold_of
from benchmarks.peering.bench import Bench, describe, ours
from benchmarks.peering.comparison import FIGURES, Row, compare, to_json
from benchmarks.peering.environments import Environments
from benchmarks.peering.runs import Task, task_of
from benchmarks.peering.systems import Peer, select_peers
from benchmarks.peering.vectors import Vectors
from benchmarks.retrieval import one_of
from benchmarks.tables import percents, print_table
from gateway import LocalEmbedder
from gateway.options.environment import environment
from gateway.plugins.quality.metrics import Gold
from gateway.storage.sqlite import SqliteVectorStore
from gateway.types import Strategy

app = typer.Typer(add_completion=False)


@app.command()
def main(
    *,
    data: Annotated[list[Path] | None, typer.Option(help="Folders in the common format.")] = None,
    only: Annotated[list[str] | None, typer.Option(help="These systems or packages.")] = None,
    strategy: Annotated[str, typer.Option(help="How ours searches.")] = "auto",
    embedder: Annotated[str, typer.Option(help="local, or none: no vectors.")] = "local",
    limit_queries: Annotated[int, typer.Option(help="A fixed sample of so many.")] = 0,
    limit_slow: Annotated[int, typer.Option(help="The same, for slow peers.")] = 40,
    install: Annotated[bool, typer.Option("--install", help="Make missing environments.")] = False,
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
        vectors=Vectors(
            LocalEmbedder() if model == "local" else None,
            SqliteVectorStore(home / "vectors.sqlite3"),
        ),
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
    if as_json:
        print(json.dumps({"rows": [to_json(row) for row in rows]}, indent=2, ensure_ascii=False))


def _install(environments: Environments, peers: Sequence[Peer]) -> None:
    for package, peer in {peer.package: peer for peer in peers}.items():
        failed = environments.install(peer)
        status = f"NOT INSTALLED: {failed}" if failed else environments.version(peer)
        print(f"{package} {status}", file=Console(stderr=True).file)


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
        notes = "\n".join(describe([row.peer for row in rows]))
        title = f"{task.name}: {len(task.tools)} tools"
        print_table(title, [line(row) for row in rows], caption=notes)
    return rows


def line(row: Row) -> dict[str, object]:
    """Return the line of a table: percentages, and CPU without embedding."""
    cost, difference = row.cost, row.difference
    points = f"{100 * difference.mean:+.1f}" if difference else "-"
    interval = f"{100 * difference.low:+.1f} … {100 * difference.high:+.1f}" if difference else "-"
    return {
        "system": f"{row.peer.name} {row.version}".strip(),
        "queries": row.queries,
        **percents(row.figures, FIGURES),
        "ours - this: recall@5": points,
        "95 %": interval,
        "ours": difference.verdict if difference else "-",
        "build s": cost.build_s if cost else None,
        "search us": cost.search_us if cost else None,
        "embed us": cost.embed_us if cost else None,
        "/ ours": cost.ratio if cost else None,
        "note": row.note if cost else f"FAILED: {row.note}",
    }


if __name__ == "__main__":
    app()
