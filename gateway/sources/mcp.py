"""An MCP server as a source of tools.

* Nothing is opened, and the SDK not even imported, before the first listing or call.
* The connection lives on the bridge's loop; callers may come from any loop.
* A call is sent once, unless it provably never left or may run twice.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from threading import Lock

from gateway.errors import ClosedError
from gateway.mcp.breaker import BreakerState
from gateway.mcp.naming import check_server_name
from gateway.mcp.retry import at_most_once, for_ever
from gateway.mcp.supervisor import Connection, State, Supervisor
from gateway.options import UpstreamOptions
from gateway.runtime.background_loop import Bridge
from gateway.runtime.cache import Clock
from gateway.types import InvokeResult, JsonObject
from gateway.types.listing import Listing, WatchCallbacks


@dataclass(slots=True)
class Audience:
    """Shared by a gateway and its sources."""

    askable: bool = False
    """Whether they can be asked; set before sessions open, which declare it once for all calls."""


_MAKING = Lock()


def _nobody() -> None:
    return


class McpSource:
    """The tools of one MCP server.

    Args:
        server: The host's name for it.
        target: `StdioServer`, `HttpServer`, a server object of the mcp package, or a
            transport of it (which can be opened only once).
        bridge: Owns the loop on which the connection lives.
        options: Limits of time and size.
        trusted: Whether the host vouches for what the server says of its tools.
        clock: Seconds that only grow; the circuit breaker reads it.
        changed: Called, on the bridge's loop, when the server says that its lists changed.
        audience: Whom the server may ask for something.
    """

    def __init__(  # noqa: PLR0913  (keyword-only, wired in one place)
        self,
        server: str,
        target: object,
        *,
        bridge: Bridge,
        options: UpstreamOptions,
        trusted: bool = False,
        clock: Clock = time.monotonic,
        changed: Callable[[], None] = _nobody,
        audience: Audience | None = None,
    ) -> None:
        self._server = check_server_name(server)
        self._target = target
        self._bridge = bridge
        self._options = options
        self._trusted = trusted
        self._changed = changed
        self._audience = audience or Audience()
        self._clock = clock
        self._made: Supervisor | None = None
        self._repeatable: frozenset[str] = frozenset()

    @property
    def server(self) -> str:
        """The host's name for the server."""
        return self._server

    @property
    def trusted(self) -> bool:
        """Whether the host stands in for what the server says of its tools."""
        return self._trusted

    @property
    def state(self) -> State:
        """How the connection is."""
        return self.supervisor.state

    @property
    def healthy(self) -> bool:
        """Whether it can be reached, as far as is known."""
        return self.supervisor.healthy

    @property
    def breaker(self) -> BreakerState:
        """How the circuit breaker stands."""
        return self.supervisor.breaker

    @property
    def supervisor(self) -> Supervisor:
        """Who keeps the connection; to be used on the bridge's loop alone."""
        if self._made is None:
            # Of hundreds of servers a start uses few.
            with _MAKING:
                self._made = self._made or Supervisor(
                    self._server, self._connect, self._options, clock=self._clock
                )
        return self._made

    def learn(self, listing: Listing) -> None:
        """Take from *listing* which tools may run twice, if the server is trusted."""
        if self._trusted:
            self._repeatable = frozenset(
                tool.name for tool in listing.tools if tool.hints.read_only or tool.hints.idempotent
            )

    async def list_tools(self) -> Listing:
        """Read the tools anew; see `Source.list_tools`."""
        listing = await self._bridge.run(self._list_tools)
        self.learn(listing)
        return listing

    async def call(self, tool: str, arguments: JsonObject, *, tool_id: str) -> InvokeResult:
        """Call a tool; see `Source.call`."""
        return await self._bridge.run(lambda: self._call(tool, arguments, tool_id))

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        """Send a request that changes nothing; see `ResourceSource.ask`."""
        return await self._bridge.run(lambda: self._ask(method, params))

    async def watch(self, uri: str, heard: WatchCallbacks) -> None:
        """Tell *heard* of changes of a resource; see `Watchable.watch`."""
        await self._bridge.run(lambda: self._watch(uri, heard))

    async def close(self) -> None:
        """End the connection and its process. Twice is harmless, and so is a closed bridge."""
        if self.supervisor.refuse():
            with suppress(ClosedError):
                await self._bridge.run(self.supervisor.close)

    async def _list_tools(self) -> Listing:
        return await at_most_once(
            lambda: self.supervisor.use(lambda connection: connection.list_tools()),
            repeatable=True,
        )

    async def _call(self, tool: str, arguments: JsonObject, tool_id: str) -> InvokeResult:
        return await at_most_once(
            lambda: self.supervisor.use(
                lambda connection: connection.call(tool, arguments, tool_id=tool_id)
            ),
            repeatable=tool in self._repeatable,
        )

    async def _ask(self, method: str, params: JsonObject) -> JsonObject:
        return await at_most_once(
            lambda: self.supervisor.use(lambda connection: connection.ask(method, params)),
            repeatable=True,
        )

    async def _watch(self, uri: str, heard: WatchCallbacks) -> None:
        began = False

        def begin() -> None:
            nonlocal began
            if began:
                # What happened between the two connections, nobody knows.
                heard.changed()
            began = True
            heard.began()

        told = replace(heard, began=begin)
        await for_ever(
            lambda: self.supervisor.use(
                lambda connection: connection.watch(uri, told), lasting=True
            ),
            self._options,
            worth=lambda: began,
        )

    async def _connect(self) -> Connection:
        session = await asyncio.to_thread(_sdk)
        askable = self._audience.askable
        return session(self._server, self._target, self._options, self._changed, askable)


def _sdk() -> Callable[[str, object, UpstreamOptions, Callable[[], None], bool], Connection]:
    from gateway.mcp.session import Session  # noqa: PLC0415  (mcp is heavy: a warm start must not pay for it)

    return lambda server, target, options, changed, askable: Session(
        server, target, options, changed=changed, askable=askable
    )
