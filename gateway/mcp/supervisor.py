"""One supervised session for each server: opened when needed, shared by all, replaced if it dies.

* There are never two sessions of one server at a time: their children may hold the same files.
* A session that could not be opened is tried again at growing intervals. A server that keeps
  failing is left alone behind a circuit breaker. What a server *answers* is never a failure.
* A caller that goes away takes nothing from the others: opening and closing belong to no caller.

Everything here runs on one loop.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import KW_ONLY, dataclass
from typing import Generic, Literal, Protocol, TypeVar

from gateway.errors import ClosedError, UpstreamError, UpstreamUnavailableError
from gateway.options import UpstreamOptions
from gateway.runtime.breaker import Breaker
from gateway.runtime.cache import Clock
from gateway.runtime.retry import retry_connect
from gateway.types import InvokeResult, JsonObject
from gateway.types.listing import Listing, WatchCallbacks

T = TypeVar("T")
ConnectionState = Literal["idle", "connecting", "active", "failed", "closed"]
"""*idle*: ready to connect; *failed*: the last connection could not be opened, or died."""

_ANSWERED = frozenset({"refused", "authorization"})
"""Faults of a server that is well."""
_ENDED = frozenset({"lost", "flood"})
"""Faults that end the connection."""


class Connection(Protocol):
    """An open session, or one that is opening."""

    @property
    def alive(self) -> bool:
        """Whether it may still be used, as far as is known."""

    @property
    def flood(self) -> UpstreamError | None:
        """Why it was ended, if the server sent too much."""

    async def ready(self) -> object:
        """Wait until it is open, or raise why it cannot be."""

    async def close(self) -> None:
        """End it."""


class ServerSession(Connection, Protocol):
    """The requests that an open session sends. `gateway.mcp.session.Session` is one; its module
    imports mcp, for which a warm start must not pay.
    """

    async def list_tools(self) -> Listing:
        """Read every page of tools, resources and prompts."""

    async def call(self, tool: str, arguments: JsonObject, *, tool_id: str) -> InvokeResult:
        """Call a tool."""

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        """Send a request that changes nothing."""

    async def watch(self, uri: str, callbacks: WatchCallbacks) -> None:
        """Report changes of a resource."""


C = TypeVar("C", bound=Connection)


@dataclass(eq=False, repr=False)
class Supervisor(Generic[C]):
    """Keeps the one connection of a server.

    Args:
        server: For messages.
        connect: Starts to open a connection.
        options: Limits, and when to try again or leave the server alone.
        clock: Seconds that only grow.
    """

    server: str
    connect: Callable[[], Awaitable[C]]
    options: UpstreamOptions
    _: KW_ONLY
    clock: Clock = time.monotonic

    def __post_init__(self) -> None:
        """Begin without a connection."""
        self.breaker = Breaker(self.options, clock=self.clock)
        """Says when the server is left alone."""
        self._slots = asyncio.Semaphore(self.options.max_in_flight)
        self._connection: C | None = None
        self._opening: asyncio.Task[C] | None = None
        self._closing: asyncio.Task[None] | None = None
        self._idle_timer: asyncio.TimerHandle | None = None
        self.fault: UpstreamError | None = None
        """Why the last use failed; None if it did not."""
        self.failing_since: float | None = None
        """When it failed first since a use worked, by the clock; None if the last one did."""
        self._last_failure_cause: object = None
        self._stale_connection: C | None = None
        self._closed = False
        self.in_flight = 0
        """Uses that are under way."""

    @property
    def state(self) -> ConnectionState:
        """The state of the connection."""
        if self._closed:
            return "closed"
        if self._opening is not None:
            return "connecting"
        if self._connection is not None and self._connection.alive:
            return "active"
        return "failed" if self.fault else "idle"

    @property
    def healthy(self) -> bool:
        """Whether the next use may work, as far as is known; true before the first one."""
        alive = self._connection is not None and self._opening is None and self._connection.alive
        return not self.breaker.is_open and (alive or not self.fault)

    async def use(self, work: Callable[[C], Awaitable[T]], *, unlimited: bool = False) -> T:
        """Do *work* with an open connection.

        Args:
            work: What is done.
            unlimited: Whether it goes on as long as the connection; it then takes up no turn.

        Raises:
            UpstreamUnavailableError: The server failed too often in a row.
            UpstreamError: It could not be reached, or what *work* raised.
            ClosedError: After `close`.
        """
        self._check_open()
        connection = self._connection
        if connection is not None and (flood := connection.flood):
            self._record_error(flood, connection)
        connection = None
        with self.breaker.admit() as wait_s:
            if wait_s:
                raise UpstreamUnavailableError(
                    self.server,
                    f"failed too often and is left alone for {wait_s:.1f} s; the last time it "
                    f"said: {self.fault.detail if self.fault else ''}",
                    retry_after_s=wait_s,
                )
            try:
                async with self._turn(unlimited=unlimited):
                    connection = await self._usable_connection()
                    result = await work(connection)
            except UpstreamError as error:
                self._record_error(error, connection)
                raise
            self.fault = self.failing_since = None
            self.breaker.record_success()
            return result

    def refuse(self) -> bool:
        """Refuse every further use; return whether there is something that `close` must end."""
        self._closed = True
        return any((self._connection, self._opening, self._closing))

    async def close(self) -> None:
        """End the connection, also one that is opening. Twice is harmless."""
        self._closed = True
        self._stop_idle_timer()
        opening = self._opening
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()
        if opening is not None:
            opening.cancel()
            await asyncio.wait({opening})
        if self._closing is not None:
            await asyncio.wait({self._closing})

    @asynccontextmanager
    async def _turn(self, *, unlimited: bool) -> AsyncIterator[None]:
        """Wait for the turn of a use, and count it; after the last one the idle timer starts."""
        if not unlimited:
            await self._acquire_slot()
        self.in_flight += 1
        self._stop_idle_timer()
        try:
            yield
        finally:
            self.in_flight -= 1
            self._start_idle_timer()
            if not unlimited:
                self._slots.release()

    async def _acquire_slot(self) -> None:
        limit_s = self.options.call_timeout_s
        try:
            async with asyncio.timeout(limit_s):
                await self._slots.acquire()
        except TimeoutError as error:
            raise UpstreamUnavailableError(
                self.server,
                f"is busy: {self.options.max_in_flight} requests have been under way for "
                f"{limit_s} s; ask later, or raise UpstreamOptions.max_in_flight",
                retry_after_s=self.options.breaker_s,
            ) from error

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError(f"source {self.server!r} is closed; make a new one")

    def _record_error(self, error: UpstreamError, connection: C | None) -> None:
        if error.kind == "unavailable":
            return  # It was not asked.
        self.fault = error
        if self.failing_since is None:
            self.failing_since = self.clock()
        if error.kind in _ANSWERED:
            self.breaker.record_success()
            return
        # One death is one failure, however many waited for an answer.
        cause = error if connection is None or error.kind not in _ENDED else connection
        if cause is not self._last_failure_cause:
            self._last_failure_cause = cause
            self.breaker.record_failure(trip=error.kind == "flood")
            if self.breaker.is_open:
                # It may be stuck for good: the probe gets a new session.
                self._stale_connection = connection

    async def _usable_connection(self) -> C:
        connection = self._connection
        if self._opening is None:
            if (
                connection is not None
                and connection.alive
                and connection is not self._stale_connection
            ):
                return connection
            self._opening = _start_task(self._open(), f"opening of {self.server}")
        opening = self._opening
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            if opening.cancelled():
                self._check_open()
            raise

    async def _open(self) -> C:
        try:
            if self._closing is not None:
                await asyncio.wait({self._closing})
            return await retry_connect(self._try_open, self.options)
        finally:
            self._opening = None

    async def _try_open(self) -> C:
        previous, self._connection = self._connection, None
        if previous is not None:
            await previous.close()
        self._check_open()
        connection = self._connection = await self.connect()
        await connection.ready()
        self._check_open()
        return connection

    def _start_idle_timer(self) -> None:
        if self.in_flight or self._closed or self.options.lifecycle == "keep_alive":
            return
        wait_s = self.options.idle_timeout_s if self.options.lifecycle == "idle" else 0.0
        self._idle_timer = asyncio.get_running_loop().call_later(wait_s, self._close_idle)

    def _stop_idle_timer(self) -> None:
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None

    def _close_idle(self) -> None:
        """End the session until it is needed; the next use opens another."""
        self._idle_timer = None
        if self._opening is not None:
            return
        connection, self._connection = self._connection, None
        if connection is not None:
            self._closing = _start_task(connection.close(), f"closing of {self.server}")


def _start_task(work: Coroutine[object, object, T], name: str) -> asyncio.Task[T]:
    task = asyncio.create_task(work, name=name)
    # The caller may have gone: asyncio would complain that the outcome was never read.
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    return task
