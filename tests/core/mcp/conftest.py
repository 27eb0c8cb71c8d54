"""What the tests of sources share: a bridge, ways to build sources, and a loopback HTTP server."""

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
"""For real servers on a machine that has much else to do."""

Hostile = Callable[..., McpSource]


@pytest.fixture(scope="session")
def bridge() -> Iterator[Bridge]:
    bridge = Bridge("tests")
    yield bridge
    bridge.close()


@pytest.fixture(params=["stdio", "application/json", "text/event-stream"])
def transport(request: pytest.FixtureRequest) -> str:
    """How a server answers: over stdio, or over HTTP in that media type."""
    return str(request.param)


@pytest.fixture
def record(tmp_path: Path) -> Path:
    return tmp_path / "record"


@pytest.fixture
def discreet(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """No token, code or reason of the authorization server in any log of ours, at any level."""
    caplog.set_level(logging.DEBUG)
    yield
    names = ("gateway", "mcp.client", "client", "httpx2", "httpcore2")
    ours = [each for each in caplog.records if each.name.startswith(names)]
    assert [] == [each for each in ours if "SECRET" in each.getMessage()]


@pytest.fixture
async def hostile(bridge: Bridge, record: Path) -> AsyncIterator[Hostile]:
    """Build sources on `servers/hostile.py`; they are closed at the end."""
    made: list[McpSource] = []

    def build(mode: str, *, trusted: bool = False, **options: float) -> McpSource:
        target = StdioServer(sys.executable, (str(HERE / "hostile.py"), mode, str(record)))
        made.append(
            McpSource(
                "bad",
                target,
                bridge=bridge,
                options=UpstreamOptions(**options),  # type: ignore[arg-type]  # floats for counts
                trusted=trusted,
            )
        )
        return made[-1]

    yield build
    for source in made:
        await source.close()


@asynccontextmanager
async def opened(
    bridge: Bridge, target: object, options: UpstreamOptions = PATIENT
) -> AsyncIterator[McpSource]:
    """Return a source of *target*, which is closed at the end."""
    source = McpSource("srv", target, bridge=bridge, options=options)
    try:
        yield source
    finally:
        await source.close()


async def noted(record: Path, *words: str) -> list[str]:
    """Wait until *record* holds *words*; a child process has no other way to tell."""
    await until(lambda: set(words) <= set(lines(record)))
    return lines(record)


async def until(true: Callable[[], bool]) -> None:
    """Wait for something outside of this process, which no event can tell."""
    async with asyncio.timeout(PATIENCE_S):
        while not true():  # noqa: ASYNC110  (no event comes from another process)
            await asyncio.sleep(0.005)


def lives(process: int) -> bool:
    return Path(f"/proc/{process}").exists()


def lines(record: Path) -> list[str]:
    return record.read_text("utf-8").split("\n")[:-1] if record.exists() else []


@asynccontextmanager
async def served(bridge: Bridge, app: ASGIApp, port: int = 0) -> AsyncIterator[int]:
    """Serve *app* on the loopback, on the bridge's loop; give the port."""
    async with placed(bridge, lambda _: app, port) as found:
        yield found


@asynccontextmanager
async def placed(
    bridge: Bridge, make: Callable[[int], ASGIApp], port: int = 0
) -> AsyncIterator[int]:
    """As `served`, for an app that has to know its port."""
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
