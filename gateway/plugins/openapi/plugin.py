"""Plugin ``openapi``: HTTP APIs with an OpenAPI document as servers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gateway.hookspecs import hookimpl
from gateway.mcp.servers import ApiOpener, HttpServer


@hookimpl
def register_sources() -> Mapping[str, ApiOpener]:
    """Register the key ``openapi``."""
    return {"openapi": _open}


async def _open(target: HttpServer, client: Any, max_bytes: int) -> object:
    from gateway.plugins.openapi.server import openapi_server  # noqa: PLC0415  (mcp is heavy)

    return await openapi_server(target, client, max_bytes)
