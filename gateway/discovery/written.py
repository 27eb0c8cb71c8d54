"""What search results were written as before: a remembered result need not be written again."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import fields
from operator import attrgetter, is_
from typing import Generic, TypeVar

from gateway.types import SearchResult

T = TypeVar("T")
_ITEMS = 256
_parts = attrgetter(*(each.name for each in fields(SearchResult) if each.name != "cached"))


class Written(Generic[T]):
    """What the latest results were written as. Safe from any thread.

    Only for what depends on the result and its index alone: another index gives other results.

    Args:
        items: How many are kept.
    """

    def __init__(self, *, items: int = _ITEMS) -> None:
        self._items = items
        self._lock = threading.Lock()
        self._kept: OrderedDict[int, tuple[SearchResult, T]] = OrderedDict()

    def get(self, result: SearchResult) -> T | None:
        """Give what *result* was written as, or None.

        Args:
            result: One that the gateway remembers holds the very same parts each time.
        """
        key = id(result.matches)
        with self._lock:
            kept = self._kept.get(key)
            if kept is None:
                return None
            if kept[0] is not result:
                if not _same(kept[0], result):
                    return None
                # The next time it is likely this very object.
                self._kept[key] = (result, kept[1])
            self._kept.move_to_end(key)
            return kept[1]

    def put(self, result: SearchResult, told: T) -> T:
        """Keep what *result* is written as, and give it."""
        key = id(result.matches)
        with self._lock:
            self._kept[key] = (result, told)
            self._kept.move_to_end(key)
            if len(self._kept) > self._items:
                self._kept.popitem(last=False)
        return told


def _same(one: SearchResult, other: SearchResult) -> bool:
    return all(map(is_, _parts(one), _parts(other)))
