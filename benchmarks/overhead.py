"""What a search through our MCP server costs beside a call that does nothing.

* On each transport the same client of the SDK speaks to two servers, in turns: the SDK's own with
  an idle tool, and ours. Over stdio and HTTP both are processes of their own.
* Each query is asked twice: anew, and then as one that is remembered.
* Where others work beside it, seconds say little: ``cpu`` figures are of processor time, of the
  client and of the server together, for a remembered query and the idle call in turns.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from subprocess import PIPE
from typing import Any, Literal, TextIO, get_args

from mcp import Client, StdioServerParameters, stdio_client

from benchmarks.serving import idle_server
from gateway import Gateway
from gateway.serve.mcp_server import mcp_server

Transport = Literal["memory", "stdio", "http"]
TRANSPORTS: tuple[Transport, ...] = get_args(Transport)
_QUERIES = (
    "write the total of sheet {} into a document",
    "what time is it in city {}",
    "list the files of folder {}",
    "show the commits of branch {}",
)


@dataclass(frozen=True, kw_only=True)
class _Side:
    """A client, and the processes of its server."""

    client: Client
    processes: frozenset[int]

    def spent(self) -> float:
        """Return the processor time of the server's processes so far, in s; 0 without any."""
        tasks = [each for pid in self.processes for each in Path(f"/proc/{pid}/task").glob("*")]
        texts = [(each / "schedstat").read_text("utf-8").split()[0] for each in tasks]
        return sum(map(int, texts)) / 1e9


async def measured(
    gateway: Gateway,
    config: Path,
    calls: int,
    quiet: TextIO,
    transports: Sequence[Transport] = TRANSPORTS,
) -> dict[str, Mapping[str, float]]:
    """Return the medians, and their ratios to the idle call, by transport.

    Args:
        gateway: Serves in this process; the others read *config* for theirs.
        config: An ``mcp.json``, in a folder that holds the tool lists of its servers.
        calls: How many of each kind.
        quiet: Where what the processes print besides goes.
        transports: Which.
    """
    found: dict[str, Mapping[str, float]] = {}
    for transport in transports:
        async with AsyncExitStack() as stack:
            open_one = stack.enter_async_context
            idle = await open_one(_client("idle", transport, gateway, config, quiet))
            ours = await open_one(_client("gateway", transport, gateway, config, quiet))
            found[transport] = {
                **await _compared(idle.client, ours.client, calls),
                **await _worked(idle, ours, calls),
            }
    return found


def children() -> set[int]:
    """Return the processes that this one started and that are not gone; zombies count."""
    tasks = Path("/proc/self/task").glob("*/children")
    return {int(pid) for task in tasks for pid in task.read_text("utf-8").split()}


@asynccontextmanager
async def _client(
    kind: str, transport: Transport, gateway: Gateway, config: Path, quiet: TextIO
) -> AsyncIterator[_Side]:
    before = children()
    async with _opened(kind, transport, gateway, config, quiet) as client:
        yield _Side(client=client, processes=frozenset(children() - before))


@asynccontextmanager
async def _opened(
    kind: str, transport: Transport, gateway: Gateway, config: Path, quiet: TextIO
) -> AsyncIterator[Client]:
    program = ["-m", "benchmarks.serving", kind, transport, str(config)]
    if transport == "memory":
        async with Client(idle_server() if kind == "idle" else mcp_server(gateway)) as client:
            yield client
    elif transport == "stdio":
        place = StdioServerParameters(command=sys.executable, args=program, cwd=Path.cwd())
        async with Client(stdio_client(place, errlog=quiet)) as client:
            yield client
    else:
        child = await asyncio.create_subprocess_exec(
            sys.executable, *program, stdout=PIPE, stderr=quiet
        )
        try:
            address = await child.stdout.readline() if child.stdout is not None else b""
            async with Client(address.decode().strip()) as client:
                yield client
        finally:
            child.terminate()
            await child.wait()


async def _compared(idle: Client, ours: Client, calls: int) -> Mapping[str, float]:
    await idle.list_tools()
    await ours.list_tools()
    await ours.call_tool("search_tools", {"query": "anything"})
    times: dict[str, list[float]] = {"idle": [], "fresh": [], "cached": []}
    for number in range(calls):
        query = {"query": _QUERIES[number % len(_QUERIES)].format(number)}
        for kind, client, tool, given in (
            ("fresh", ours, "search_tools", query),
            ("idle", idle, "idle", {}),
            ("cached", ours, "search_tools", query),
        ):
            times[kind].append(await _timed(client, tool, given))
    medians = {kind: median(each) for kind, each in times.items()}
    return {
        "idle_ms": 1000 * medians["idle"],
        "fresh_ms": 1000 * medians["fresh"],
        "cached_ms": 1000 * medians["cached"],
        "fresh_ratio": medians["fresh"] / medians["idle"],
        "cached_ratio": medians["cached"] / medians["idle"],
    }


async def _worked(idle: _Side, ours: _Side, calls: int) -> Mapping[str, float]:
    """Return the processor time of a call, and the ratio to the idle one's."""
    query = {"query": _QUERIES[0].format(0)}
    await ours.client.call_tool("search_tools", query)
    spent = {"idle": -idle.spent(), "cached": -ours.spent()}
    for _ in range(calls):
        for kind, side, tool, given in (
            ("idle", idle, "idle", {}),
            ("cached", ours, "search_tools", query),
        ):
            before = time.process_time()
            await side.client.call_tool(tool, given)
            spent[kind] += time.process_time() - before
    spent["idle"] += idle.spent()
    spent["cached"] += ours.spent()
    return {
        "idle_cpu_ms": 1000 * spent["idle"] / calls,
        "cached_cpu_ms": 1000 * spent["cached"] / calls,
        "cached_cpu_ratio": spent["cached"] / spent["idle"],
    }


async def _timed(client: Client, tool: str, given: dict[str, Any]) -> float:
    began = time.perf_counter()
    await client.call_tool(tool, given)
    return time.perf_counter() - began
