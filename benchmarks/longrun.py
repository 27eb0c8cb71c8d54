"""A long run: searches, reconnects of an upstream and sessions of clients, in ten equal parts.

    python -m benchmarks.longrun --json

After each part the garbage is collected and what is left is counted: megabytes of resident memory,
objects of ours and of the SDK, tasks, threads, open files. The first part makes what is made once.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import tempfile
import threading
from pathlib import Path
from typing import Annotated

import typer
from mcp import Client

from benchmarks.soak import memory_mb
from gateway import Gateway, Options
from gateway.options import CacheOptions, UpstreamOptions
from gateway.serve.http_options import HttpOptions
from gateway.testing import HashingEmbedder
from tests.apps.serve.test_http import served

_TOOLS = 300
_OURS = ("gateway.", "mcp.", "asyncio.", "_asyncio.", "builtins.coroutine")
_SERVER = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    answers = {
        "initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                       "serverInfo": {"name": "tiny", "version": "0"}},
        "tools/list": {"tools": [{"name": "weigh", "inputSchema": {"type": "object"}}]},
        "tools/call": {"content": [{"type": "text", "text": "weighed"}]},
    }
    answer = answers.get(message["method"])
    body = {"error": {"code": -32601, "message": "no"}} if answer is None else {"result": answer}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **body}), flush=True)
"""
app = typer.Typer(add_completion=False)


@app.command()
def main(
    *,
    searches: Annotated[int, typer.Option(help="Different queries.")] = 20_000,
    reconnects: Annotated[int, typer.Option(help="Calls, each with a process of its own.")] = 1_000,
    sessions: Annotated[int, typer.Option(help="Clients that connect, search and leave.")] = 1_000,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Run, and print what is left after each part."""
    figures = asyncio.run(run(searches, reconnects, sessions))
    if as_json:
        print(json.dumps(figures))
    else:
        print("\n".join(f"{name:12} {values}" for name, values in figures.items()))


async def run(
    searches: int,
    reconnects: int,
    sessions: int,
    *,
    parts: int = 10,
    cache: CacheOptions | None = None,
) -> dict[str, list[float]]:
    """Do so many of each, and return what is left after each part, by name.

    Args:
        searches: Different queries; the first part must fill the caches, whatever their size.
        reconnects: Calls of an upstream, each with a process of its own.
        sessions: Clients that connect, search and leave.
        parts: So many parts, each of as much.
        cache: The sizes of caches.
    """
    figures: dict[str, list[float]] = {}
    embedder = HashingEmbedder()
    with tempfile.TemporaryDirectory() as place:
        async with (
            _gateway(Path(place), cache or CacheOptions(), embedder) as gateway,
            served(gateway, HttpOptions(port=0)) as url,
        ):
            for part in range(parts):
                for number in range(searches // parts):
                    # Few words, so that what is cached by word is made in the first part.
                    words = f"{part}{number % 10} {number // 10 % 100} {number // 1000}"
                    await gateway.search(f"weigh the parcels of customer {words}")
                for _ in range(reconnects // parts):
                    await gateway.invoke("tiny/weigh")
                for _ in range(sessions // parts):
                    async with Client(url) as client:
                        await client.call_tool("search_tools", {"query": "weigh a parcel"})
                # The embedder of tests remembers what it was asked.
                embedder.batches.clear()
                for name, value in await _left():
                    figures.setdefault(name, []).append(value)
    return figures


def echo(word: str) -> str:
    """Repeat a word."""
    return word


def _gateway(folder: Path, cache: CacheOptions, embedder: HashingEmbedder) -> Gateway:
    options = Options(
        vector_store_path=folder / "vectors.sqlite3",
        catalog_store_path=folder / "catalog.sqlite3",
        cache=cache,
        upstream=UpstreamOptions(lifecycle="ephemeral"),
    )
    gateway = Gateway(strategy="auto", embedder=embedder, options=options)
    for number in range(_TOOLS):
        about = f"Weigh parcels of kind {number} for customer {number % 17}."
        gateway.add_tool(echo, name=f"weigh_{number}", description=about)
    gateway.add_server("tiny", command=sys.executable, args=("-ISc", _SERVER))
    return gateway


async def _left() -> list[tuple[str, float]]:
    # What has just ended is let go of in the next steps of the loop.
    for _ in range(100):
        await asyncio.sleep(0)
    gc.collect()
    kinds = (type(each) for each in gc.get_objects())
    ours = sum(f"{kind.__module__}.{kind.__qualname__}".startswith(_OURS) for kind in kinds)
    return [
        ("memory_mb", memory_mb()),
        ("objects", ours),
        ("tasks", len(asyncio.all_tasks())),
        ("threads", threading.active_count()),
        ("files", _open_files()),
    ]


def _open_files() -> int:
    """Return how many files this process has open; 0 where nobody tells."""
    folder = Path("/proc/self/fd")
    return len([*folder.iterdir()]) if folder.exists() else 0


if __name__ == "__main__":
    app()
