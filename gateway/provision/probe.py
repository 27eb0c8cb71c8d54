"""Starts a server once, as it would run, and lists its tools: through the same supervised upstream
and with the same limits as every other server.
"""

from __future__ import annotations

from dataclasses import replace

from gateway.errors import UpstreamError
from gateway.mcp.servers import HttpServer, StdioServer
from gateway.options import UpstreamOptions
from gateway.runtime.background_loop import Bridge
from gateway.sources.mcp import McpSource
from gateway.types.listing import Listing


async def probe(
    server: str, target: StdioServer | HttpServer, *, bridge: Bridge, options: UpstreamOptions
) -> Listing:
    """List the tools of *target*; it is ended afterwards.

    Args:
        server: How it is called here.
        target: What to start, or whom to ask.
        bridge: Owns the loop of its session.
        options: The limits; it is tried once.

    Raises:
        UpstreamError: It cannot be reached, fails, or offers no tool that can be used.
        UpstreamTimeoutError: It did not answer within its limit.
        ConfigError: It may not be asked.
    """
    source = McpSource(server, target, bridge=bridge, options=replace(options, connect_attempts=1))
    try:
        listing = await source.list_tools()
    finally:
        await source.close()
    if not listing.tools:
        raise UpstreamError(server, "offers no tool that can be used")
    return listing
