"""Caches with a maximum size and lifetime, and sharing of equal concurrent work.

All accesses are locked, because cachetools is not thread-safe.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import math
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Hashable
from contextlib import suppress
from typing import Any, Generic, Literal, TypeVar

from cachetools import TTLCache
from cachetools.keys import hashkey

V = TypeVar("V")
Event = Literal["hit", "miss", "coalesced"]
CacheListener = Callable[[str, Event], None]
"""Called with the cache's name and the event. ``coalesced``: the caller shares running work."""
Clock = Callable[[], float]
Submit = Callable[[Callable[[], Coroutine[Any, Any, V]]], concurrent.futures.Future[V]]
Share = Callable[[Hashable, Callable[[], Coroutine[Any, Any, V]]], Awaitable[V]]
"""Awaits work. Concurrent calls with equal keys share one run, as in `SingleFlight.run`."""


def _ignore(_name: str, _event: Event) -> None:
    return


def key_of(*parts: Hashable) -> Hashable:
    """Return a cache key that computes its hash only once."""
    key: Hashable = hashkey(*parts)
    return key


class Cache(Generic[V]):
    """A mapping with at most ``max_items`` values, each for at most ``ttl_s`` seconds."""

    def __init__(
        self,
        name: str,
        *,
        max_items: int,
        ttl_s: float = math.inf,
        clock: Clock = time.monotonic,
        on_event: CacheListener | None = None,
    ) -> None:
        self.name = name
        self._on_event = on_event or _ignore
        self._lock = threading.Lock()
        self._items: TTLCache[Hashable, V] = TTLCache(max_items, ttl_s, timer=clock)

    def get(self, key: Hashable) -> V | None:
        """Return the value of *key*, or None. Report a hit or a miss to the listener."""
        value = self.peek(key)
        self._on_event(self.name, "miss" if value is None else "hit")
        return value

    def peek(self, key: Hashable) -> V | None:
        """Return the value of *key*, or None, without a report."""
        # `get` of cachetools would look up the key twice.
        with self._lock, suppress(KeyError):
            return self._items[key]
        return None

    def put(self, key: Hashable, value: V) -> None:
        """Store a value. A full cache drops its oldest value."""
        with self._lock, suppress(ValueError):
            self._items[key] = value

    def drop(self, key: Hashable) -> None:
        """Remove *key* if present."""
        with self._lock:
            self._items.pop(key, None)


class SingleFlight(Generic[V]):
    """Runs equal concurrent work only once and shares the result.

    If a caller is cancelled, even the first one, the others still get the result.
    """

    def __init__(
        self, submit: Submit[V], *, name: str = "", on_event: CacheListener | None = None
    ) -> None:
        self.name = name
        self._submit = submit
        self._on_event = on_event or _ignore
        self._lock = threading.Lock()
        self._flights: dict[Hashable, concurrent.futures.Future[V]] = {}

    def __len__(self) -> int:
        return len(self._flights)

    async def run(self, key: Hashable, work: Callable[[], Coroutine[Any, Any, V]]) -> V:
        """Return the result of the running work for *key*, or of *work* if none is running."""
        waiting = asyncio.wrap_future(self.start(key, work))
        # If the caller goes away, asyncio must not report an exception.
        waiting.add_done_callback(_retrieve_error)
        return await asyncio.shield(waiting)

    def start(
        self, key: Hashable, work: Callable[[], Coroutine[Any, Any, V]]
    ) -> concurrent.futures.Future[V]:
        """Return the future of the running work for *key*. Start *work* if none is running."""
        with self._lock:
            flight = self._flights.get(key)
            if flight is not None:
                self._on_event(self.name, "coalesced")
                return flight
            flight = self._flights[key] = self._submit(work)
        flight.add_done_callback(lambda done: self._forget(key, done))
        return flight

    def _forget(self, key: Hashable, flight: concurrent.futures.Future[V]) -> None:
        with self._lock:
            if self._flights.get(key) is flight:
                del self._flights[key]


def _retrieve_error(done: asyncio.Future[Any]) -> None:
    if not done.cancelled():
        done.exception()
