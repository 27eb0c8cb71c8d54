"""Texts of search results that were told before: a remembered result need not be written again."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import fields

from gateway.types import SearchResult

_ITEMS = 256
_TOLD = tuple(each.name for each in fields(SearchResult) if each.name != "cached")


class Written:
    """The texts of the latest results. Safe from any thread.

    Only for texts that depend on the result and the index alone.

    Args:
        items: How many are kept.
    """

    def __init__(self, *, items: int = _ITEMS) -> None:
        self._items = items
        self._lock = threading.Lock()
        self._texts: OrderedDict[tuple[int, int], tuple[SearchResult, str]] = OrderedDict()

    def text(self, result: SearchResult, version: int, write: Callable[[], str]) -> str:
        """Give the text of *result*.

        Args:
            result: One that the gateway remembers holds the very same parts each time.
            version: Of the index that the text is written by.
            write: Makes the text.
        """
        key = (id(result.matches), version)
        with self._lock:
            held, text = self._texts.get(key, (None, ""))
        if held is None or not _same(held, result):
            text = write()
        with self._lock:
            self._texts[key] = (result, text)
            self._texts.move_to_end(key)
            if len(self._texts) > self._items:
                self._texts.popitem(last=False)
        return text


def _same(one: SearchResult, other: SearchResult) -> bool:
    return all(getattr(one, name) is getattr(other, name) for name in _TOLD)
