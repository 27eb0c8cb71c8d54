"""Supervisor of one server's connection, which is opened when needed, shared and replaced.

* A server never has two sessions at a time, because two child processes could use the same files.
* A cancelled caller does not affect others, because opening and closing run in separate tasks.

All functions here run on one event loop.
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
"""State of a server's connection. *idle*: ready to connect. *failed*: not opened, or lost."""

_ANSWERED_FAULTS = frozenset({"refused", "authorization"})
"""Error kinds that do not count as a failure of the server, because the server answered."""
_ENDING_FAULTS = frozenset({"lost", "flood"})
"""Error kinds after which the connection has ended."""


class Connection(Protocol):
    """A session that is open or opening."""

    @property
    def alive(self) -> bool:
        """True if the connection may still be usable."""

    @property
    def flood(self) -> UpstreamError | None:
        """Error of a server that was disconnected because it sent too much, or None."""

    async def ready(self) -> object:
        """Wait until the connection is open; raise its error if it cannot be opened."""

    async def close(self) -> None:
        """End the connection."""


class ServerSession(Connection, Protocol):
    """Session of a server, implemented by `gateway.mcp.session.Session`.

    That module imports mcp, which must not be loaded when a gateway starts with stored listings.
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
    """Owner of the one connection of a server.

    Args:
        connect: Starts to open a connection.
        options: Limits, retries and circuit breaker.
    """

    server: str
    connect: Callable[[], Awaitable[C]]
    options: UpstreamOptions
    _: KW_ONLY
    clock: Clock = time.monotonic

    def __post_init__(self) -> None:
        self.breaker = Breaker(self.options, clock=self.clock)
        self._slots = asyncio.Semaphore(self.options.max_in_flight)
        self._connection: C | None = None
        self._opening: asyncio.Task[C] | None = None
        self._closing: asyncio.Task[None] | None = None
        self._idle_timer: asyncio.TimerHandle | None = None
        self.fault: UpstreamError | None = None
        """Error of the last use of the connection; None if it succeeded."""
        self.failing_since: float | None = None
        """Monotonic time of the first failure since the last success; None after a success."""
        self._last_failure_cause: object = None
        self._stale_connection: C | None = None
        self._closed = False
        self.in_flight = 0
        """Number of running uses of the connection."""

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
        """True if the next use is expected to work."""
        alive = self._connection is not None and self._opening is None and self._connection.alive
        return not self.breaker.is_open and (alive or not self.fault)

    async def use(self, work: Callable[[C], Awaitable[T]], *, unlimited: bool = False) -> T:
        """Run *work* with an open connection, and return its result.

        *unlimited* work lasts as long as the connection, and so does not count against
        `UpstreamOptions.max_in_flight`.

        Raises:
            UpstreamUnavailableError: If the server failed too often in a row, or is busy.
            UpstreamError: If the server cannot be reached, or *work* raised it.
            ClosedError: If the supervisor is closed.
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
                    f"failed too often and is skipped for {wait_s:.1f} s; last error: "
                    f"{self.fault.detail if self.fault else ''}",
                    retry_after_s=wait_s,
                )
            try:
                async with self._slot(unlimited=unlimited):
                    connection = await self._usable_connection()
                    result = await work(connection)
            except UpstreamError as error:
                self._record_error(error, connection)
                raise
            self.fault = self.failing_since = None
            self.breaker.record_success()
            return result

    def refuse(self) -> bool:
        """Refuse all further uses; return True if `close` must end a connection."""
        self._closed = True
        return any((self._connection, self._opening, self._closing))

    async def close(self) -> None:
        """End the connection, even while it is being opened. Repeated calls are harmless."""
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
    async def _slot(self, *, unlimited: bool) -> AsyncIterator[None]:
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
                f"is busy: no request could start within {limit_s} s; try again later, or raise "
                f"UpstreamOptions.max_in_flight (now {self.options.max_in_flight})",
                retry_after_s=self.options.breaker_s,
            ) from error

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError(f"source {self.server!r} is closed; make a new one")

    def _record_error(self, error: UpstreamError, connection: C | None) -> None:
        if error.kind == "unavailable":
            return  # the server was not called
        self.fault = error
        if self.failing_since is None:
            self.failing_since = self.clock()
        if error.kind in _ANSWERED_FAULTS:
            self.breaker.record_success()
            return
        # One lost connection is one failure, even for several waiting calls.
        cause = error if connection is None or error.kind not in _ENDING_FAULTS else connection
        if cause is not self._last_failure_cause:
            self._last_failure_cause = cause
            self.breaker.record_failure(trip=error.kind == "flood")
            if self.breaker.is_open:
                # The connection may hang forever, so the next attempt opens a new one.
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
        self._idle_timer = None
        if self._opening is not None:
            return
        connection, self._connection = self._connection, None
        if connection is not None:
            self._closing = _start_task(connection.close(), f"closing of {self.server}")


def _start_task(work: Coroutine[object, object, T], name: str) -> asyncio.Task[T]:
    task = asyncio.create_task(work, name=name)
    # Asyncio would warn about an outcome that a cancelled caller did not read.
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    return task
