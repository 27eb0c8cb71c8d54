"""When a server is left alone, and a service that hangs is skipped."""

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


def tripped(clock: ManualClock) -> Breaker:
    """One that opens after two failures, for 4 s, then 8 s, then 10 s; it is open."""
    options = UpstreamOptions(breaker_failures=2, breaker_s=4, breaker_max_s=10)
    circuit = Breaker(options, clock=clock)
    circuit.record_failure()
    circuit.record_success()
    circuit.record_failure()
    assert not circuit.is_open
    circuit.record_failure()
    return circuit


def test_failures_in_a_row_open_the_breaker_and_an_answer_between_does_not() -> None:
    """A server that works now and then works; waits vary by a fifth."""
    circuit = tripped(ManualClock())

    assert circuit.is_open
    with circuit.admit() as wait_s:
        assert pytest.approx(4, rel=0.2) == wait_s


@pytest.mark.parametrize("has_answered", [False, True])
def test_one_probe_decides_and_the_others_wait(*, has_answered: bool) -> None:
    """A server that just came back must not be stormed; a caller that left says nothing of it."""
    clock = ManualClock()
    circuit = tripped(clock)
    clock.tick(5)
    with circuit.admit() as probe_s:
        for _ in range(2):
            with circuit.admit() as wait_s:
                assert 1.0 == wait_s
        if has_answered:
            circuit.record_success()

    with circuit.admit() as next_s, circuit.admit() as other_s:
        assert (0.0, 0.0, 0.0 if has_answered else 1.0) == (probe_s, next_s, other_s)


def test_a_person_ends_the_wait_and_the_next_use_is_the_probe() -> None:
    """A breaker that is closed stays so."""
    circuit = tripped(ManualClock())
    circuit.end_wait()
    with circuit.admit() as probe_s, circuit.admit() as other_s:
        circuit.record_failure()
    closed = Breaker(UpstreamOptions(), clock=ManualClock())
    closed.end_wait()

    assert (0.0, 1.0, True) == (probe_s, other_s, circuit.is_open)
    assert not closed.has_tripped


@pytest.mark.parametrize("fails", [False, True])
def test_a_use_from_before_does_not_end_the_probe(*, fails: bool) -> None:
    """Whoever called while all was well, and goes away or fails now, has nothing to do with it."""
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


def test_each_failed_probe_doubles_the_wait_up_to_its_limit() -> None:
    """A server that is gone for good costs less and less."""
    clock = ManualClock()
    circuit = tripped(clock)
    waits = []
    for _ in range(4):
        with circuit.admit() as wait_s:
            waits.append(wait_s)
        clock.tick(wait_s)
        with circuit.admit():
            circuit.record_failure()

    assert pytest.approx([4.0, 8.0, 10.0, 10.0], rel=0.2) == waits


@pytest.mark.parametrize(("well_s", "expected_s"), [(0, 8.0), (9, 8.0), (10, 4.0), (100, 4.0)])
def test_the_waits_begin_anew_only_after_a_time_of_answers(
    well_s: float, expected_s: float
) -> None:
    """What answers once after each start, and then fails again, costs less and less."""
    clock = ManualClock()
    circuit = tripped(clock)
    clock.tick(100)
    for seconds in (0.0, well_s):
        clock.tick(seconds)
        with circuit.admit():
            circuit.record_success()
    circuit.record_failure(trip=True)

    with circuit.admit() as wait_s:
        assert pytest.approx(expected_s, rel=0.2) == wait_s


# -- services ------------------------------------------------------------------------------------


def _here(work: Callable[[], Coroutine[Any, Any, Any]]) -> Future[Any]:
    return asyncio.run_coroutine_threadsafe(work(), asyncio.get_running_loop())


Ask = Callable[..., Coroutine[None, None, object]]


def asking(clock: ManualClock, *, patience_s: float) -> Ask:
    """Ask through a guard whose time passes as soon as it sleeps; each request is a flight."""

    async def sleep(seconds: float) -> None:
        clock.tick(seconds)
        await asyncio.sleep(0)

    guard = ServiceGuard("model", patience_s=patience_s, submit=_here, clock=clock, sleep=sleep)
    flights = SingleFlight[object](_here)

    async def ask(work: Callable[[], Coroutine[Any, Any, object]], key: str = "a") -> object:
        return await guard.run(flights, key, work)

    return ask


async def asked_in_vain(
    ask: Ask, work: Callable[[], Coroutine[Any, Any, object]], clock: ManualClock
) -> str:
    """Ask, lose patience after 10 s, and return why there is no answer."""
    asking = asyncio.ensure_future(ask(work))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    clock.tick(10)
    asking.cancel()
    (result,) = await asyncio.gather(asking, return_exceptions=True)
    return str(result)


SKIPPED = "the model was skipped: it did not answer 3 times in a row"


async def test_a_service_that_hangs_is_skipped_until_a_late_answer() -> None:
    """Also where all searches wait for one request, which goes on: what it says counts."""
    clock, gate = ManualClock(), Gate()
    ask = asking(clock, patience_s=10)

    reasons = [await asked_in_vain(ask, gate.wait, clock) for _ in range(4)]
    gate.set()

    async def answered() -> bool:
        with suppress(GatewayError):
            await ask(gate.wait, "b")
            return True
        return False

    await until(answered)

    assert ["", "", ""] == reasons[:3]
    assert reasons[3].startswith(SKIPPED)


async def test_a_service_that_hangs_is_asked_again_in_the_background() -> None:
    """By nobody's search, further and further apart, and never for the last time."""
    clock, sent = ManualClock(), 0

    async def request() -> str:
        nonlocal sent
        sent += 1
        if sent < 5:
            raise OSError("down")
        return "answered"

    ask = asking(clock, patience_s=10)
    hung = Gate()
    await asked_in_vain(ask, hung.wait, clock)
    await asked_in_vain(ask, hung.wait, clock)
    began = clock()
    with pytest.raises(OSError, match="down"):
        await ask(_slow(request, clock), "b")

    async def answered() -> bool:
        return sent == 5

    await until(answered)

    assert "answered" == await ask(request, "c")
    # One slow failure of 2 s, then waits of 1, 2, 4 and 8 s, with jitter, and slow probes.
    assert clock() - began >= 2 + 0.8 * 15


def _slow(
    request: Callable[[], Coroutine[Any, Any, str]], clock: ManualClock, seconds: float = 2
) -> Callable[[], Coroutine[Any, Any, str]]:
    async def slow() -> str:
        clock.tick(seconds)
        return await request()

    return slow


@pytest.mark.parametrize(("took_s", "skipped"), [(0.0, False), (0.9, False), (1.1, True)])
async def test_only_a_failure_that_took_a_while_counts(took_s: float, *, skipped: bool) -> None:
    """A service that refuses at once costs no search anything: the next one tries again."""
    clock = ManualClock()
    ask = asking(clock, patience_s=10)

    async def request() -> str:
        raise OSError("refused")

    reasons = []
    for number in range(4):
        with pytest.raises((OSError, GatewayError)) as caught:
            await ask(_slow(request, clock, took_s), str(number))
        reasons.append(str(caught.value))

    assert ["refused"] * 3 == reasons[:3]
    assert skipped == reasons[3].startswith(SKIPPED)


async def test_requests_side_by_side_fail_once() -> None:
    """A search of several queries that finds no answer is one failure of the service."""
    clock, gate = ManualClock(), Gate()
    ask = asking(clock, patience_s=1)

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


async def test_who_goes_away_early_says_nothing_of_the_service() -> None:
    """A person who closes a window is no failure."""
    clock, gate = ManualClock(), Gate()
    ask = asking(clock, patience_s=1000)

    reasons = [await asked_in_vain(ask, gate.wait, clock) for _ in range(5)]
    gate.set()

    assert [""] * 5 == reasons
