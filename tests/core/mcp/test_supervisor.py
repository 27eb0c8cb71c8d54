"""One session a server: opened once for all, replaced when it died, let sleep, left alone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest

from gateway.errors import (
    ClosedError,
    ConfigError,
    UpstreamError,
    UpstreamFloodError,
    UpstreamTimeoutError,
    UpstreamUnavailableError,
)
from gateway.mcp import Supervisor
from gateway.options import UpstreamOptions
from gateway.testing import ManualClock
from tests.core.mcp.conftest import until

QUICK = {"backoff_s": 0.0, "backoff_max_s": 0.0}


class Line:
    """A connection whose opening waits for a door, and may fail."""

    def __init__(self, fault: Exception | None = None) -> None:
        self.door = asyncio.Event()
        self.door.set()
        self.fault = fault
        self.alive = True
        self.closed = 0
        self.flood: UpstreamError | None = None

    async def ready(self) -> None:
        await self.door.wait()
        if self.fault is not None:
            self.alive = False
            raise self.fault

    async def close(self) -> None:
        self.closed += 1
        self.alive = False
        self.fault = UpstreamError("s", "closed while it opened", kind="connect", sent=False)
        self.door.set()


class Connector:
    """Opens *lines* in turn, then new ones."""

    def __init__(self, *lines: Line) -> None:
        self.lines = list(lines)
        self.opened: list[Line] = []

    async def __call__(self) -> Line:
        self.opened.append(self.lines.pop(0) if self.lines else Line())
        return self.opened[-1]


def supervised(
    *lines: Line, clock: ManualClock | None = None, **options: object
) -> tuple[Supervisor[Line], Connector]:
    connector = Connector(*lines)
    chosen = UpstreamOptions(**{**QUICK, **options})  # type: ignore[arg-type]  # as they came
    return Supervisor("s", connector, chosen, clock=clock or ManualClock()), connector


async def work(_connection: Line) -> str:
    return "done"


def raising(fault: Exception) -> Callable[[Line], Awaitable[None]]:
    async def fail(_connection: Line) -> None:
        raise fault

    return fail


class Gate:
    """Work that waits until it may end."""

    def __init__(self) -> None:
        self.entered = asyncio.Event()
        self.opened = asyncio.Event()

    async def __call__(self, _connection: Line) -> None:
        self.entered.set()
        await self.opened.wait()


def lost() -> UpstreamError:
    return UpstreamError("s", "ended", kind="lost")


def unreached() -> UpstreamError:
    return UpstreamError("s", "nothing answers", kind="connect", sent=False)


async def test_nothing_is_opened_before_somebody_needs_it_and_then_once() -> None:
    """Twenty calls of one turn share one child."""
    supervisor, connector = supervised()
    before = supervisor.state

    await asyncio.gather(*(supervisor.use(work) for _ in range(20)))

    assert ("idle", "active") == (before, supervisor.state)
    assert (1, 0) == (len(connector.opened), supervisor.in_flight)


async def test_the_caller_who_opens_may_go_away() -> None:
    """The others still get their connection, and it is opened once."""
    line = Line()
    line.door.clear()
    supervisor, connector = supervised(line)
    first = asyncio.create_task(supervisor.use(work))
    second = asyncio.create_task(supervisor.use(work))
    await until(lambda: bool(connector.opened))
    state = supervisor.state

    first.cancel()
    await asyncio.wait({first})
    line.door.set()

    assert "done" == await second
    assert ("connecting", 1) == (state, len(connector.opened))


async def test_a_connection_that_died_is_closed_before_the_next_is_opened() -> None:
    """Two children of one server may hold the same files."""
    dead = Line()
    supervisor, connector = supervised(dead)
    await supervisor.use(work)
    dead.alive = False

    await supervisor.use(work)

    assert (1, 2) == (dead.closed, len(connector.opened))


async def test_failures_in_a_row_open_the_breaker_and_one_probe_closes_it() -> None:
    """Three attempts are one failure. A dead server costs nothing while it is left alone, and
    nobody has to reset anything.
    """
    clock = ManualClock()
    lines = [Line(unreached()) for _ in range(6)]
    supervisor, connector = supervised(*lines, clock=clock, breaker_failures=2)
    for attempts in (3, 6):
        assert not supervisor.breaker.is_open
        with pytest.raises(UpstreamError, match="nothing answers"):
            await supervisor.use(work)
        assert ("failed", attempts) == (supervisor.state, len(connector.opened))
    with pytest.raises(UpstreamUnavailableError, match="nothing answers") as refused:
        await supervisor.use(work)
    assert 6 == len(connector.opened)
    assert not refused.value.sent
    clock.tick(refused.value.retry_after_s)

    await supervisor.use(work)

    assert not supervisor.breaker.is_open


@pytest.mark.parametrize(
    ("fault", "opens"),
    [
        (UpstreamError("s", "an error of the protocol"), False),
        (UpstreamError("s", "wrong key", kind="authorization"), False),
        (ConfigError("no kind of server"), False),
        (lost(), True),
        (UpstreamTimeoutError("s", "silent"), True),
    ],
)
async def test_death_and_silence_open_the_breaker_and_no_answer_does(
    fault: Exception, *, opens: bool
) -> None:
    """A tool that fails, or a key that is missing, says nothing about the connection."""
    supervisor, _ = supervised(breaker_failures=1)

    with pytest.raises(type(fault)):
        await supervisor.use(raising(fault))

    assert opens == supervisor.breaker.is_open


async def test_a_server_that_answers_and_then_floods_is_left_alone_longer_and_longer() -> None:
    """A good answer after each start is no time of good behaviour."""
    clock = ManualClock()
    supervisor, connector = supervised(clock=clock, breaker_s=2, breaker_max_s=60)
    for _ in range(600):
        clock.tick(1)
        with suppress(UpstreamUnavailableError):
            await supervisor.use(work)
            connector.opened[-1].flood = UpstreamFloodError("s", "sent too much")
            connector.opened[-1].alive = False

    # After 2, 4, 8, 16, 32 s, then each minute, with jitter; it was some 200 starts.
    assert 10 <= len(connector.opened) <= 20


async def test_one_death_under_many_calls_is_one_failure() -> None:
    """A turn of twenty calls must not close a server that died once."""
    supervisor, _ = supervised(breaker_failures=2)

    answers = await asyncio.gather(
        *(supervisor.use(raising(lost())) for _ in range(20)), return_exceptions=True
    )

    assert not supervisor.breaker.is_open
    assert 20 == sum(isinstance(answer, UpstreamError) for answer in answers)


async def test_waiting_for_a_turn_has_an_end_and_says_nothing_of_the_server() -> None:
    """Whoever waits behind calls that hang must not hang too."""
    supervisor, _ = supervised(max_in_flight=1, call_timeout_s=0.05, breaker_failures=1)
    gate = Gate()
    working = asyncio.create_task(supervisor.use(gate))
    await gate.entered.wait()
    with pytest.raises(UpstreamUnavailableError, match="is busy: 1 requests") as raised:
        await supervisor.use(work)
    gate.opened.set()
    await working

    assert "done" == await supervisor.use(work)
    assert (False, False) == (supervisor.breaker.is_open, raised.value.sent)


async def test_a_session_that_only_stays_silent_is_replaced_by_the_probe() -> None:
    """A child that hangs never dies: without this its server would be lost for good."""
    clock = ManualClock()
    stuck = Line()
    supervisor, connector = supervised(stuck, clock=clock, breaker_failures=2)
    for _ in range(2):
        with pytest.raises(UpstreamError):
            await supervisor.use(raising(UpstreamTimeoutError("s", "silent")))
    left = stuck.closed
    clock.tick(60)

    await supervisor.use(work)
    await supervisor.use(work)

    assert (0, 1, 2) == (left, stuck.closed, len(connector.opened))


async def test_an_ephemeral_session_ends_after_its_last_use() -> None:
    """And the next use waits until it is gone."""
    line = Line()
    supervisor, connector = supervised(line, lifecycle="ephemeral")

    await asyncio.gather(supervisor.use(work), supervisor.use(work))
    await until(lambda: line.closed == 1)
    idle = supervisor.state
    await supervisor.use(work)

    assert ("idle", 2) == (idle, len(connector.opened))
    await supervisor.close()


async def test_an_idle_session_sleeps_after_a_while_unless_it_is_used() -> None:
    """A use puts the alarm off; the catalog stays searchable meanwhile."""
    line = Line()
    supervisor, _ = supervised(line, lifecycle="idle", idle_timeout_s=0.02)
    gate = Gate()
    await supervisor.use(work)
    working = asyncio.create_task(supervisor.use(gate))
    await gate.entered.wait()
    awake = line.closed
    gate.opened.set()
    await working
    await until(lambda: line.closed == 1)

    assert (0, "idle") == (awake, supervisor.state)


async def test_an_alarm_leaves_a_session_that_is_opening_alone() -> None:
    """Whoever began it may be gone: it belongs to whoever needs it next."""
    line = Line()
    line.door.clear()
    supervisor, connector = supervised(line, lifecycle="idle", idle_timeout_s=0.0)
    first = asyncio.create_task(supervisor.use(work))
    await until(lambda: bool(connector.opened))
    first.cancel()
    await asyncio.wait({first})
    await asyncio.sleep(0)
    assert 0 == line.closed
    line.door.set()

    assert "done" == await supervisor.use(work)
    await supervisor.close()
    assert 1 == len(connector.opened)


async def test_closing_ends_an_opening_and_refuses_what_comes() -> None:
    """Whoever waited learns why."""
    line = Line()
    line.door.clear()
    supervisor, connector = supervised(line)
    using = asyncio.create_task(supervisor.use(work))
    await until(lambda: bool(connector.opened))

    assert supervisor.refuse()
    await asyncio.gather(supervisor.close(), supervisor.close())

    with pytest.raises(ClosedError):
        await using
    with pytest.raises(ClosedError):
        await supervisor.use(work)
    assert "closed" == supervisor.state
