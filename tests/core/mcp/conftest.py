"""Fixtures for tests of MCP: an event loop, hostile servers, and HTTP servers."""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import uvicorn
from starlette.types import ASGIApp

from gateway.mcp import StdioServer
from gateway.options import UpstreamOptions
from gateway.runtime.background_loop import Bridge
from gateway.sources import McpSource

HERE = Path(__file__).parent / "servers"
PATIENCE_S = 120
PATIENT = UpstreamOptions(connect_timeout_s=180, list_timeout_s=180)
"""Time limits for real servers on a busy machine."""

Hostile = Callable[..., McpSource]


@pytest.fixture(scope="session")
def bridge() -> Iterator[Bridge]:
    bridge = Bridge("tests")
    yield bridge
    bridge.close()


@pytest.fixture(params=["stdio", "application/json", "text/event-stream"])
def transport(request: pytest.FixtureRequest) -> str:
    """Transport of a test server: stdio, or the media type of HTTP answers."""
    return str(request.param)


@pytest.fixture
def record(tmp_path: Path) -> Path:
    """File in which a test server writes a line for each event."""
    return tmp_path / "record"


@pytest.fixture
def no_secrets_in_logs(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Fail if the log contains a secret of the authorization server."""
    caplog.set_level(logging.DEBUG)
    yield
    names = ("gateway", "mcp.client", "client", "httpx2", "httpcore2")
    ours = [entry for entry in caplog.records if entry.name.startswith(names)]
    assert [] == [entry for entry in ours if "SECRET" in entry.getMessage()]


@pytest.fixture
async def hostile(bridge: Bridge, record: Path) -> AsyncIterator[Hostile]:
    """Return sources of `servers/hostile.py` in given modes."""
    sources: list[McpSource] = []

    def build(mode: str, *, trusted: bool = False, **options: float) -> McpSource:
        target = StdioServer(sys.executable, (str(HERE / "hostile.py"), mode, str(record)))
        sources.append(
            McpSource(
                "bad",
                target,
                bridge=bridge,
                options=UpstreamOptions(**options),  # type: ignore[arg-type]  # floats for counts
                trusted=trusted,
            )
        )
        return sources[-1]

    yield build
    for source in sources:
        await source.close()


@asynccontextmanager
async def opened(
    bridge: Bridge, target: object, options: UpstreamOptions = PATIENT
) -> AsyncIterator[McpSource]:
    source = McpSource("srv", target, bridge=bridge, options=options)
    try:
        yield source
    finally:
        await source.close()


async def wait_for_lines(record: Path, *words: str) -> list[str]:
    """Wait until a process has written *words* as lines; return all lines."""
    await until(lambda: set(words) <= set(lines(record)))
    return lines(record)


async def until(true: Callable[[], bool]) -> None:
    """Wait for another process, which sets no event."""
    async with asyncio.timeout(PATIENCE_S):
        while not true():  # noqa: ASYNC110  (no event comes from another process)
            await asyncio.sleep(0.005)


def lives(process: int) -> bool:
    return Path(f"/proc/{process}").exists()


def lines(record: Path) -> list[str]:
    return record.read_text("utf-8").split("\n")[:-1] if record.exists() else []


@asynccontextmanager
async def served(bridge: Bridge, app: ASGIApp, port: int = 0) -> AsyncIterator[int]:
    """Serve *app* on the bridge's event loop during the block; yield the port."""
    async with placed(bridge, lambda _: app, port) as served_port:
        yield served_port


@asynccontextmanager
async def placed(
    bridge: Bridge, make: Callable[[int], ASGIApp], port: int = 0
) -> AsyncIterator[int]:
    """Serve the app that *make* returns for its port, like `served`."""
    listener = socket.create_server(("127.0.0.1", port))
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    app = make(listener.getsockname()[1])
    config = uvicorn.Config(app, log_config=None, ws="none", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    serving = bridge.submit(lambda: server.serve(sockets=[listener]))
    try:
        yield listener.getsockname()[1]
    finally:
        server.should_exit = True
        await asyncio.wrap_future(serving)
        listener.close()
