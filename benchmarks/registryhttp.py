"""Searches over HTTP, as many clients at once see them: how long each takes, how many a second.

    python -m benchmarks.registryhttp [--json] [--entities 1000] [--concurrent 10]

The server is a process of its own with the embedded model; this one plays the clients, each with
one connection, who ask again as soon as they are answered. With caches off every request is
embedded and ranked; with caches on the same questions come again and again.
"""

from __future__ import annotations

import asyncio
import itertools
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Annotated

import httpx2
import numpy as np
import typer

from benchmarks import lifelike
from benchmarks.data import rows
from benchmarks.tables import print_figures
from gateway import Gateway, Options
from gateway.catalog.entries import Entry
from gateway.options import CacheOptions
from gateway.plugins.local.embedder import LocalEmbedder
from gateway.plugins.local.encoders import ALL_MODELS
from gateway.serve.api.app import api_routes
from gateway.serve.http import serve_http
from gateway.serve.http_options import HttpOptions
from gateway.serve.mcp_server import mcp_server

PATH = "/api/search/semantic"
_DATA = Path(__file__).with_name("registrydata")
_SHARE = 10
"""One of so many entities is an agent, and one a skill."""
_WARM = 20
_ASKED = 200
"""Different questions; with caches on all of them are known."""
_OFF = CacheOptions(normalized_items=0, embedding_items=0, result_items=0)


def measure(
    *,
    entities: int = 1000,
    concurrent: int = 10,
    requests: int = 300,
    encoders: int = len(ALL_MODELS),
) -> Mapping[str, float]:
    """Measure a server with *entities* under *concurrent* clients.

    Args:
        entities: In the catalog: tools, and agents and skills among them.
        concurrent: Clients at a time.
        requests: Requests with caches off; with caches on ten times as many.
        encoders: So many of the embedded model's, of which 3 are the default.

    Returns:
        ``http_p50_ms``, ``http_p95_ms`` and ``http_uncached_rps`` with caches off;
        ``http_cached_p50_ms``, ``http_cached_p95_ms`` and ``http_rps`` with caches on.
    """
    questions = [lifelike.question(number) for number in range(_ASKED)]
    with _served(entities, encoders, cache=False) as url:
        cold = asyncio.run(_load(url, questions, concurrent=concurrent, requests=requests))
    with _served(entities, encoders, cache=True) as url:
        asyncio.run(_load(url, questions, concurrent=concurrent, requests=_ASKED))
        warm = asyncio.run(_load(url, questions, concurrent=concurrent, requests=10 * requests))
    names = ("http_p50_ms", "http_p95_ms", "http_uncached_rps")
    cached = ("http_cached_p50_ms", "http_cached_p95_ms", "http_rps")
    return dict(zip((*names, *cached), (*cold, *warm), strict=True))


async def _load(
    url: str, questions: Sequence[str], *, concurrent: int, requests: int
) -> tuple[float, float, float]:
    """Return the median and the 95 % quantile of a request in ms, and requests a second."""
    left = itertools.islice(itertools.cycle(questions), requests)
    spent: list[float] = []

    async def ask(client: httpx2.AsyncClient) -> None:
        for text in left:
            began = time.perf_counter()
            answer = await client.post(PATH, json={"query": text})
            spent.append(1000 * (time.perf_counter() - began))
            answer.raise_for_status()

    async with AsyncExitStack() as stack:
        opened = (
            httpx2.AsyncClient(base_url=httpx2.URL(url).join("/"), timeout=60)
            for _ in range(concurrent)
        )
        clients = [await stack.enter_async_context(client) for client in opened]
        for text in questions[:_WARM]:
            await clients[0].post(PATH, json={"query": text})
        began = time.perf_counter()
        await asyncio.gather(*map(ask, clients))
        rate = len(spent) / (time.perf_counter() - began)
    p50, p95 = np.percentile(spent, (50, 95))
    return round(float(p50), 2), round(float(p95), 2), round(rate, 1)


@contextmanager
def _served(entities: int, encoders: int, *, cache: bool) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "benchmarks.registryhttp", "--serve", folder]
        command += ["--entities", str(entities), "--encoders", str(encoders)]
        command += ["--cache"] if cache else []
        with Popen(command, stdout=PIPE, text=True) as running:
            if running.stdout is None or not (url := running.stdout.readline().strip()):
                raise RuntimeError("the server did not start")
            try:
                yield url
            finally:
                running.terminate()


async def _serve(folder: Path, *, entities: int, encoders: int, cache: bool) -> None:
    options = Options(
        cache=CacheOptions() if cache else _OFF, catalog_store_path=folder / "catalog.sqlite3"
    )
    embedder = LocalEmbedder(ALL_MODELS[:encoders])
    few = entities // _SHARE
    http = HttpOptions(port=0)
    async with Gateway(strategy="auto", embedder=embedder, options=options) as gateway:
        entries = [*_entries("agent", few), *_entries("skill", few)]
        for source in lifelike.servers(entities - len(entries)):
            gateway.add_source(source)
        await gateway.catalog.put(*entries)
        await gateway.snapshot(vectors=True)
        await serve_http(
            mcp_server(gateway),
            http,
            routes=api_routes(gateway, http),
            on_listening=lambda url: print(url, flush=True),
        )


def _entries(kind: str, count: int) -> list[Entry]:
    found = itertools.cycle(rows(_DATA / f"{kind}s.jsonl"))
    return [
        Entry(kind=kind, name=f"{row['name']} {number}", description=str(row["description"])[:1000])
        for number, row in zip(range(count), found, strict=False)
    ]


def main(
    *,
    entities: Annotated[int, typer.Option(help="In the catalog.")] = 1000,
    concurrent: Annotated[int, typer.Option(help="Clients at a time.")] = 10,
    requests: Annotated[int, typer.Option(help="With caches off.")] = 300,
    encoders: Annotated[int, typer.Option(help="Of the embedded model, 1 to 3.")] = len(ALL_MODELS),
    serve: Annotated[Path | None, typer.Option(hidden=True)] = None,
    cache: Annotated[bool, typer.Option("--cache", hidden=True)] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measure, or be the server that is measured."""
    if serve is not None:
        asyncio.run(_serve(serve, entities=entities, encoders=encoders, cache=cache))
        return
    found = measure(entities=entities, concurrent=concurrent, requests=requests, encoders=encoders)
    print_figures(found, as_json=as_json)


if __name__ == "__main__":
    typer.run(main)
