"""Program that serves a console for 5,000 tools, and prints its address and launch token."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from gateway.embed import MemoryVectorStore
from gateway.gateway import Gateway
from gateway.serve.console import ConsoleOptions, Sessions
from gateway.serve.console.app import console_routes
from gateway.serve.http import serve_http
from gateway.serve.http_options import HttpOptions
from gateway.serve.mcp_server import mcp_server
from tests.apps.serve.console.catalogs import many_tools
from tests.conftest import PATIENT
from tests.fakes import ListSource

ENTITIES = 5000


async def serve(folder: Path) -> None:
    options = replace(PATIENT, catalog_store_path=folder / "catalog.sqlite3")
    async with Gateway(
        strategy="graph", vector_store=MemoryVectorStore(), options=options
    ) as gateway:
        gateway.add_source(ListSource("large", many_tools(ENTITIES)))
        await gateway.report()
        http = HttpOptions(port=0)
        sessions = Sessions(http)
        await serve_http(
            mcp_server(gateway),
            http,
            console=console_routes(gateway, ConsoleOptions(), sessions),
            on_listening=lambda url: print(  # noqa: T201  (what the parent reads)
                url.removesuffix("/mcp"), sessions.launch_token, flush=True
            ),
        )


if __name__ == "__main__":
    with TemporaryDirectory() as name:
        asyncio.run(serve(Path(name)))
