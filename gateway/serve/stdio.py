"""An MCP server on this process's standard input and output."""

from __future__ import annotations

from mcp.server import Server
from mcp.server.stdio import stdio_server


async def serve_stdio(server: Server) -> None:
    """Serve one client until it hangs up. Nothing else may write to standard output meanwhile."""
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())
