"""One process against parts of the same catalog in processes of their own: results and times.

    python -m benchmarks.sharding --entities 200000 --shards 4 --json

* The catalog and its vectors are those of `benchmarks.lifelike`: many tools share a name, every
  fourth question is mistyped. Each process embeds and indexes only what it holds.
* The whole catalog is searched in this process; then it is closed, and the parts are searched over
  HTTP on loopback. No result is cached; query vectors cost nothing.
* A result is equal if all matches are, to the last bit: ids, order, scores, confidence, evidence.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console

from benchmarks.lifelike import NumberedEmbedder, near, question, servers, vectors
from benchmarks.tables import print_table
from gateway import Gateway, Options
from gateway.embed.cache import MemoryVectorStore
from gateway.embed.protocol import Embedded, Role
from gateway.manifests.manifest import part_of
from gateway.options import CacheOptions, IndexOptions, SearchOptions
from gateway.runtime.vectors import Matrix
from gateway.serve.http import PATH, serve_http
from gateway.serve.http_options import HttpOptions
from gateway.serve.mcp_server import mcp_server
from gateway.serve.part_routes import part_routes
from gateway.sharding import HttpPart, ShardedSearch
from gateway.types import SearchResult

_LIMIT = 10
_WARMING = 20
_PATIENCE_S = 3600.0
_OPTIONS = Options(
    search=SearchOptions(query_timeout_s=_PATIENCE_S),
    cache=CacheOptions(result_items=0),
    index=IndexOptions(saved=False),
)

app = typer.Typer(add_completion=False)


class AskingEmbedder(NumberedEmbedder):
    """Knows the vectors of questions too: that of the tool which each is about, and noise."""

    def __init__(self, rows: Matrix, numbers: Sequence[int]) -> None:
        super().__init__(rows)
        self._questions = dict(zip(map(question, numbers), near(rows[list(numbers)]), strict=True))

    async def embed(self, texts: Sequence[str], *, role: Role) -> Embedded:
        """Return the rows of questions, of numbered texts, and of names."""
        plain = await super().embed(texts, role=role)
        found = [
            self._questions.get(text, row) for text, row in zip(texts, plain.vectors, strict=True)
        ]
        return Embedded(vectors=np.stack(found))


@app.command()
def main(
    *,
    entities: Annotated[int, typer.Option(help="Tools, twenty a server.")] = 200_000,
    shards: Annotated[int, typer.Option(help="Processes that hold a part each.")] = 4,
    dimensions: Annotated[int, typer.Option(help="Of the vectors.")] = 128,
    queries: Annotated[int, typer.Option(help="Questions, each asked once.")] = 200,
    as_json: Annotated[bool, typer.Option("--json", help="Print every digit.")] = False,
    part: Annotated[int, typer.Option(hidden=True)] = -1,
) -> None:
    """Compare the results, and tell times and bytes."""
    rows = vectors(entities, dimensions)
    numbers = [int(each) for each in (np.arange(queries + _WARMING) * 7919 + 13) % entities]
    if part >= 0:
        asyncio.run(serve_part(rows, part, shards))
        return
    embedder = AskingEmbedder(rows, numbers)
    texts = list(map(question, numbers))
    whole, one_s, one_cpu_ms = asyncio.run(search_whole(embedder, entities, texts))
    gc.collect()
    with running_parts(entities, shards, dimensions) as (urls, processes):
        parted, four_s, wire = asyncio.run(search_parts(urls, processes, embedder, texts))
    equal = sum(map(is_equal, whole, parted))
    figures: dict[str, object] = {
        "entities": entities,
        "shards": shards,
        "dimensions": dimensions,
        "queries": queries,
        "equal_results": equal,
        "one_p50_ms": _quantile(one_s, 50),
        "one_p95_ms": _quantile(one_s, 95),
        "one_cpu_ms_a_search": one_cpu_ms,
        "sharded_p50_ms": _quantile(four_s, 50),
        "sharded_p95_ms": _quantile(four_s, 95),
        "p95_ratio": _quantile(four_s, 95) / _quantile(one_s, 95),
        **wire,
    }
    if as_json:
        print(json.dumps(figures, indent=2))
    else:
        print_table(
            "One process and parts", [{"figure": k, "value": v} for k, v in figures.items()]
        )


async def search_whole(
    embedder: NumberedEmbedder, entities: int, texts: Sequence[str]
) -> tuple[list[SearchResult], list[float], float]:
    """Search the whole catalog in this process; tell its processor time a search too."""
    async with _gateway(embedder, entities) as gateway:
        await gateway.report()
        results, spent_s = [], []
        for text in texts[:_WARMING]:
            await gateway.search(text, limit=_LIMIT)
        cpu_s = time.process_time()
        for text in texts[_WARMING:]:
            began = time.perf_counter()
            results.append(await gateway.search(text, limit=_LIMIT))
            spent_s.append(time.perf_counter() - began)
        cpu_ms = 1000 * (time.process_time() - cpu_s) / len(results)
    return results, spent_s, cpu_ms


async def search_parts(
    urls: Sequence[str],
    processes: Sequence[subprocess.Popen[str]],
    embedder: NumberedEmbedder,
    texts: Sequence[str],
) -> tuple[list[SearchResult], list[float], dict[str, object]]:
    """Search the parts at *urls*; tell bytes and the parts' own processor time a search too."""
    parts = [HttpPart(url) for url in urls]
    search = ShardedSearch(parts, embedder=embedder, options=_OPTIONS, timeout_s=_PATIENCE_S)
    results, spent_s = [], []
    async with search:
        began = time.perf_counter()
        await search.search(texts[0], limit=_LIMIT)
        ready_s = time.perf_counter() - began
        counted = sum(part.bytes_sent + part.bytes_received for part in parts)
        for text in texts[1:_WARMING]:
            await search.search(text, limit=_LIMIT)
        sent, received = (sum(getattr(part, name) for part in parts) for name in _BYTES)
        cpu_s, own_cpu_s = [_cpu_s(process.pid) for process in processes], time.process_time()
        for text in texts[_WARMING:]:
            began = time.perf_counter()
            results.append(await search.search(text, limit=_LIMIT))
            spent_s.append(time.perf_counter() - began)
    searches = len(texts) - _WARMING
    wire: dict[str, object] = {
        "synchronized_s": ready_s,
        "statistics_bytes": counted,
        "sent_bytes_a_search": (sum(part.bytes_sent for part in parts) - sent) / searches,
        "received_bytes_a_search": (sum(part.bytes_received for part in parts) - received)
        / searches,
        "coordinator_cpu_ms_a_search": 1000 * (time.process_time() - own_cpu_s) / searches,
        "cpu_ms_a_search_of_each_part": [
            round(1000 * (_cpu_s(process.pid) - before) / searches, 2)
            for process, before in zip(processes, cpu_s, strict=True)
        ],
    }
    for part in parts:
        await part.aclose()
    return results, spent_s, wire


_BYTES = ("bytes_sent", "bytes_received")


async def serve_part(rows: Matrix, number: int, parts: int) -> None:
    """Serve one part on a free port, and print its address once it is indexed."""
    async with _gateway(NumberedEmbedder(rows), len(rows), (number, parts)) as gateway:
        await gateway.report()
        await serve_http(
            mcp_server(gateway),
            HttpOptions(port=0),
            routes=part_routes(gateway),
            on_listening=lambda url: print(url.removesuffix(PATH), flush=True),
        )


@contextmanager
def running_parts(
    entities: int, parts: int, dimensions: int
) -> Iterator[tuple[list[str], list[subprocess.Popen[str]]]]:
    """Run a process for each part; yield their addresses."""
    command = [sys.executable, "-m", "benchmarks.sharding", f"--entities={entities}"]
    command += [f"--shards={parts}", f"--dimensions={dimensions}"]
    processes = [
        subprocess.Popen(  # noqa: S603  (this interpreter)
            [*command, f"--part={number}"], stdout=subprocess.PIPE, text=True
        )
        for number in range(parts)
    ]
    try:
        yield [_address(process) for process in processes], processes
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait()


def _address(process: subprocess.Popen[str]) -> str:
    line = process.stdout.readline().strip() if process.stdout else ""
    if not line:
        raise RuntimeError("a part ended before it listened")
    return line


def _gateway(
    embedder: NumberedEmbedder, entities: int, part: tuple[int, int] | None = None
) -> Gateway:
    console = Console(stderr=True)
    gateway = Gateway(
        strategy="auto",
        embedder=embedder,
        options=_OPTIONS,
        vector_store=MemoryVectorStore(),
        progress=lambda stage, done, total: console.print(
            f"{part or 'whole'}: {stage} {done:,} of {total:,}", end="\r"
        ),
    )
    for source in servers(entities):
        if part is None or part_of(source.server, part[1]) == part[0]:
            gateway.add_source(source)
    return gateway


def is_equal(whole: SearchResult, parted: SearchResult) -> bool:
    """Return whether all matches are the same to the last bit, in the same order."""
    return (whole.mode, whole.matches) == (parted.mode, parted.matches)


def _quantile(seconds: Sequence[float], percent: float) -> float:
    return float(np.percentile(seconds, percent)) * 1000


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    app()
