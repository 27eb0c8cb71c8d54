"""What supervision costs: starts and calls of real servers, beside bare sessions of the SDK.

* Both sides of a ratio in the same process, in turns; medians.
* Without ``--config`` the servers are the demo's.
* A search goes through our MCP server, each with another query, beside the SDK's server with a
  tool that does nothing; both in this process.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from mcp import Client, StdioServerParameters, stdio_client, types
from mcp.server import Server

from gateway import Gateway, Options, UpstreamOptions
from gateway.catalog.manifests import read_manifest
from gateway.serve.server import mcp_server
from gateway.upstream.servers import StdioServer

BIN = Path(sys.executable).parent
DEMO = {
    "time": StdioServer(str(BIN / "mcp-server-time")),
    "excel": StdioServer(str(BIN / "excel-mcp-server"), ("stdio",)),
    "word": StdioServer(str(BIN / "word_mcp_server")),
}
_CALL = ("time", "get_current_time", '{"timezone": "UTC"}')


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is measured."""

    servers: dict[str, StdioServer]
    server: str
    tool: str
    arguments: dict[str, object]
    starts: int
    calls: int


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print the figures."""
    parser = argparse.ArgumentParser(prog="benchmarks.upstreams", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--config", type=Path, help="an mcp.json; only its stdio servers count")
    parser.add_argument("--call", nargs=3, default=_CALL, metavar=("SERVER", "TOOL", "ARGUMENTS"))
    parser.add_argument("--starts", type=int, default=3)
    parser.add_argument("--calls", type=int, default=200)
    asked = parser.parse_args(arguments)
    server, tool, given = asked.call
    plan = Plan(
        servers=_servers(asked.config),
        server=server,
        tool=tool,
        arguments=json.loads(given),
        starts=asked.starts,
        calls=asked.calls,
    )
    figures = asyncio.run(measured(plan))
    if asked.json:
        print(json.dumps(figures))
    else:
        print("\n".join(f"{name:24} {value}" for name, value in figures.items()))


def _servers(config: Path | None) -> dict[str, StdioServer]:
    if config is None:
        return DEMO
    found = read_manifest(config).servers
    return {name: each for name, each in found.items() if isinstance(each, StdioServer)}


async def measured(plan: Plan) -> dict[str, object]:
    """Give the figures; ratios are ours over the SDK's, so 1 is nothing lost."""
    bare: list[float] = []
    ours: list[float] = []
    warm_s, opened, tools = 0.0, 0, 0
    for _ in range(plan.starts):
        bare.append(await _timed(lambda: _bare_start(plan.servers)))
        with tempfile.TemporaryDirectory() as folder:
            ours.append(await _timed(lambda folder=Path(folder): _start(plan, folder)))  # type: ignore[misc]  # bound now
            warm_s, opened, tools = await _warm(plan, Path(folder))
    direct, proxied, cpu = await _calls(plan)
    nothing, searched = await _searches(plan)
    return {
        "servers": len(plan.servers),
        "tools": tools,
        "cold_start_ratio": median(ours) / median(bare),
        "cold_start_s": median(ours),
        "warm_start_s": warm_s,
        "warm_start_sessions": opened,
        "call_overhead_ratio": median(proxied) / median(direct),
        "call_ms": 1000 * median(proxied),
        "call_cpu_ratio": cpu,
        "search_overhead_ratio": median(searched) / median(nothing),
        "search_ms": 1000 * median(searched),
    }


async def _timed(work: Callable[[], Awaitable[object]]) -> float:
    began = time.perf_counter()
    await work()
    return time.perf_counter() - began


async def _bare_start(servers: dict[str, StdioServer]) -> None:
    """Open a session to each server and list it, all at once; closing is part of it."""

    async def one(target: StdioServer) -> None:
        async with Client(stdio_client(_parameters(target)), cache=None) as client:
            await client.list_tools()

    await asyncio.gather(*(one(each) for each in servers.values()))


def _parameters(target: StdioServer) -> StdioServerParameters:
    return StdioServerParameters(
        command=target.command, args=list(target.args), env=dict(target.env), cwd=target.cwd
    )


def _gateway(plan: Plan, folder: Path) -> Gateway:
    options = Options(
        catalog_store_path=folder / "catalog.sqlite3",
        upstream=UpstreamOptions(first_listing_s=120),
    )
    gateway = Gateway(options=options)
    for name, each in plan.servers.items():
        gateway.add_server(name, command=each.command, args=each.args, env=each.env, cwd=each.cwd)
    return gateway


async def _start(plan: Plan, folder: Path) -> None:
    async with _gateway(plan, folder) as gateway:
        await gateway.search("what time is it")


async def _warm(plan: Plan, folder: Path) -> tuple[float, int, int]:
    """Give the seconds of a first search with known servers, sessions it opened, and tools."""
    async with _gateway(plan, folder) as gateway:
        took = await _timed(lambda: gateway.search("what time is it"))
        states = gateway.server_states()
        return (
            took,
            sum(state != "idle" for state in states.values()),
            len(await gateway.list_tools()),
        )


async def _calls(plan: Plan) -> tuple[list[float], list[float], float]:
    direct: list[float] = []
    proxied: list[float] = []
    cpu = [0.0, 0.0]
    async with AsyncExitStack() as stack:
        target = plan.servers[plan.server]
        client = await stack.enter_async_context(Client(stdio_client(_parameters(target))))
        await client.list_tools()
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        gateway = await stack.enter_async_context(_gateway(plan, Path(folder)))
        tool = f"{plan.server}/{plan.tool}"
        await gateway.invoke(tool, plan.arguments)
        for _ in range(plan.calls):
            began = time.process_time()
            direct.append(await _timed(lambda: client.call_tool(plan.tool, plan.arguments)))
            middle = time.process_time()
            proxied.append(await _timed(lambda: gateway.invoke(tool, plan.arguments)))
            cpu[0] += middle - began
            cpu[1] += time.process_time() - middle
    return direct, proxied, cpu[1] / cpu[0]


def _idle_server() -> Server[Any]:
    idle = types.Tool(name="idle", input_schema={"type": "object"})

    async def listed(_context: object, _params: object) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[idle])

    async def called(_context: object, _params: object) -> types.CallToolResult:
        return types.CallToolResult(content=[types.TextContent(type="text", text="")])

    return Server("idle", on_list_tools=listed, on_call_tool=called)


async def _searches(plan: Plan) -> tuple[list[float], list[float]]:
    nothing: list[float] = []
    searched: list[float] = []
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        gateway = await stack.enter_async_context(_gateway(plan, Path(folder)))
        idle = await stack.enter_async_context(Client(_idle_server()))
        ours = await stack.enter_async_context(Client(mcp_server(gateway)))
        await idle.list_tools()
        await ours.list_tools()
        for number in range(plan.calls):
            query = {"query": f"write the total of sheet {number} into a document"}
            nothing.append(await _timed(lambda: idle.call_tool("idle", {})))
            searched.append(
                await _timed(lambda query=query: ours.call_tool("search_tools", query))  # type: ignore[misc]  # bound now
            )
    return nothing, searched


if __name__ == "__main__":
    main()
