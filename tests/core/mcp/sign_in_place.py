"""A server with OAuth, its authorization server, and a willing browser."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, urlsplit
from urllib.request import urlopen

from gateway.mcp import HttpServer, OAuth, TokenStore
from gateway.mcp.session import sign_in
from gateway.options import UpstreamOptions
from gateway.runtime.background_loop import Bridge
from gateway.sources import McpSource
from gateway.storage import FileTokens
from gateway.types import Listing
from tests.core.mcp.conftest import PATIENCE_S, PATIENT, placed
from tests.core.mcp.servers.authority import Authority


@dataclass(frozen=True)
class Place:
    """A server with OAuth, and the store of the gateway's tokens."""

    bridge: Bridge
    authority: Authority
    url: str
    tokens: TokenStore
    file: Path
    record: Path

    def target(self, auth: OAuth | None = None) -> HttpServer:
        with_tokens = (auth or OAuth()).with_tokens(self.tokens)
        return HttpServer(self.url, {"X-Key": "of-the-server"}, with_tokens)

    @asynccontextmanager
    async def source(self, auth: OAuth | None = None) -> AsyncIterator[McpSource]:
        source = McpSource("srv", self.target(auth), bridge=self.bridge, options=PATIENT)
        try:
            yield source
        finally:
            await source.close()

    async def sign_in(
        self, auth: OAuth | None = None, options: UpstreamOptions = PATIENT
    ) -> Listing:
        """Sign in as ``gateway login`` does."""
        browsing: list[asyncio.Future[object]] = []

        def browse(url: str) -> None:
            self.authority.address = parse_qs(urlsplit(url).query)["redirect_uri"][0]
            browsing.append(asyncio.ensure_future(asyncio.to_thread(visit, url)))

        try:
            return await sign_in("srv", self.target(auth), options, browse)
        finally:
            await asyncio.gather(*browsing)


def visit(url: str) -> None:
    """Open *url* like a browser whose user accepts every sign-in."""
    with urlopen(url, timeout=PATIENCE_S) as page:  # noqa: S310  (of this test)
        page.read()


@asynccontextmanager
async def signing_place(
    bridge: Bridge, authority: Authority, record: Path, file: Path
) -> AsyncIterator[Place]:
    """Serve an MCP server and its *authority*, with the gateway's tokens in *file*."""
    async with (
        placed(bridge, authority.app) as giver,
        placed(bridge, lambda port: authority.guarded(port, giver, record)) as port,
    ):
        url = f"http://127.0.0.1:{port}/mcp"
        yield Place(bridge, authority, url, FileTokens(file), file, record)
