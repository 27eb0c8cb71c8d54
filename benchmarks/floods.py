"""What a server that floods costs the others: calls of an honest neighbour, and memory.

    python -m benchmarks.floods --json

* Each flood has a gateway of its own with an honest server. On the same loop a server of
  `flood_server` is listed or called again and again.
* The ratio is the median of the neighbour's calls under the flood over that without it, in turns
  of the same length, in one run.
* Of a ``served_…`` flood the gateway is a process of its own, with two clients: one calls the
  honest server, and another one calls the server that floods and listens.
* Memory is the peak of the process during the flood over what it held before.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import httpx2
from mcp import Client

from benchmarks.flood_server import FLOODS, HTTP, LISTS, SERVED
from gateway import Gateway, Options
from gateway.errors import Failed, attempt
from gateway.mcp.servers import HttpServer, StdioServer
from gateway.options import IndexOptions, UpstreamOptions
from gateway.sources.mcp import McpSource

_SERVER = str(Path(__file__).with_name("flood_server.py"))
_PAUSE_S = 0.05
_ACCEPT = {"Accept": "application/json, text/event-stream"}
_START = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "listener", "version": "0"},
}
_ASKED = {"progressToken": 1}
_SUBSCRIBED = "gateway:/flood/file:///a"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print the figures."""
    parser = argparse.ArgumentParser(prog="benchmarks.floods", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--only", nargs="+", default=FLOODS, choices=FLOODS, metavar="FLOOD")
    parser.add_argument("--seconds", type=float, default=5.0, help="how long each flood lasts")
    parser.add_argument("--rounds", type=int, default=2, help="how many times it begins anew")
    options = parser.parse_args(arguments)
    report = measure(options.only, seconds=options.seconds, rounds=options.rounds)
    summary = report if options.json else {key: report[key] for key in report if key != "rows"}
    sys.stdout.write(json.dumps(summary, indent=2) + "\n")


def measure(names: Sequence[str] = FLOODS, *, seconds: float, rounds: int) -> dict[str, Any]:
    """Return the figures of the floods *names*: the worst of each, and `rows`.

    Args:
        names: Of `FLOODS`.
        seconds: How long each turn lasts.
        rounds: How many turns each flood has.
    """
    rows = []
    for flood in names:
        rows.append(asyncio.run(_measure(flood, seconds, rounds)))
        sys.stderr.write("  ".join(f"{key} {value}" for key, value in rows[-1].items()) + "\n")
    return {
        "floods": len(rows),
        "worst_neighbour_ratio": max(row["neighbour_ratio"] for row in rows),
        "rss_growth_mb": max(row["rss_growth_mb"] for row in rows),
        "rows": rows,
    }


async def _measure(flood: str, seconds: float, rounds: int) -> dict[str, Any]:
    if flood in SERVED:
        return await _measure_served(flood, seconds, rounds)
    alone, under, said = list[float](), list[float](), set[str]()
    growth = 0.0
    with TemporaryDirectory() as folder:
        options = Options(
            vector_store_path=Path(folder, "vectors"),
            catalog_store_path=Path(folder, "catalog"),
            index=IndexOptions(saved=False),
        )
        async with Gateway(strategy="graph", options=options) as gateway, _target(flood) as target:
            gateway.add_server("honest", command=sys.executable, args=(_SERVER, "none"))
            work = partial(gateway.invoke, "honest/good", {})
            await _calls(work, seconds)
            for _ in range(rounds):
                alone += await _calls(work, seconds)
                before = _memory("VmRSS")
                _begin_peak()
                source = McpSource(
                    "flood", target, bridge=gateway.bridge, options=UpstreamOptions()
                )
                flooding = asyncio.create_task(_provoke(source, flood, said))
                under += await _calls(work, seconds)
                while flood in LISTS and not said:
                    under += await _calls(work, seconds)
                growth = max(growth, _memory("VmHWM") - before)
                flooding.cancel()
                await asyncio.wait({flooding})
                await source.close()
    return _row(flood, alone, under, growth, said)


async def _measure_served(flood: str, seconds: float, rounds: int) -> dict[str, Any]:
    """Measure calls of a client of the served gateway, while another one listens."""
    alone, under, said = list[float](), list[float](), set[str]()
    growth = 0.0
    servers = {
        name: {"command": sys.executable, "args": [_SERVER, kind]}
        for name, kind in (("honest", "none"), ("flood", flood))
    }
    with TemporaryDirectory() as folder:
        config = Path(folder, "servers.json")
        config.write_text(json.dumps({"mcpServers": servers}), "utf-8")  # noqa: ASYNC240  (small)
        command = (sys.executable, "-m", "benchmarks.serving", "gateway", "http", str(config))
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: ASYNC220
            assert process.stdout is not None  # noqa: S101
            url = process.stdout.readline().strip()
            try:
                async with Client(url) as client:
                    work = partial(_call_served, client, "honest/good")
                    await _calls(work, seconds)
                    for _ in range(rounds):
                        alone += await _calls(work, seconds)
                        before = _memory("VmRSS", process.pid)
                        _begin_peak(process.pid)
                        listening = asyncio.create_task(_listen(url, flood, said))
                        under += await _calls(work, seconds)
                        growth = max(growth, _memory("VmHWM", process.pid) - before)
                        listening.cancel()
                        await asyncio.wait({listening})
            finally:
                process.terminate()
    return _row(flood, alone, under, growth, said)


async def _listen(url: str, flood: str, said: set[str]) -> None:
    """Call the server that floods, again and again, as a client that hears all and reads little.

    A client of the SDK would take the time of the calls that are measured.
    """
    async with httpx2.AsyncClient(trust_env=False, headers=_ACCEPT, timeout=None) as client:
        started = await client.post(url, json=_request("initialize", _START))
        client.headers["mcp-session-id"] = started.headers["mcp-session-id"]
        await client.post(url, json={"jsonrpc": "2.0", "method": "notifications/initialized"})
        await client.post(url, json=_request("tools/list", {}))
        if flood.endswith("updated"):
            await client.post(url, json=_request("resources/subscribe", {"uri": _SUBSCRIBED}))
        async with asyncio.TaskGroup() as group:
            group.create_task(_read(client.stream("GET", url)))
            while True:
                call = _request("tools/call", {**_call("flood/good"), "_meta": _ASKED})
                said.add(await _read(client.stream("POST", url, json=call)))
                await asyncio.sleep(_PAUSE_S)


async def _read(answering: AbstractAsyncContextManager[httpx2.Response]) -> str:
    """Read an answer of any length; return the end of it."""
    last = b""
    async with answering as answer:
        async for chunk in answer.aiter_raw():
            last = chunk
    return last.decode()


def _request(method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def _call(tool: str) -> dict[str, Any]:
    return {"name": "call_tool", "arguments": {"name": tool, "arguments": {}}}


async def _call_served(client: Client, tool: str) -> None:
    answer = await client.call_tool(**_call(tool))
    if answer.is_error:
        raise RuntimeError(str(answer.content))


def _row(
    flood: str, alone: list[float], under: list[float], growth: float, said: set[str]
) -> dict[str, Any]:
    return {
        "flood": flood,
        "neighbour_ratio": round(median(under) / median(alone), 2),
        "alone_ms": round(1000 * median(alone), 2),
        "worst_ms": round(1000 * max(under)),
        "rss_growth_mb": round(growth, 1),
        "said": sorted(said),
    }


@asynccontextmanager
async def _target(flood: str) -> AsyncIterator[StdioServer | HttpServer]:
    if flood not in HTTP:
        yield StdioServer(sys.executable, (_SERVER, flood))
        return
    command = (sys.executable, _SERVER, flood, "--http")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: ASYNC220
        assert process.stdout is not None  # noqa: S101
        try:
            yield HttpServer(f"http://127.0.0.1:{process.stdout.readline().strip()}/mcp")
        finally:
            process.kill()


async def _provoke(source: McpSource, flood: str, said: set[str]) -> None:
    """List or call the server that floods, again and again; note in *said* what that came to."""
    is_list = flood.removeprefix("http_") in LISTS
    while True:
        work = source.list_tools() if is_list else source.call("good", {}, tool_id="flood/good")
        answer = await attempt(work)
        said.add(re.sub(r"[0-9.]+ s", "… s", answer.reason) if isinstance(answer, Failed) else "ok")
        await asyncio.sleep(_PAUSE_S)


async def _calls(work: Callable[[], Awaitable[object]], seconds: float) -> list[float]:
    """Call the honest server for *seconds*; return how long each call took."""
    took = list[float]()
    end = time.perf_counter() + seconds
    while (began := time.perf_counter()) < end:
        await work()
        took.append(time.perf_counter() - began)
    return took


def _memory(key: str, process: int | str = "self") -> float:
    """Return a figure of a process's memory, in MB."""
    status = Path(f"/proc/{process}/status").read_text("ascii")
    lines = dict(line.split(":", 1) for line in status.splitlines())
    return int(lines[key].split()[0]) / 1024


def _begin_peak(process: int | str = "self") -> None:
    """Begin the peak of a process's memory anew; see proc(5)."""
    Path(f"/proc/{process}/clear_refs").write_text("5", encoding="ascii")


if __name__ == "__main__":
    main()
