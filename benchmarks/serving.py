"""A server for the other side of a measured connection: ours, or the SDK's with an idle tool.

    python -m benchmarks.serving idle|gateway stdio|http CONFIG

The folder of CONFIG keeps the tool lists, so that nothing is started. Over HTTP the address is the
first line of standard output.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

from mcp import types
from mcp.server import Server

from gateway import Gateway, Options
from gateway.serve.http import serve_http
from gateway.serve.http_options import HttpOptions
from gateway.serve.mcp_server import mcp_server, serve_stdio


def idle_server(*more: str) -> Server[Any]:
    """Return the SDK's server with tools that do nothing: ``idle``, and *more* by name."""
    tools = [types.Tool(name=name, input_schema={"type": "object"}) for name in ("idle", *more)]

    async def listed(_context: object, _params: object) -> types.ListToolsResult:
        return types.ListToolsResult(tools=tools)

    async def called(_context: object, _params: object) -> types.CallToolResult:
        return types.CallToolResult(content=[types.TextContent(type="text", text="")])

    return Server("idle", on_list_tools=listed, on_call_tool=called)


async def main(kind: str, transport: str, config: Path) -> None:
    """Serve until the client hangs up, or for ever."""
    gateway = Gateway(
        strategy="graph", options=Options(catalog_store_path=config.parent / "catalog.sqlite3")
    )
    if kind == "gateway":
        gateway.add_config(config)
    server = idle_server() if kind == "idle" else mcp_server(gateway)
    async with gateway:
        if transport == "stdio":
            await serve_stdio(server)
        else:
            await serve_http(
                server, HttpOptions(port=0), on_listening=lambda url: print(url, flush=True)
            )


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], Path(sys.argv[3])))
