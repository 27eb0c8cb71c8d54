"""Rows of programs, in every store."""

from __future__ import annotations

from typing import Any

from gateway.testing import ManualClock
from tests.storage.conformance.stores import Opener


def test_rows_are_shared_and_each_is_taken_once(opened: Opener) -> None:
    one, other = (_programs(opened) for _ in range(2))

    one.put("a", "first", keep_s=60)
    one.put("b", "second", keep_s=60)

    assert other.read("a") == "first"
    assert [*other.rows()] == ["a", "b"]
    assert one.take("a") == "first"
    assert other.take("a") is None
    assert other.read("a") is None


def test_a_row_is_replaced_only_as_it_was_read(opened: Opener) -> None:
    """Of two who decide at once, one does; and nobody brings back what was taken."""
    store = _programs(opened)
    store.put("a", "old", keep_s=60)

    assert store.replace("a", "old", "new")
    assert not store.replace("a", "old", "other")
    store.take("a")
    assert not store.replace("a", "new", "other")
    assert store.rows() == {}


def test_old_rows_go(opened: Opener, wall: ManualClock) -> None:
    store = _programs(opened)
    store.put("a", "old", keep_s=60)
    wall.tick(61)
    store.put("b", "new", keep_s=60)

    assert [*store.rows()] == ["b"]


def _programs(opened: Opener) -> Any:
    store: Any = opened()
    return store.programs
