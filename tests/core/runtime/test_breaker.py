"""Circuit breakers of servers, and guards of services that hang."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from typing import Any

import pytest

from gateway.errors import GatewayError
from gateway.options import UpstreamOptions
from gateway.runtime.breaker import Breaker, ServiceGuard
from gateway.runtime.cache import SingleFlight
from gateway.testing import ManualClock
from tests.fakes import Gate, until


def open_breaker(clock: ManualClock) -> Breaker:
    """Return a breaker that two failures in a row opened. It is open for 4 s, then 8 s, then 10
    s.
    """
    options = UpstreamOptions(breaker_failures=2, breaker_s=4, breaker_max_s=10)
    circuit = Breaker(options, clock=clock)
    circuit.record_failure()
    circuit.record_success()
    circuit.record_failure()
    assert not circuit.is_open
    circuit.record_failure()
    return circuit


def test_only_consecutive_failures_open_the_breaker() -> None:
    circuit = open_breaker(ManualClock())

    assert circuit.is_open
    with circuit.admit() as wait_s:
        assert pytest.approx(4, rel=0.2) == wait_s


@pytest.mark.parametrize("has_answered", [False, True])
def test_breaker_admits_one_probe_at_a_time(*, has_answered: bool) -> None:
    """Many uses at once could overload a server that has just restarted. If a probe ends without an
    outcome, the next use becomes the probe.
    """
    clock = ManualClock()
    circuit = open_breaker(clock)
    clock.tick(5)
    with circuit.admit() as probe_s:
        for _ in range(2):
            with circuit.admit() as wait_s:
                assert 1.0 == wait_s
        if has_answered:
            circuit.record_success()

    with circuit.admit() as next_s, circuit.admit() as other_s:
        assert (0.0, 0.0, 0.0 if has_answered else 1.0) == (probe_s, next_s, other_s)


def test_end_wait_admits_the_next_use_as_probe() -> None:
    """`end_wait` does not change a closed breaker."""
    circuit = open_breaker(ManualClock())
    circuit.end_wait()
    with circuit.admit() as probe_s, circuit.admit() as other_s:
        circuit.record_failure()
    closed = Breaker(UpstreamOptions(), clock=ManualClock())
    closed.end_wait()

    assert (0.0, 1.0, True) == (probe_s, other_s, circuit.is_open)
    assert not closed.has_tripped


@pytest.mark.parametrize("fails", [False, True])
def test_use_that_started_before_the_probe_does_not_end_the_probe(*, fails: bool) -> None:
    clock = ManualClock()
    circuit = Breaker(UpstreamOptions(breaker_failures=1, breaker_s=4), clock=clock)
    with ExitStack() as probing:
        with circuit.admit():
            circuit.record_failure()
            clock.tick(5)
            assert 0.0 == probing.enter_context(circuit.admit())
            if fails:
                circuit.record_failure()
                clock.tick(20)
        with circuit.admit() as wait_s:
            assert 1.0 == wait_s


def test_each_failed_probe_doubles_the_open_time_up_to_the_maximum() -> None:
    clock = ManualClock()
    circuit = open_breaker(clock)
    waits = []
    for _ in range(4):
        with circuit.admit() as wait_s:
            waits.append(wait_s)
        clock.tick(wait_s)
        with circuit.admit():
            circuit.record_failure()

    assert pytest.approx([4.0, 8.0, 10.0, 10.0], rel=0.2) == waits


@pytest.mark.parametrize(("well_s", "expected_s"), [(0, 8.0), (9, 8.0), (10, 4.0), (100, 4.0)])
def test_open_time_is_reset_after_a_time_without_failures(well_s: float, expected_s: float) -> None:
    """A single success must not reset it: a server that answers once after each start and then
    fails must be tried less and less often.
    """
    clock = ManualClock()
    circuit = open_breaker(clock)
    clock.tick(100)
    for seconds in (0.0, well_s):
        clock.tick(seconds)
        with circuit.admit():
            circuit.record_success()
    circuit.record_failure(trip=True)

    with circuit.admit() as wait_s:
        assert pytest.approx(expected_s, rel=0.2) == wait_s


# -- guards of services --------------------------------------------------------------------------


def run_here(work: Callable[[], Coroutine[Any, Any, Any]]) -> Future[Any]:
    return asyncio.run_coroutine_threadsafe(work(), asyncio.get_running_loop())


Ask = Callable[..., Coroutine[None, None, object]]


def guarded_requests(clock: ManualClock, *, patience_s: float) -> Ask:
    """Return a function that sends requests through a `ServiceGuard`, whose sleeps advance the
    clock.
    """

    async def sleep(seconds: float) -> None:
        clock.tick(seconds)
        await asyncio.sleep(0)

    guard = ServiceGuard("model", patience_s=patience_s, submit=run_here, clock=clock, sleep=sleep)
    flights = SingleFlight[object](run_here)

    async def ask(work: Callable[[], Coroutine[Any, Any, object]], key: str = "a") -> object:
        return await guard.run(flights, key, work)

    return ask


async def request_without_answer(
    ask: Ask, work: Callable[[], Coroutine[Any, Any, object]], clock: ManualClock
) -> str:
    """Send a request that gets no answer, give up after 10 s, and return the message of the
    error.
    """
    request = asyncio.ensure_future(ask(work))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    clock.tick(10)
    request.cancel()
    (result,) = await asyncio.gather(request, return_exceptions=True)
    return str(result)


SKIPPED = "the model was skipped: it did not answer 3 times in a row"


async def test_hanging_service_is_skipped_until_a_late_answer() -> None:
    """The unanswered request continues in the background, and its late answer counts."""
    clock, gate = ManualClock(), Gate()
    ask = guarded_requests(clock, patience_s=10)

    reasons = [await request_without_answer(ask, gate.wait, clock) for _ in range(4)]
    gate.set()

    async def answered() -> bool:
        with suppress(GatewayError):
            await ask(gate.wait, "b")
            return True
        return False

    await until(answered)

    assert ["", "", ""] == reasons[:3]
    assert reasons[3].startswith(SKIPPED)


async def test_hanging_service_is_probed_in_the_background() -> None:
    """The probes are not part of a search's trace, have growing intervals and never stop."""
    clock, sent = ManualClock(), 0

    async def request() -> str:
        nonlocal sent
        sent += 1
        if sent < 5:
            raise OSError("down")
        return "answered"

    ask = guarded_requests(clock, patience_s=10)
    hung = Gate()
    await request_without_answer(ask, hung.wait, clock)
    await request_without_answer(ask, hung.wait, clock)
    start = clock()
    with pytest.raises(OSError, match="down"):
        await ask(_slow(request, clock), "b")

    async def answered() -> bool:
        return sent == 5

    await until(answered)

    assert "answered" == await ask(request, "c")
    # One slow failure of 2 s, then waits of 1, 2, 4 and 8 s, with jitter, and slow probes.
    assert clock() - start >= 2 + 0.8 * 15


def _slow(
    request: Callable[[], Coroutine[Any, Any, str]], clock: ManualClock, seconds: float = 2
) -> Callable[[], Coroutine[Any, Any, str]]:
    async def slow() -> str:
        clock.tick(seconds)
        return await request()

    return slow


@pytest.mark.parametrize(("took_s", "skipped"), [(0.0, False), (0.9, False), (1.1, True)])
async def test_guard_counts_only_slow_failures(took_s: float, *, skipped: bool) -> None:
    """A service that refuses at once costs searches no time."""
    clock = ManualClock()
    ask = guarded_requests(clock, patience_s=10)

    async def request() -> str:
        raise OSError("refused")

    reasons = []
    for number in range(4):
        with pytest.raises((OSError, GatewayError)) as caught:
            await ask(_slow(request, clock, took_s), str(number))
        reasons.append(str(caught.value))

    assert ["refused"] * 3 == reasons[:3]
    assert skipped == reasons[3].startswith(SKIPPED)


async def test_failed_concurrent_requests_count_as_one_failure() -> None:
    """A search may send several queries at the same time."""
    clock, gate = ManualClock(), Gate()
    ask = guarded_requests(clock, patience_s=1)

    async def request() -> str:
        await gate.wait()
        raise OSError("refused")

    works = [asyncio.create_task(ask(request, str(number))) for number in range(5)]
    await asyncio.sleep(0)
    clock.tick(2)
    gate.set()
    failed = await asyncio.gather(*works, return_exceptions=True)

    async def answer() -> str:
        return "here"

    assert ["refused"] * 5 == list(map(str, failed))
    assert "here" == await ask(answer, "next")


async def test_guard_does_not_count_a_caller_that_leaves_early() -> None:
    clock, gate = ManualClock(), Gate()
    ask = guarded_requests(clock, patience_s=1000)

    reasons = [await request_without_answer(ask, gate.wait, clock) for _ in range(5)]
    gate.set()

    assert [""] * 5 == reasons
