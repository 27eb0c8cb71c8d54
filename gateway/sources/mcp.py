"""An MCP server as a source of tools.

* Nothing is opened, and the SDK not even imported, before the first listing or call.
* The connection lives on the background loop; callers may come from any loop.
* A call is sent once, unless it provably never left or may run twice.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field, replace
from importlib import import_module
from typing import TypeVar

from gateway.errors import ClosedError, InvalidRequestError, UpstreamError
from gateway.mcp.servers import HttpServer
from gateway.mcp.supervisor import ConnectionState, ServerSession, Supervisor
from gateway.mcp.user_sessions import UserSessions
from gateway.options import UpstreamOptions
from gateway.runtime.background_loop import Bridge
from gateway.runtime.cache import Clock
from gateway.runtime.naming import check_server_name
from gateway.runtime.retry import retry_forever, retry_if_safe
from gateway.types import InvokeResult, JsonObject
from gateway.types.caller import current_caller
from gateway.types.listing import Listing, WatchCallbacks

T = TypeVar("T")


@dataclass(slots=True)
class ClientCapabilities:
    """What the clients of a gateway can do; shared by the gateway and its sources."""

    can_be_asked: bool = False
    """Whether servers may ask them for input; set before sessions open, which declare it once for
    all calls."""


@dataclass(eq=False, repr=False)
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
        on_change: Called, on the background loop, when the server says that its lists changed.
        capabilities: What the callers can be asked for.
        public_url: Where users reach this gateway, to sign in; empty if nowhere.
    """

    server: str
    target: object
    _: KW_ONLY
    bridge: Bridge
    options: UpstreamOptions
    trusted: bool = False
    clock: Clock = time.monotonic
    on_change: Callable[[], None] = lambda: None
    capabilities: ClientCapabilities = field(default_factory=ClientCapabilities)
    public_url: str = ""

    def __post_init__(self) -> None:
        """Begin without a connection."""
        self.server = check_server_name(self.server)
        self.supervisor = Supervisor(self.server, self._connect, self.options, clock=self.clock)
        """Keeps the connection; to be used on the background loop alone."""
        self.users = self._user_sessions(self.target)
        """Keep those of the users, if calls go with their credentials; likewise."""
        self._repeatable: frozenset[str] = frozenset()

    @property
    def state(self) -> ConnectionState:
        """The state of the connection."""
        return self.supervisor.state

    @property
    def healthy(self) -> bool:
        """Whether it can be reached, as far as is known."""
        return self.supervisor.healthy

    def note_repeatable(self, listing: Listing) -> None:
        """Remember which tools of *listing* may run twice, if the server is trusted."""
        if self.trusted:
            self._repeatable = frozenset(
                tool.name for tool in listing.tools if tool.hints.read_only or tool.hints.idempotent
            )

    async def list_tools(self) -> Listing:
        """Read the tools anew; see `Source.list_tools`.

        Raises:
            ClosedError: After `close`, also if that cut the listing short.
        """
        try:
            listing = await self._use(lambda connection: connection.list_tools(), repeatable=True)
        except UpstreamError as error:
            if self.state == "closed":
                raise ClosedError(f"source {self.server!r} was closed while it listed") from error
            raise
        self.note_repeatable(listing)
        return listing

    async def call(self, tool: str, arguments: JsonObject, *, tool_id: str) -> InvokeResult:
        """Call a tool; see `Source.call`."""
        return await self._use_for_caller(
            lambda connection: connection.call(tool, arguments, tool_id=tool_id),
            repeatable=tool in self._repeatable,
        )

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        """Send a request that changes nothing; see `ResourceSource.ask`."""
        return await self._use_for_caller(
            lambda connection: connection.ask(method, params), repeatable=True
        )

    async def watch(self, uri: str, callbacks: WatchCallbacks) -> None:
        """Report changes of a resource; see `Watchable.watch`."""
        if self.users is not None:
            # One watch serves all who listen.
            detail = f"{self.server!r} is read by each user: it reports no changes of {uri!r}"
            raise InvalidRequestError(detail)
        await self.bridge.run(lambda: self._watch(uri, callbacks))

    async def close(self) -> None:
        """End the connection and its process. Twice is harmless, and so is a closed bridge."""
        if self.supervisor.refuse() or self.users is not None:
            with suppress(ClosedError):
                await self.bridge.run(self._close)

    async def _close(self) -> None:
        await self.supervisor.close()
        if self.users is not None:
            await self.users.close()

    async def _use_for_caller(
        self, work: Callable[[ServerSession], Awaitable[T]], *, repeatable: bool
    ) -> T:
        users, caller = self.users, current_caller()
        if users is None:
            return await self._use(work, repeatable=repeatable)
        return await self.bridge.run(lambda: users.use(caller, work, repeatable=repeatable))

    async def _use(self, work: Callable[[ServerSession], Awaitable[T]], *, repeatable: bool) -> T:
        return await self.bridge.run(
            lambda: retry_if_safe(lambda: self.supervisor.use(work), repeatable=repeatable)
        )

    async def _watch(self, uri: str, callbacks: WatchCallbacks) -> None:
        has_started = False

        def on_start() -> None:
            nonlocal has_started
            if has_started:
                # The resource may have changed between the two connections.
                callbacks.on_change()
            has_started = True
            callbacks.on_start()

        restarting = replace(callbacks, on_start=on_start)
        await retry_forever(
            lambda: self.supervisor.use(
                lambda connection: connection.watch(uri, restarting), unlimited=True
            ),
            self.options,
            can_retry=lambda: has_started,
        )

    def _user_sessions(self, target: object) -> UserSessions | None:
        if not isinstance(target, HttpServer) or not target.is_per_user:
            return None
        address = f"{self.public_url.rstrip('/')}/sign-in/{self.server}" if self.public_url else ""
        return UserSessions(
            self.server,
            target,
            # What one user's session hears of lists is not for all.
            lambda own: self._connect(own, on_change=lambda: None),
            self.options,
            clock=self.clock,
            address=address,
        )

    async def _connect(
        self, target: HttpServer | None = None, on_change: Callable[[], None] | None = None
    ) -> ServerSession:
        # The import takes long: not on the loop.
        await asyncio.to_thread(import_module, "gateway.mcp.session")
        from gateway.mcp.session import Session  # noqa: PLC0415  (mcp is heavy: a warm start must not pay for it)

        return Session(
            self.server,
            target or self.target,
            self.options,
            on_change=on_change or self.on_change,
            can_be_asked=self.capabilities.can_be_asked,
        )
