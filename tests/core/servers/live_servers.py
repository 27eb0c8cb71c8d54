"""MCP servers that tests can change, stop, restart and sign in to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from gateway.options import Options, UpstreamOptions
from gateway.runtime.background_loop import Bridge
from gateway.types import ToolDefinition
from tests.core.mcp.conftest import PATIENCE_S, placed, served
from tests.core.mcp.servers.authority import Authority
from tests.core.mcp.sign_in_place import visit
from tests.fakes import Shelf


@dataclass(frozen=True, slots=True)
class LiveServer:
    shelf: Shelf
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"


@asynccontextmanager
async def live_server(
    bridge: Bridge, tools: Iterable[ToolDefinition], port: int = 0
) -> AsyncIterator[LiveServer]:
    """Serve *tools* by HTTP on the event loop of *bridge*."""
    shelf = Shelf(tools)
    app = shelf.server.streamable_http_app(json_response=True)
    async with served(bridge, app, port) as server:
        yield LiveServer(shelf, server)


@dataclass(frozen=True, slots=True)
class GuardedServer:
    """A server that requires a sign-in, with its authorization server."""

    authority: Authority
    url: str

    async def agree(self, address: str) -> None:
        """Sign in at the URL *address*, following its redirects."""
        self.authority.address = parse_qs(urlsplit(address).query)["redirect_uri"][0]
        await asyncio.to_thread(visit, address)


@asynccontextmanager
async def guarded_server(bridge: Bridge, folder: Path) -> AsyncIterator[GuardedServer]:
    """Serve tools to requests with a token."""
    authority = Authority()
    async with (
        placed(bridge, authority.app) as giver,
        placed(bridge, lambda port: authority.guarded(port, giver, folder / "record")) as port,
    ):
        yield GuardedServer(authority, f"http://127.0.0.1:{port}/mcp")


def patient(folder: Path, **upstream: object) -> Options:
    """Return options with long time limits, and one attempt at a time per server."""
    more = {"connect_attempts": 1, "connect_timeout_s": PATIENCE_S, "first_listing_s": PATIENCE_S}
    options = UpstreamOptions(**{**more, **upstream})  # type: ignore[arg-type]  # passed on
    return Options(upstream=options, catalog_store_path=folder / "catalog.sqlite3")
