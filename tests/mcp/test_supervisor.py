"""One session a server: opened once for all, replaced when it died, let sleep, left alone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from gateway.errors import (
    ClosedError,
    ConfigError,
    UpstreamError,
    UpstreamTimeoutError,
    UpstreamUnavailableError,
)
from gateway.mcp.supervisor import Connection, Supervisor
from gateway.options import UpstreamOptions
from gateway.testing import ManualClock
from gateway.types import InvokeResult, JsonObject
from gateway.types.listing import Listing, WatchCallbacks
from tests.mcp.conftest import until

QUICK = {"backoff_s": 0.0, "backoff_max_s": 0.0}


class Line:
    """A connection whose opening waits for a door, and may fail."""

    def __init__(self, fault: Exception | None = None) -> None:
        self.door = asyncio.Event()
        self.door.set()
        self.fault = fault
        self.alive = True
        self.closed = 0

    async def ready(self) -> None:
        await self.door.wait()
        if self.fault is not None:
            self.alive = False
            raise self.fault

    async def list_tools(self) -> Listing:
        return Listing()

    async def call(self, tool: str, arguments: JsonObject, *, tool_id: str) -> InvokeResult:
        return InvokeResult(tool_id=tool_id)

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        return {"asked": method, **params}

    async def watch(self, uri: str, callbacks: WatchCallbacks) -> None:
        del uri
        callbacks.on_start()

    async def close(self) -> None:
        self.closed += 1
        self.alive = False
        self.fault = UpstreamError("s", "closed while it opened", kind="connect", sent=False)
        self.door.set()


class Plug:
    """Gives lines in turn, the last one again and again by its recipe."""

    def __init__(self, *lines: Line) -> None:
        self.lines = list(lines)
        self.given: list[Line] = []

    async def __call__(self) -> Connection:
        self.given.append(self.lines.pop(0) if self.lines else Line())
        return self.given[-1]


def supervised(
    *lines: Line, clock: ManualClock | None = None, **options: object
) -> tuple[Supervisor, Plug]:
    plug = Plug(*lines)
    chosen = UpstreamOptions(**{**QUICK, **options})  # type: ignore[arg-type]  # as they came
    return Supervisor("s", plug, chosen, clock=clock or ManualClock()), plug


async def listing(connection: Connection) -> Listing:
    return await connection.list_tools()


def raising(fault: Exception) -> Callable[[Connection], Awaitable[Listing]]:
    async def work(_connection: Connection) -> Listing:
        raise fault

    return work


def lost() -> UpstreamError:
    return UpstreamError("s", "ended", kind="lost")


def unreached() -> UpstreamError:
    return UpstreamError("s", "nothing answers", kind="connect", sent=False)


async def test_nothing_is_opened_before_somebody_needs_it_and_then_once() -> None:
    """Twenty calls of one turn share one child."""
    supervisor, plug = supervised()
    before = supervisor.state

    await asyncio.gather(*(supervisor.use(listing) for _ in range(20)))

    assert ("idle", "active", 1, 0) == (
        before,
        supervisor.state,
        len(plug.given),
        supervisor.in_flight,
    )


async def test_the_caller_who_opens_may_go_away() -> None:
    """The others still get their connection, and it is opened once."""
    line = Line()
    line.door.clear()
    supervisor, plug = supervised(line)
    first = asyncio.create_task(supervisor.use(listing))
    second = asyncio.create_task(supervisor.use(listing))
    await until(lambda: bool(plug.given))
    state = supervisor.state

    first.cancel()
    await asyncio.wait({first})
    line.door.set()

    assert Listing() == await second
    assert ("connecting", 1) == (state, len(plug.given))


async def test_a_connection_that_died_is_closed_before_the_next_is_opened() -> None:
    """Two children of one server may hold the same files."""
    dead = Line()
    supervisor, plug = supervised(dead)
    await supervisor.use(listing)
    dead.alive = False

    await supervisor.use(listing)

    assert (1, 2) == (dead.closed, len(plug.given))


async def test_an_opening_is_tried_again_and_then_reported() -> None:
    """Three attempts are one failure."""
    supervisor, plug = supervised(*(Line(unreached()) for _ in range(3)))

    with pytest.raises(UpstreamError, match="nothing answers"):
        await supervisor.use(listing)

    assert ("failed", "closed", 3) == (supervisor.state, supervisor.breaker, len(plug.given))


async def test_failures_in_a_row_open_the_breaker_and_one_probe_closes_it() -> None:
    """A dead server costs nothing while it is left alone, and nobody has to reset anything."""
    clock = ManualClock()
    supervisor, plug = supervised(
        Line(unreached()), Line(unreached()), clock=clock, connect_attempts=1, breaker_failures=2
    )
    for _ in range(2):
        with pytest.raises(UpstreamError, match="nothing answers"):
            await supervisor.use(listing)
    with pytest.raises(UpstreamUnavailableError, match="nothing answers") as refused:
        await supervisor.use(listing)
    tried = len(plug.given)
    clock.tick(refused.value.retry_after_s)

    await supervisor.use(listing)

    assert (2, 3, "closed") == (tried, len(plug.given), supervisor.breaker)
    assert not refused.value.sent


@pytest.mark.parametrize(
    "fault",
    [
        UpstreamError("s", "an error of the protocol"),
        UpstreamError("s", "wrong key", kind="authorization"),
        ConfigError("no kind of server"),
    ],
)
async def test_what_a_server_answers_never_opens_the_breaker(fault: Exception) -> None:
    """A tool that fails, or a key that is missing, says nothing about the connection."""
    supervisor, _ = supervised(breaker_failures=1)

    for _ in range(3):
        with pytest.raises(type(fault)):
            await supervisor.use(raising(fault))

    assert "closed" == supervisor.breaker


@pytest.mark.parametrize("fault", [lost(), UpstreamTimeoutError("s", "silent")])
async def test_death_and_silence_open_it(fault: UpstreamError) -> None:
    """Those are the connection's own."""
    supervisor, _ = supervised(breaker_failures=1)

    with pytest.raises(UpstreamError):
        await supervisor.use(raising(fault))

    assert "open" == supervisor.breaker


async def test_one_death_under_many_calls_is_one_failure() -> None:
    """A turn of twenty calls must not close a server that died once."""
    supervisor, _ = supervised(breaker_failures=2)

    answers = await asyncio.gather(
        *(supervisor.use(raising(lost())) for _ in range(20)), return_exceptions=True
    )

    assert {"closed"} == {supervisor.breaker}
    assert 20 == sum(isinstance(answer, UpstreamError) for answer in answers)


async def test_a_probe_whose_caller_left_does_not_hold_the_breaker() -> None:
    """Cancelled is neither good nor bad."""
    clock = ManualClock()
    supervisor, _ = supervised(clock=clock, breaker_failures=1)
    with pytest.raises(UpstreamError):
        await supervisor.use(raising(lost()))
    clock.tick(60)
    waiting = asyncio.Event()

    async def hang(_connection: Connection) -> None:
        waiting.set()
        await asyncio.Event().wait()

    probe = asyncio.create_task(supervisor.use(hang))
    await waiting.wait()
    probe.cancel()
    await asyncio.wait({probe})

    assert Listing() == await supervisor.use(listing)


async def test_waiting_for_a_turn_has_an_end_and_says_nothing_of_the_server() -> None:
    """Whoever waits behind calls that hang must not hang too."""
    supervisor, _ = supervised(max_in_flight=1, call_timeout_s=0.05, breaker_failures=1)
    gate = asyncio.Event()

    async def work(_connection: Connection) -> None:
        await gate.wait()

    working = asyncio.create_task(supervisor.use(work))
    await until(lambda: supervisor.in_flight == 1)
    with pytest.raises(UpstreamUnavailableError, match="is busy: 1 requests") as raised:
        await supervisor.use(listing)
    gate.set()
    await working

    assert Listing() == await supervisor.use(listing)
    assert ("closed", False) == (supervisor.breaker, raised.value.sent)


async def test_a_session_that_only_stays_silent_is_replaced_by_the_probe() -> None:
    """A child that hangs never dies: without this its server would be lost for good."""
    clock = ManualClock()
    stuck = Line()
    supervisor, plug = supervised(stuck, clock=clock, breaker_failures=2)
    for _ in range(2):
        with pytest.raises(UpstreamError):
            await supervisor.use(raising(UpstreamTimeoutError("s", "silent")))
    left = stuck.closed
    clock.tick(60)

    await supervisor.use(listing)
    await supervisor.use(listing)

    assert (0, 1, 2) == (left, stuck.closed, len(plug.given))


async def test_an_ephemeral_session_ends_after_its_last_use() -> None:
    """And the next use waits until it is gone."""
    line = Line()
    supervisor, plug = supervised(line, lifecycle="ephemeral")

    await asyncio.gather(supervisor.use(listing), supervisor.use(listing))
    await until(lambda: line.closed == 1)
    idle = supervisor.state
    await supervisor.use(listing)

    assert ("idle", 2) == (idle, len(plug.given))
    await supervisor.close()


async def test_an_idle_session_sleeps_after_a_while_unless_it_is_used() -> None:
    """A use puts the alarm off; the catalog stays searchable meanwhile."""
    line = Line()
    supervisor, _ = supervised(line, lifecycle="idle", idle_timeout_s=0.02)
    gate = asyncio.Event()

    async def work(_connection: Connection) -> None:
        await gate.wait()

    await supervisor.use(listing)
    working = asyncio.create_task(supervisor.use(work))
    await until(lambda: supervisor.in_flight == 1)
    awake = line.closed
    gate.set()
    await working
    await until(lambda: line.closed == 1)

    assert (0, "idle") == (awake, supervisor.state)


async def test_an_alarm_leaves_a_session_that_is_opening_alone() -> None:
    """It belongs to whoever needs it now."""
    first, second = Line(), Line()
    second.door.clear()
    supervisor, plug = supervised(first, second, lifecycle="idle", idle_timeout_s=0.0)
    await supervisor.use(listing)
    first.alive = False
    using = asyncio.create_task(supervisor.use(listing))
    await until(lambda: len(plug.given) == 2)
    second.door.set()

    assert Listing() == await using
    await supervisor.close()
    assert 1 == second.closed


async def test_closing_ends_an_opening_and_refuses_what_comes() -> None:
    """Whoever waited learns why."""
    line = Line()
    line.door.clear()
    supervisor, plug = supervised(line)
    using = asyncio.create_task(supervisor.use(listing))
    await until(lambda: bool(plug.given))

    assert supervisor.refuse()
    await asyncio.gather(supervisor.close(), supervisor.close())

    with pytest.raises(ClosedError):
        await using
    with pytest.raises(ClosedError):
        await supervisor.use(listing)
    assert "closed" == supervisor.state
