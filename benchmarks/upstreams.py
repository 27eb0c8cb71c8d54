"""What supervision costs: starts and calls of real servers, beside bare sessions of the SDK.

    python -m benchmarks.upstreams --install FOLDER --json

* Both sides of a ratio in the same run, in turns; medians.
* ``--install`` puts the servers of `realservers` into a folder of their own; ``--config`` takes
  those of an ``mcp.json``; without either they are the demo's.
* `overhead` compares searches through our MCP server with calls that do nothing;
  ``search_overhead_ratio`` is that of a remembered search over the last of ``--transports``.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TextIO

from mcp import Client, StdioServerParameters, stdio_client

from benchmarks import overhead
from benchmarks.realservers import installed
from gateway import Gateway, Options
from gateway.config.mcp_json import read_manifest
from gateway.mcp.servers import StdioServer
from gateway.options import UpstreamOptions

BIN = Path(sys.executable).parent
DEMO = {
    "time": StdioServer(str(BIN / "mcp-server-time")),
    "excel": StdioServer(str(BIN / "excel-mcp-server"), ("stdio",)),
    "word": StdioServer(str(BIN / "word_mcp_server")),
}
_CALL = ("time", "get_current_time", '{"timezone": "UTC"}')
_ROOM = UpstreamOptions(first_listing_s=300, connect_timeout_s=300, list_timeout_s=300)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is measured."""

    servers: dict[str, StdioServer]
    server: str
    tool: str
    arguments: dict[str, object]
    starts: int
    calls: int
    transports: tuple[overhead.Transport, ...] = overhead.TRANSPORTS


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print the figures."""
    parser = argparse.ArgumentParser(prog="benchmarks.upstreams", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--install", type=Path, help="where real servers are, or come to be")
    parser.add_argument("--config", type=Path, help="an mcp.json; only its stdio servers count")
    parser.add_argument("--call", nargs=3, default=_CALL, metavar=("SERVER", "TOOL", "ARGUMENTS"))
    parser.add_argument("--starts", type=int, default=3)
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument(
        "--transports", nargs="+", default=overhead.TRANSPORTS, choices=overhead.TRANSPORTS
    )
    options = parser.parse_args(arguments)
    server, tool, given = options.call
    plan = Plan(
        servers=_servers(options.config) if options.install is None else installed(options.install),
        server=server,
        tool=tool,
        arguments=json.loads(given),
        starts=options.starts,
        calls=options.calls,
        transports=tuple(options.transports),
    )
    with Path(os.devnull).open("w", encoding="utf-8") as quiet:
        figures = asyncio.run(measured(plan, quiet))
    if options.json:
        print(json.dumps(figures))
    else:
        print("\n".join(f"{name:24} {value}" for name, value in figures.items()))


def _servers(config: Path | None) -> dict[str, StdioServer]:
    if config is None:
        return DEMO
    found = read_manifest(config).servers
    return {name: each for name, each in found.items() if isinstance(each, StdioServer)}


async def measured(plan: Plan, quiet: TextIO) -> dict[str, object]:
    """Return the figures; ratios are ours over the SDK's, so 1 is nothing lost.

    What servers print besides goes to *quiet*.
    """
    bare: list[float] = []
    ours: list[float] = []
    protocols: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for number in range(plan.starts):
            folder = Path(place) / str(number)
            protocols = Counter()
            bare.append(await _timed(lambda: _bare_start(plan.servers, protocols, quiet)))  # noqa: B023  (awaited at once)
            ours.append(await _timed(lambda: _start(plan, folder)))  # noqa: B023  (awaited at once)
        warm = await _warm(plan, folder)
        direct, proxied, cpu = await _calls(plan, folder, quiet)
        config = _written(plan, folder)
        async with _gateway(plan, folder) as gateway:
            searches = await overhead.measured(gateway, config, plan.calls, quiet, plan.transports)
    return {
        "servers": len(plan.servers),
        "protocols": dict(sorted(protocols.items())),
        **warm,
        "cold_start_ratio": median(ours) / median(bare),
        "cold_start_s": median(ours),
        "call_overhead_ratio": median(proxied) / median(direct),
        "call_ms": 1000 * median(proxied),
        "call_cpu_ratio": cpu,
        "search_overhead_ratio": searches[plan.transports[-1]]["cached_ratio"],
        "search_overhead": searches,
    }


async def _timed(work: Callable[[], Awaitable[object]]) -> float:
    began = time.perf_counter()
    await work()
    return time.perf_counter() - began


async def _bare_start(
    servers: dict[str, StdioServer], protocols: Counter[str], quiet: TextIO
) -> None:
    """Open a session to each server and list it, all at once; closing is part of it."""

    async def one(target: StdioServer) -> None:
        async with Client(stdio_client(_parameters(target), errlog=quiet), cache=None) as client:
            await client.list_tools()
            protocols[client.protocol_version] += 1

    await asyncio.gather(*(one(each) for each in servers.values()))


def _parameters(target: StdioServer) -> StdioServerParameters:
    return StdioServerParameters(
        command=target.command, args=list(target.args), env=dict(target.env), cwd=target.cwd
    )


def _written(plan: Plan, folder: Path) -> Path:
    config = folder / "mcp.json"
    table = {
        name: {
            "command": each.command,
            "args": list(each.args),
            "env": dict(each.env),
            **({} if each.cwd is None else {"cwd": str(each.cwd)}),
        }
        for name, each in plan.servers.items()
    }
    config.write_text(json.dumps({"mcpServers": table}), "utf-8")
    return config


def _gateway(plan: Plan, folder: Path) -> Gateway:
    options = Options(catalog_store_path=folder / "catalog.sqlite3", upstream=_ROOM)
    gateway = Gateway(strategy="graph", options=options)
    for name, each in plan.servers.items():
        gateway.add_server(name, command=each.command, args=each.args, env=each.env, cwd=each.cwd)
    return gateway


async def _start(plan: Plan, folder: Path) -> None:
    async with _gateway(plan, folder) as gateway:
        await gateway.search("what time is it")


async def _warm(plan: Plan, folder: Path) -> Mapping[str, object]:
    """Tell of a first search with known servers: how long, what it started, what it found."""
    async with _gateway(plan, folder) as gateway:
        took = await _timed(lambda: gateway.search("what time is it"))
        states = gateway.server_states()
        return {
            "tools": len(await gateway.list_tools()),
            "warm_start_s": took,
            "warm_start_sessions": sum(state != "idle" for state in states.values()),
            "warm_start_processes": len(overhead.children()),
        }


async def _calls(plan: Plan, folder: Path, quiet: TextIO) -> tuple[list[float], list[float], float]:
    direct: list[float] = []
    proxied: list[float] = []
    cpu = [0.0, 0.0]
    async with AsyncExitStack() as stack:
        place = stdio_client(_parameters(plan.servers[plan.server]), errlog=quiet)
        client = await stack.enter_async_context(Client(place))
        await client.list_tools()
        gateway = await stack.enter_async_context(_gateway(plan, folder))
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


if __name__ == "__main__":
    main()
