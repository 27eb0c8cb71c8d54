"""An MCP server as a source of tools.

* Nothing is opened, and the SDK not even imported, before the first listing or call.
* The connection lives on the bridge's loop; callers may come from any loop.
* A connection that died is replaced at the next use. A call that was under way is never repeated.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from gateway.bridge import Bridge
from gateway.config import UpstreamOptions
from gateway.errors import ClosedError
from gateway.types import InvokeResult, JsonObject
from gateway.upstream.source import Listing, check_server_name


class _Connection(Protocol):
    @property
    def alive(self) -> bool: ...

    async def list_tools(self) -> Listing: ...

    async def call(self, tool: str, arguments: JsonObject, *, tool_id: str) -> InvokeResult: ...

    async def close(self) -> None: ...


_Open = Callable[[str, object, UpstreamOptions], _Connection]


def _sdk() -> _Open:
    from gateway.upstream.session import Session  # noqa: PLC0415  (mcp is heavy: a warm start must not pay for it)

    return Session


class McpSource:
    """The tools of one MCP server."""

    def __init__(
        self,
        server: str,
        target: object,
        *,
        bridge: Bridge,
        options: UpstreamOptions,
        trusted: bool = False,
    ) -> None:
        """Say where the tools are; connect later.

        Args:
            server: The host's name for it.
            target: `StdioServer`, `HttpServer`, a server object of the mcp package, or a
                transport of it (which can be opened only once).
            bridge: Owns the loop on which the connection lives.
            options: Limits of time and size.
            trusted: Whether the host wrote the definitions.
        """
        self._server = check_server_name(server)
        self._target = target
        self._bridge = bridge
        self._options = options
        self._trusted = trusted
        self._closed = False
        self._opening = asyncio.Lock()
        self._connection: _Connection | None = None

    @property
    def server(self) -> str:
        """The host's name for the server."""
        return self._server

    @property
    def trusted(self) -> bool:
        """Whether the host wrote the definitions."""
        return self._trusted

    async def list_tools(self) -> Listing:
        """Read the tools anew; see `Source.list_tools`."""
        return await self._bridge.run(self._list_tools)

    async def call(self, tool: str, arguments: JsonObject, *, tool_id: str) -> InvokeResult:
        """Call a tool; see `Source.call`."""
        return await self._bridge.run(lambda: self._call(tool, arguments, tool_id))

    async def close(self) -> None:
        """End the connection and its process. Twice is harmless, and so is a closed bridge."""
        self._closed = True
        if self._connection is not None or self._opening.locked():
            with suppress(ClosedError):
                await self._bridge.run(self._close)

    async def _list_tools(self) -> Listing:
        return await (await self._connected()).list_tools()

    async def _call(self, tool: str, arguments: JsonObject, tool_id: str) -> InvokeResult:
        return await (await self._connected()).call(tool, arguments, tool_id=tool_id)

    async def _connected(self) -> _Connection:
        async with self._opening:
            if self._closed:
                raise ClosedError(f"source {self._server!r} is closed; make a new one")
            connection = self._connection
            if connection is not None and connection.alive:
                return connection
            if connection is not None:
                # Never two children of one server: they may hold the same files.
                await connection.close()
            opened = (await asyncio.to_thread(_sdk))(self._server, self._target, self._options)
            self._connection = opened
            return opened

    async def _close(self) -> None:
        async with self._opening:
            connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()
