"""From a target to an open client of the SDK."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any

import httpx2
from mcp import Client, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.server import MCPServer, Server

from gateway.errors import ConfigError
from gateway.upstream.quiet import stderr_log
from gateway.upstream.servers import HttpServer, StdioServer
from gateway.upstream.transport import SetAside

_IDLE_TIMEOUT_S = 30.0
_READ_TIMEOUT_S = 600.0


@asynccontextmanager
async def connected(
    server: str, target: object, *, ended: Callable[[], None], heard: Callable[[int], None]
) -> AsyncIterator[Client]:
    """Open a client for *target*, hold it, close it: all in one task (anyio's rule).

    Args:
        server: For the log.
        target: `StdioServer`, `HttpServer`, a server object or a transport of the SDK.
        ended: Called when the connection is known to be over.
        heard: Called with the status of each HTTP answer.

    Raises:
        ConfigError: *target* is none of these.
    """
    place: SetAside | Server[Any] | MCPServer
    async with AsyncExitStack() as stack:
        if isinstance(target, HttpServer):
            client = await stack.enter_async_context(_http_client(target, heard))
            place = SetAside(streamable_http_client(target.url, http_client=client), ended=ended)
        elif isinstance(target, StdioServer):
            stderr = stack.enter_context(stderr_log(server))
            place = SetAside(stdio_client(_parameters(target), stderr), ended=ended)
        else:
            place = _object(server, target, ended)
        yield await stack.enter_async_context(Client(place, cache=None))


def _object(
    server: str, target: object, ended: Callable[[], None]
) -> SetAside | Server[Any] | MCPServer:
    if isinstance(target, Server | MCPServer):
        return target
    if isinstance(target, AbstractAsyncContextManager):
        return SetAside(target, ended=ended)
    raise ConfigError(
        f"{server!r}: {type(target).__name__!r} is no kind of server: "
        "pass a StdioServer, an HttpServer, or a server object of the mcp package"
    )


def _parameters(target: StdioServer) -> StdioServerParameters:
    return StdioServerParameters(
        command=target.command, args=list(target.args), env=dict(target.env), cwd=target.cwd
    )


def _http_client(target: HttpServer, heard: Callable[[int], None]) -> httpx2.AsyncClient:
    async def note(response: httpx2.Response) -> None:
        heard(response.status_code)

    # Our own limits end a call sooner; these only keep a dead connection from living for ever.
    return httpx2.AsyncClient(
        headers=dict(target.headers),
        timeout=httpx2.Timeout(_IDLE_TIMEOUT_S, read=_READ_TIMEOUT_S),
        trust_env=not target.loopback,
        event_hooks={"response": [note]},
    )
