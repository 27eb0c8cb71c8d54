"""Bounded memory with a lifetime, and one flight for equal work."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from gateway.runtime.background_loop import Bridge
from gateway.runtime.cache import Cache, SingleFlight
from gateway.testing import ManualClock


@pytest.fixture
def bridge() -> Iterator[Bridge]:
    bridge = Bridge("tests")
    yield bridge
    bridge.close()


def test_a_value_lives_from_its_putting_however_often_it_is_read() -> None:
    """Absolute lifetimes: what is popular must grow old too."""
    clock = ManualClock()
    cache = Cache[int]("c", max_items=4, ttl_s=10, clock=clock)
    cache.put("a", 1)

    clock.tick(9.5)
    alive = cache.get("a")
    clock.tick(1)

    assert (1, None) == (alive, cache.get("a"))


def test_the_oldest_goes_when_the_cache_is_full() -> None:
    """Memory has a bound."""
    cache = Cache[int]("c", max_items=2, ttl_s=10, clock=ManualClock())
    for number in range(3):
        cache.put(number, number)

    assert [None, 1, 2] == [cache.get(number) for number in range(3)]


def test_a_cache_of_no_items_keeps_nothing() -> None:
    """A size of 0 turns it off."""
    cache = Cache[int]("c", max_items=0, ttl_s=10)
    cache.put("a", 1)

    assert cache.get("a") is None


def test_the_owner_is_told_of_hits_and_misses_but_not_of_peeks() -> None:
    """A look that asks again for the same question must not count as a second one."""
    events: list[tuple[str, str]] = []
    cache = Cache[int]("c", max_items=2, ttl_s=10, on_event=lambda *event: events.append(event))
    cache.get("a")
    cache.peek("a")
    cache.put("a", 1)
    cache.get("a")

    assert [("c", "miss"), ("c", "hit")] == events


async def test_equal_work_at_the_same_time_runs_once(bridge: Bridge) -> None:
    """A hundred askers, one flight, and the owner knows who rode along."""
    events: list[str] = []
    runs: list[int] = []
    door = asyncio.Event()
    flights = SingleFlight[int](
        bridge.submit, name="f", on_event=lambda _name, event: events.append(event)
    )

    async def work() -> int:
        runs.append(1)
        await bridge.run(door.wait)
        return 7

    asking = [asyncio.ensure_future(flights.run("key", work)) for _ in range(100)]
    await asyncio.sleep(0)  # Each starts or joins the flight in its first step.
    bridge.submit(_set(door)).result()

    assert [7] * 100 == await asyncio.gather(*asking)
    assert [1] == runs
    assert ["coalesced"] * 99 == events


async def test_the_first_askers_cancellation_leaves_the_others_their_result(bridge: Bridge) -> None:
    """The flight belongs to nobody: whoever goes away, it lands."""
    door = asyncio.Event()
    flights = SingleFlight[int](bridge.submit)

    async def work() -> int:
        await door.wait()
        return 7

    first = asyncio.ensure_future(flights.run("key", work))
    await asyncio.sleep(0)
    second = asyncio.ensure_future(flights.run("key", work))
    await asyncio.sleep(0)
    first.cancel()
    bridge.submit(_set(door)).result()

    assert 7 == await second
    assert first.cancelled()


async def test_a_failed_flight_fails_all_who_ride_and_is_then_forgotten(bridge: Bridge) -> None:
    """A fault is not remembered: the next asker flies anew."""
    outcomes: list[Exception | None] = [ValueError("first"), None]

    async def work() -> int:
        fault = outcomes.pop(0)
        if fault:
            raise fault
        return 7

    flights = SingleFlight[int](bridge.submit)

    with pytest.raises(ValueError, match="first"):
        await flights.run("key", work)
    assert 7 == await flights.run("key", work)


async def test_a_flight_that_fails_when_nobody_waits_any_more_is_no_news(bridge: Bridge) -> None:
    """Whoever went away is not told of, in no log either."""
    events: list[dict[str, Any]] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: events.append(context))
    door = asyncio.Event()
    flights = SingleFlight[int](bridge.submit)

    async def work() -> int:
        await door.wait()
        raise ValueError("nobody hears this")

    waiting = asyncio.ensure_future(flights.run("key", work))
    await asyncio.sleep(0)
    flight = flights.start("key", work)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    landed = asyncio.Event()
    # Told after the one who waited, by the same way.
    flight.add_done_callback(lambda _: loop.call_soon_threadsafe(landed.set))
    bridge.submit(_set(door)).result()
    await landed.wait()
    del waiting, flight
    gc.collect()

    assert [] == events


def _set(door: asyncio.Event) -> Callable[[], Coroutine[Any, Any, None]]:
    async def work() -> None:
        door.set()

    return work
