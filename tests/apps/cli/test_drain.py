"""The shutdown of `gateway serve --http`, with a real process and real clients."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
from mcp import Client

from gateway.testing import Gate, ScriptedModel, Turn
from tests.apps.cli.running import Place
from tests.apps.cli.test_serve import all_threads_children

PATIENCE_S = 120
CALLS = 8
"""Number of calls that run at the shutdown, for each of the two clients (modern and legacy MCP)."""
SEARCHES = 4
HOLD = """
import asyncio, sys
from mcp import types
from mcp.server import Server
from mcp.server.stdio import stdio_server

async def list_tools(context, params):
    tool = types.Tool(name="hold", description="Hold a call.", input_schema={"type": "object"})
    return types.ListToolsResult(tools=[tool])

async def call(context, params):
    reader, writer = await asyncio.open_connection("127.0.0.1", int(sys.argv[1]))
    text = (await reader.read()).decode()
    writer.close()
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)])

async def main():
    server = Server("hold", on_list_tools=list_tools, on_call_tool=call)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())

asyncio.run(main())
"""
"""Program of a server whose calls last until the test releases them."""


class Holder:
    """A listener to which the server of `HOLD` connects once per call, and which answers when the
    test releases all calls.
    """

    def __init__(self) -> None:
        self._waiting = asyncio.Queue[None]()
        self._released = asyncio.Event()
        self.port = 0

    async def answer(self, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Hold one call."""
        self._waiting.put_nowait(None)
        await self._released.wait()
        writer.write(b"done")
        writer.close()

    async def arrived(self, count: int) -> None:
        """Wait until *count* more calls are held."""
        for _ in range(count):
            await self._waiting.get()

    def release(self) -> None:
        """Release all calls."""
        self._released.set()


@asynccontextmanager
async def open_holder() -> AsyncIterator[Holder]:
    """Yield the listener that `HOLD` connects to."""
    holder = Holder()
    async with await asyncio.start_server(holder.answer, "127.0.0.1", 0) as server:
        holder.port = server.sockets[0].getsockname()[1]
        yield holder


def client_of(url: str) -> httpx2.AsyncClient:
    base = url.removesuffix("/mcp")
    return httpx2.AsyncClient(base_url=base, trust_env=False, timeout=PATIENCE_S)


async def get_until(http: httpx2.AsyncClient, path: str, status: int) -> Any:
    """Send GET requests for *path* until the answer has *status*; return its body."""
    while (answer := await http.get(path)).status_code != status:
        pass
    return answer.json()


async def search(http: httpx2.AsyncClient, query: str) -> httpx2.Response:
    body = {"query": query, "max_results": 1}
    return await http.post("/api/search/semantic", json=body)


async def call(client: Client) -> str:
    done = await client.call_tool("call_tool", {"name": "hold/hold"})
    return str(done.content[0].model_dump()["text"])


async def count_events(client: Client, opened: asyncio.Event) -> int:
    """Count the events of a subscription until the server ends its stream; a broken stream raises
    an error.
    """
    async with client.listen(tools_list_changed=True) as events:
        opened.set()
        return len([event async for event in events])


@asynccontextmanager
async def open_rewriter() -> AsyncIterator[tuple[Gate, dict[str, str]]]:
    """Yield the gate of a model that rewrites queries, and the environment variables that make a
    gateway use it.
    """
    with ScriptedModel(lambda _: Turn("hold a call")) as model, model.gate() as gate:
        base = "GATEWAY_NORMALIZE_"
        yield gate, {f"{base}BASE_URL": model.base_url, f"{base}API_KEY": "own-key"}


def server_of(holder: Holder) -> dict[str, object]:
    return {"command": sys.executable, "args": ["-c", HOLD, str(holder.port)]}


async def reload(process: subprocess.Popen[str], messages: Iterator[str]) -> None:
    """Make the process reload its configuration, and wait for its message."""
    process.send_signal(signal.SIGHUP)
    await asyncio.to_thread(
        next, (message for message in messages if "configuration reloaded" in message)
    )


def are_gone(processes: Sequence[str]) -> bool:
    return bool(processes) and not any(Path("/proc", process).exists() for process in processes)


async def test_serve_waits_for_running_calls_after_sigterm(place: Place) -> None:
    """Requests after SIGTERM are refused, and event streams end. A reload before SIGTERM ends no
    session.
    """
    opened = asyncio.Event()
    async with asyncio.timeout(PATIENCE_S), open_holder() as holder, open_rewriter() as (gate, env):
        options = ("--config", place.config({"hold": server_of(holder)}), "--confirm", "never")
        with place.serve(*options, "--normalize", "small", **env) as (process, messages, url):
            async with (
                client_of(url) as http,
                Client(url) as modern,
                Client(url, mode="legacy") as legacy,
                asyncio.TaskGroup() as tasks,
            ):
                ready = await get_until(http, "/readyz", 200)
                # A client lists the tools after it called a tool that was not in its list.
                await asyncio.gather(modern.list_tools(), legacy.list_tools())
                calls = [call(item) for item in (modern, legacy) * CALLS]
                searches = [search(http, f"Привіт {number}") for number in range(SEARCHES)]
                pending = asyncio.gather(*calls), asyncio.gather(*searches)
                heard = tasks.create_task(count_events(modern, opened))
                await asyncio.gather(holder.arrived(2 * CALLS), opened.wait())
                await gate.arrived(SEARCHES, timeout_s=PATIENCE_S)
                children = all_threads_children(process.pid)
                await reload(process, messages)
                process.terminate()
                draining = await get_until(http, "/readyz", 503)
                late, alive = await search(http, "too late"), await http.get("/livez")
                holder.release()
                gate.release()
                texts, result = await pending[0], await pending[1]
            code = await asyncio.to_thread(process.wait, PATIENCE_S)

    assert ("ready", "draining") == (ready["status"], draining["status"])
    assert (503, "draining") == (late.status_code, late.json()["code"])
    assert ("1", 200) == (late.headers["retry-after"], alive.status_code)
    assert ["done"] * 2 * CALLS == texts
    assert [200] * SEARCHES == [answer.status_code for answer in result]
    assert (0, 0) == (heard.result(), code)
    assert are_gone(children)
