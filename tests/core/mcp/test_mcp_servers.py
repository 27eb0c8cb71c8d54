"""Real MCP servers: targets, transports, and failures to connect."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from mcp import StdioServerParameters, stdio_client
from mcp.server import MCPServer, Server
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from gateway.config.mcp_json import read_manifest
from gateway.errors import ConfigError, UpstreamError
from gateway.mcp import HttpServer, StdioServer
from gateway.mcp.session import Session
from gateway.options import UpstreamOptions
from gateway.runtime.background_loop import Bridge
from gateway.sources import McpSource
from gateway.types import Filters
from tests.conftest import OpenGateway
from tests.core.mcp.conftest import HERE, PATIENCE_S, opened, served
from tests.core.mcp.servers.plain import plain

BIN = Path(sys.executable).parent


async def test_server_object_runs_in_this_process_and_is_found_by_its_instructions(
    open_gateway: OpenGateway,
) -> None:
    """The object is of the SDK's high-level class, which most examples use."""
    server = MCPServer("ledger", instructions="Keeps the books of a firm.")

    @server.tool()
    def double(number: int) -> int:
        """Double it."""
        return number * 2

    gateway = open_gateway()
    gateway.add_server("srv", server=server)
    servers = Filters(kinds=frozenset({"server"}))
    result = await gateway.search("books of the firm", filters=servers, ranking="lexical")

    assert [("srv", "Keeps the books of a firm.")] == [
        (match.server, match.description) for match in result.matches
    ]
    assert "8" == (await gateway.invoke("srv/double", {"number": 4})).text


@pytest.mark.parametrize(
    ("command", "args", "count"),
    [("mcp-server-time", (), 2), ("excel-mcp-server", ("stdio",), 46), ("word_mcp_server", (), 54)],
)
async def test_servers_of_the_demo_are_listed_completely_without_suspicions(
    bridge: Bridge, command: str, args: tuple[str, ...], count: int
) -> None:
    """Numbers of tools as of 2026-11-21. The Word server also prints text to standard output."""
    async with opened(bridge, StdioServer(str(BIN / command), args)) as source:
        listing = await source.list_tools()

    assert count == len(listing.tools)
    assert () == listing.diagnostics
    assert {} == listing.suspicions
    assert set(listing.digests) == {"server:srv", *(tool.name for tool in listing.tools)}


async def test_transport_of_the_sdk_can_be_the_target(bridge: Bridge, record: Path) -> None:
    parameters = StdioServerParameters(
        command=sys.executable, args=[str(HERE / "hostile.py"), "plain", str(record)]
    )
    async with opened(bridge, stdio_client(parameters)) as source:
        listing = await source.list_tools()

    assert ["good"] == [tool.name for tool in listing.tools]


@pytest.mark.parametrize(
    ("target", "remedy"),
    [
        (StdioServer("no-such-command"), "'no-such-command' was not found: install it"),
        (StdioServer("echo", cwd=Path("/no/such/folder")), "'/no/such/folder' was not found"),
        (StdioServer("/"), "may not be run"),
        (HttpServer("http://user:pass@127.0.0.1:9/mcp?key=1"), "http://127.0.0.1:9: start"),
    ],
)
async def test_unreachable_server_raises_an_error_with_a_remedy(
    bridge: Bridge, target: object, remedy: str
) -> None:
    """The error must not contain secrets of the URL."""
    async with opened(bridge, target) as source:
        with pytest.raises(UpstreamError, match=remedy) as raised:
            await source.list_tools()

    assert "pass" not in str(raised.value)
    assert "key" not in str(raised.value)


async def test_unsupported_target_raises_a_config_error(bridge: Bridge) -> None:
    async with opened(bridge, 7) as source:
        with pytest.raises(ConfigError, match="'int' is not a supported server"):
            await source.list_tools()


async def test_server_object_that_fails_to_start_raises_an_upstream_error(bridge: Bridge) -> None:

    @asynccontextmanager
    async def broken(_server: object) -> AsyncIterator[None]:
        raise OSError("disk")
        yield

    async with opened(bridge, Server("x", lifespan=broken)) as source:
        with pytest.raises(UpstreamError, match="server object could not be opened"):
            await source.list_tools()


async def test_closing_a_session_does_not_take_longer_than_its_limit() -> None:
    ended = asyncio.Event()

    @asynccontextmanager
    async def stubborn(_server: object) -> AsyncIterator[None]:
        yield
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    session = Session("x", Server("x", lifespan=stubborn), UpstreamOptions())
    session.close_timeout_s = 0.05
    answer = await session.call("any", {}, tool_id="t")

    assert answer.is_error
    async with asyncio.timeout(PATIENCE_S):
        await session.close()
        await ended.wait()


@pytest.mark.parametrize(
    ("status", "remedy"),
    [(401, "HTTP 401: give it the right headers"), (404, "path of the url"), (500, "HTTP 500")],
)
async def test_error_of_a_refused_http_request_contains_the_status(
    bridge: Bridge, status: int, remedy: str
) -> None:

    async def refuse(_request: Request) -> Response:
        return JSONResponse({"error": "no"}, status_code=status)

    app = Starlette(routes=[Route("/mcp", refuse, methods=["POST", "GET"])])
    async with (
        served(bridge, app) as port,
        opened(bridge, HttpServer(f"http://127.0.0.1:{port}/mcp")) as source,
    ):
        with pytest.raises(UpstreamError, match=remedy):
            await source.list_tools()


async def test_headers_are_sent_with_every_request_without_a_proxy_to_this_machine(
    bridge: Bridge, record: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    app = plain(record).streamable_http_app()
    keys: list[str] = []

    async def with_key(scope: Scope, receive: Receive, send: Send) -> None:
        keys.extend(value.decode() for name, value in scope.get("headers", []) if name == b"x-key")
        await app(scope, receive, send)

    async with (
        served(bridge, with_key) as port,
        opened(bridge, HttpServer(f"http://127.0.0.1:{port}/mcp", {"X-Key": "k1"})) as source,
    ):
        await source.list_tools()
        await source.call("echo", {"text": "x"}, tool_id="t")

    assert len(keys) >= 3
    assert {"k1"} == set(keys)


async def test_restarted_http_server_is_reconnected(bridge: Bridge, record: Path) -> None:
    async with AsyncExitStack() as stack:
        async with served(bridge, plain(record).streamable_http_app()) as port:
            target = HttpServer(f"http://127.0.0.1:{port}/mcp")
            source = await stack.enter_async_context(opened(bridge, target, UpstreamOptions()))
            await source.list_tools()
        with pytest.raises(UpstreamError):
            await source.call("echo", {"text": "x"}, tool_id="t")

        async with served(bridge, plain(record).streamable_http_app(), port):
            answer = await source.call("echo", {"text": "back"}, tool_id="t")

    assert "back" == answer.text


async def test_source_may_be_closed_after_its_bridge() -> None:
    """Hosts close their objects in any order."""
    bridge = Bridge("short")
    source = McpSource("srv", MCPServer("x"), bridge=bridge, options=UpstreamOptions())
    await source.list_tools()
    await asyncio.to_thread(bridge.close)

    await source.close()


def test_sdk_is_not_imported_before_a_connection_is_opened() -> None:
    """The import takes more than a second, and a warm start needs no connection."""
    code = (
        "import sys, gateway.sources.mcp as m, gateway.mcp.servers as s\n"
        "from gateway.runtime.background_loop import Bridge\n"
        "from gateway.options import UpstreamOptions\n"
        "m.McpSource('a', s.StdioServer('x'), bridge=Bridge(), options=UpstreamOptions())\n"
        "print('mcp' in sys.modules, 'httpx2' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "False False" == done.stdout.strip()


@pytest.mark.parametrize(
    ("named", "fault"), [((), "private_hosts"), (("127.0.0.0/8",), "nothing answers")]
)
async def test_private_server_is_used_only_if_the_host_allows_it(
    bridge: Bridge, named: tuple[str, ...], fault: str
) -> None:
    """No server listens at the private address. The error shows whether a connection was tried."""
    target = HttpServer("http://127.0.0.2:1/mcp")
    options = UpstreamOptions(connect_attempts=1, private_hosts=named)
    async with opened(bridge, target, options) as source:
        with pytest.raises((ConfigError, UpstreamError), match=fault):
            await source.list_tools()


async def test_server_with_the_older_sse_transport_is_listed_and_called(
    bridge: Bridge, tmp_path: Path
) -> None:
    server = MCPServer("ledger")

    @server.tool()
    def double(number: int) -> int:
        """Double it."""
        return number * 2

    async with served(bridge, server.sse_app()) as port:
        entry = {"type": "sse", "url": f"http://127.0.0.1:{port}/sse", "headers": {"X-Key": "k"}}
        (tmp_path / "mcp.json").write_text(json.dumps({"servers": {"old": entry}}), "utf-8")
        target = read_manifest(tmp_path / "mcp.json").servers["old"]
        async with opened(bridge, target) as source:
            listing = await source.list_tools()
            answer = await source.call("double", {"number": 4}, tool_id="old/double")

    assert ["double"] == [tool.name for tool in listing.tools]
    assert "8" == answer.text
    assert target.fingerprint != HttpServer(entry["url"], entry["headers"]).fingerprint  # type: ignore[arg-type]  # a text and an object
