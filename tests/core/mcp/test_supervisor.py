"""Supervisor: one shared session per server, replacement, idle end, and circuit breaker."""

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


class ScriptedConnection:
    """A connection whose opening waits for an event, and may fail."""

    def __init__(self, fault: Exception | None = None) -> None:
        self.may_open = asyncio.Event()
        self.may_open.set()
        self.fault = fault
        self.alive = True
        self.closed = 0
        self.flood: UpstreamError | None = None

    async def ready(self) -> None:
        await self.may_open.wait()
        if self.fault is not None:
            self.alive = False
            raise self.fault

    async def close(self) -> None:
        self.closed += 1
        self.alive = False
        self.fault = UpstreamError("s", "closed while it opened", kind="connect", sent=False)
        self.may_open.set()


class Connector:
    """A connect function that returns the connections *lines* in turn, then new ones."""

    def __init__(self, *lines: ScriptedConnection) -> None:
        self.lines = list(lines)
        self.opened: list[ScriptedConnection] = []

    async def __call__(self) -> ScriptedConnection:
        self.opened.append(self.lines.pop(0) if self.lines else ScriptedConnection())
        return self.opened[-1]


def supervised(
    *lines: ScriptedConnection, clock: ManualClock | None = None, **options: object
) -> tuple[Supervisor[ScriptedConnection], Connector]:
    connector = Connector(*lines)
    chosen = UpstreamOptions(**{**QUICK, **options})  # type: ignore[arg-type]  # as they came
    return Supervisor("s", connector, chosen, clock=clock or ManualClock()), connector


async def work(_connection: ScriptedConnection) -> str:
    return "done"


def raising(fault: Exception) -> Callable[[ScriptedConnection], Awaitable[None]]:
    async def fail(_connection: ScriptedConnection) -> None:
        raise fault

    return fail


class Gate:
    """Work on a connection that waits until the event `opened` is set."""

    def __init__(self) -> None:
        self.entered = asyncio.Event()
        self.opened = asyncio.Event()

    async def __call__(self, _connection: ScriptedConnection) -> None:
        self.entered.set()
        await self.opened.wait()


def lost() -> UpstreamError:
    return UpstreamError("s", "ended", kind="lost")


def unreached() -> UpstreamError:
    return UpstreamError("s", "nothing answers", kind="connect", sent=False)


async def test_connection_is_opened_once_at_the_first_use() -> None:
    supervisor, connector = supervised()
    before = supervisor.state

    await asyncio.gather(*(supervisor.use(work) for _ in range(20)))

    assert ("idle", "active") == (before, supervisor.state)
    assert (1, 0) == (len(connector.opened), supervisor.in_flight)


async def test_connection_stays_open_for_other_callers_if_its_opener_is_cancelled() -> None:
    line = ScriptedConnection()
    line.may_open.clear()
    supervisor, connector = supervised(line)
    first = asyncio.create_task(supervisor.use(work))
    second = asyncio.create_task(supervisor.use(work))
    await until(lambda: bool(connector.opened))
    state = supervisor.state

    first.cancel()
    await asyncio.wait({first})
    line.may_open.set()

    assert "done" == await second
    assert ("connecting", 1) == (state, len(connector.opened))


async def test_ended_connection_is_closed_before_the_next_is_opened() -> None:
    """Two child processes of one server could use the same files."""
    ended_connection = ScriptedConnection()
    supervisor, connector = supervised(ended_connection)
    await supervisor.use(work)
    ended_connection.alive = False

    await supervisor.use(work)

    assert (1, 2) == (ended_connection.closed, len(connector.opened))


async def test_repeated_failures_open_the_breaker_and_a_success_closes_it() -> None:
    """Several attempts to connect for one use count as one failure."""
    clock = ManualClock()
    lines = [ScriptedConnection(unreached()) for _ in range(6)]
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
async def test_breaker_opens_after_lost_connections_and_timeouts_only(
    fault: Exception, *, opens: bool
) -> None:
    """A failing tool or a missing key is no evidence about the connection."""
    supervisor, _ = supervised(breaker_failures=1)

    with pytest.raises(type(fault)):
        await supervisor.use(raising(fault))

    assert opens == supervisor.breaker.is_open


async def test_server_that_floods_after_each_start_is_skipped_for_longer_times() -> None:
    """One good answer after each start does not reset the breaker."""
    clock = ManualClock()
    supervisor, connector = supervised(clock=clock, breaker_s=2, breaker_max_s=60)
    for _ in range(600):
        clock.tick(1)
        with suppress(UpstreamUnavailableError):
            await supervisor.use(work)
            connector.opened[-1].flood = UpstreamFloodError("s", "sent too much")
            connector.opened[-1].alive = False

    # Skipped for 2, 4, 8, 16, 32 s, then a minute each, with jitter. Resets would give about 200
    # starts.
    assert 10 <= len(connector.opened) <= 20


async def test_lost_connection_counts_as_one_failure_for_many_waiting_calls() -> None:
    supervisor, _ = supervised(breaker_failures=2)

    answers = await asyncio.gather(
        *(supervisor.use(raising(lost())) for _ in range(20)), return_exceptions=True
    )

    assert not supervisor.breaker.is_open
    assert 20 == sum(isinstance(answer, UpstreamError) for answer in answers)


async def test_timeout_while_waiting_for_other_calls_does_not_count_as_a_failure() -> None:
    supervisor, _ = supervised(max_in_flight=1, call_timeout_s=0.05, breaker_failures=1)
    gate = Gate()
    working = asyncio.create_task(supervisor.use(gate))
    await gate.entered.wait()
    with pytest.raises(UpstreamUnavailableError, match="is busy: no request could start") as raised:
        await supervisor.use(work)
    gate.opened.set()
    await working

    assert "done" == await supervisor.use(work)
    assert (False, False) == (supervisor.breaker.is_open, raised.value.sent)


async def test_silent_session_is_replaced_at_the_next_attempt() -> None:
    """A child that hangs never ends by itself."""
    clock = ManualClock()
    silent_connection = ScriptedConnection()
    supervisor, connector = supervised(silent_connection, clock=clock, breaker_failures=2)
    for _ in range(2):
        with pytest.raises(UpstreamError):
            await supervisor.use(raising(UpstreamTimeoutError("s", "silent")))
    closed_before = silent_connection.closed
    clock.tick(60)

    await supervisor.use(work)
    await supervisor.use(work)

    assert (0, 1, 2) == (closed_before, silent_connection.closed, len(connector.opened))


async def test_session_without_idle_time_ends_after_its_last_use() -> None:
    """The next use waits until the session has ended."""
    line = ScriptedConnection()
    supervisor, connector = supervised(line, lifecycle="ephemeral")

    await asyncio.gather(supervisor.use(work), supervisor.use(work))
    await until(lambda: line.closed == 1)
    idle = supervisor.state
    await supervisor.use(work)

    assert ("idle", 2) == (idle, len(connector.opened))
    await supervisor.close()


async def test_idle_session_ends_after_its_timeout() -> None:
    """A use of the session stops the timer."""
    line = ScriptedConnection()
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


async def test_idle_timer_does_not_end_an_opening_session() -> None:
    """The caller that opened the session may be cancelled, while the next caller waits for the
    session.
    """
    line = ScriptedConnection()
    line.may_open.clear()
    supervisor, connector = supervised(line, lifecycle="idle", idle_timeout_s=0.0)
    first = asyncio.create_task(supervisor.use(work))
    await until(lambda: bool(connector.opened))
    first.cancel()
    await asyncio.wait({first})
    await asyncio.sleep(0)
    assert 0 == line.closed
    line.may_open.set()

    assert "done" == await supervisor.use(work)
    await supervisor.close()
    assert 1 == len(connector.opened)


async def test_close_ends_an_opening_session_and_refuses_further_uses() -> None:
    line = ScriptedConnection()
    line.may_open.clear()
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
