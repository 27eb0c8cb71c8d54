"""Caches with a maximum size and lifetime, and sharing of equal work."""

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


def test_reads_do_not_extend_the_lifetime_of_a_value() -> None:
    clock = ManualClock()
    cache = Cache[int]("c", max_items=4, ttl_s=10, clock=clock)
    cache.put("a", 1)

    clock.tick(9.5)
    alive = cache.get("a")
    clock.tick(1)

    assert (1, None) == (alive, cache.get("a"))


def test_full_cache_drops_its_oldest_value() -> None:
    cache = Cache[int]("c", max_items=2, ttl_s=10, clock=ManualClock())
    for number in range(3):
        cache.put(number, number)

    assert [None, 1, 2] == [cache.get(number) for number in range(3)]


def test_cache_of_size_0_keeps_nothing() -> None:
    cache = Cache[int]("c", max_items=0, ttl_s=10)
    cache.put("a", 1)

    assert cache.get("a") is None


def test_cache_reports_hits_and_misses_of_get_but_not_of_peek() -> None:
    """`peek` is a second lookup for the same request, which must not count."""
    events: list[tuple[str, str]] = []
    cache = Cache[int]("c", max_items=2, ttl_s=10, on_event=lambda *event: events.append(event))
    cache.get("a")
    cache.peek("a")
    cache.put("a", 1)
    cache.get("a")

    assert [("c", "miss"), ("c", "hit")] == events


async def test_equal_concurrent_work_runs_once(bridge: Bridge) -> None:
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
    await asyncio.sleep(0)  # each caller starts or joins the work in its first step
    bridge.submit(_set(door)).result()

    assert [7] * 100 == await asyncio.gather(*asking)
    assert [1] == runs
    assert ["coalesced"] * 99 == events


async def test_other_callers_get_the_result_if_the_first_caller_is_cancelled(
    bridge: Bridge,
) -> None:
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


async def test_failed_work_fails_for_all_callers_and_is_not_cached(bridge: Bridge) -> None:
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


async def test_failed_work_is_not_logged_after_all_callers_were_cancelled(bridge: Bridge) -> None:
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
    # Runs after the callback of the waiting caller, on the same loop.
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
