"""MCP server as a source of tools.

* The server is not started, and the SDK not imported, before the first listing or call.
* A call is sent again only if it may run twice or was certainly not sent.
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
    """Capabilities of a gateway's clients, shared by the gateway and its sources."""

    can_be_asked: bool = False
    """True if servers may ask the clients for input. Sessions that are already open ignore
    changes.
    """


@dataclass(eq=False, repr=False)
class McpSource:
    """Source of the tools of one MCP server. Usable from any event loop.

    Args:
        target: `StdioServer`, `HttpServer`, a server object of the mcp package, or a transport of
            the mcp package (which can be opened only once).
        trusted: True if the host trusts the server's description of its tools.
        clock: Monotonic clock of the circuit breaker, in seconds.
        on_change: Called on the background loop when a list of the server (such as its tools)
            changed.
        public_url: Public URL of this gateway, for sign-ins of users, or "".
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
        self.server = check_server_name(self.server)
        self.supervisor = Supervisor(self.server, self._connect, self.options, clock=self.clock)
        """Owner of the connection. Use it only on the background loop."""
        self.users = self._user_sessions(self.target)
        """Users' sessions if calls use each user's credentials, else None. Use them only on the
        background loop."""
        self._repeatable: frozenset[str] = frozenset()

    @property
    def state(self) -> ConnectionState:
        """State of the connection to the server."""
        return self.supervisor.state

    @property
    def healthy(self) -> bool:
        """True if the next use is expected to work."""
        return self.supervisor.healthy

    def note_repeatable(self, listing: Listing) -> None:
        """Remember the tools whose calls may be repeated. Untrusted servers have none."""
        if self.trusted:
            self._repeatable = frozenset(
                tool.name for tool in listing.tools if tool.hints.read_only or tool.hints.idempotent
            )

    async def list_tools(self) -> Listing:
        """See `Source.list_tools`.

        Raises:
            ClosedError: If the source is closed, before or during the listing.
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
        """Call a tool. See `Source.call`."""
        return await self._use_for_caller(
            lambda connection: connection.call(tool, arguments, tool_id=tool_id),
            repeatable=tool in self._repeatable,
        )

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        """See `ResourceSource.ask`."""
        return await self._use_for_caller(
            lambda connection: connection.ask(method, params), repeatable=True
        )

    async def watch(self, uri: str, callbacks: WatchCallbacks) -> None:
        """See `Watchable.watch`."""
        if self.users is not None:
            # All listeners share one watch, so it cannot use the credentials of one user.
            detail = f"{self.server!r} does not report changes of {uri!r}, as each user reads it"
            raise InvalidRequestError(detail)
        await self.bridge.run(lambda: self._watch(uri, callbacks))

    async def close(self) -> None:
        """End the connection and the server's process. Repeated calls are harmless."""
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
            # A change in the session of one user does not concern the listing of all users.
            lambda own: self._connect(own, on_change=lambda: None),
            self.options,
            clock=self.clock,
            address=address,
        )

    async def _connect(
        self, target: HttpServer | None = None, on_change: Callable[[], None] | None = None
    ) -> ServerSession:
        # In a thread, because the import is slow.
        await asyncio.to_thread(import_module, "gateway.mcp.session")
        from gateway.mcp.session import Session  # noqa: PLC0415  (mcp is heavy: a warm start must not pay for it)

        return Session(
            self.server,
            target or self.target,
            self.options,
            on_change=on_change or self.on_change,
            can_be_asked=self.capabilities.can_be_asked,
        )
