"""Rows of programs, in every store."""

from __future__ import annotations

from typing import Any

from gateway.plugins.programs import program_store
from gateway.testing import ManualClock
from tests.core.storage.conformance.stores import Opener


def test_rows_are_shared_and_each_is_taken_once(opened: Opener) -> None:
    one, other = (_programs(opened) for _ in range(2))

    one.put("a", "first", keep_s=60, most=9)
    one.put("b", "second", keep_s=60, most=9)

    assert other.read("a") == "first"
    assert [*other.rows()] == ["a", "b"]
    assert one.take("a") == "first"
    assert other.take("a") is None
    assert other.read("a") is None


def test_a_row_is_replaced_only_as_it_was_read(opened: Opener) -> None:
    """Of two who decide at once, one does; and nobody brings back what was taken."""
    store = _programs(opened)
    store.put("a", "old", keep_s=60, most=9)

    assert store.replace("a", "old", "new")
    assert not store.replace("a", "old", "other")
    store.take("a")
    assert not store.replace("a", "new", "other")
    assert store.rows() == {}


def test_old_rows_go(opened: Opener, wall: ManualClock) -> None:
    store = _programs(opened)
    store.put("a", "old", keep_s=60, most=9)
    wall.tick(61)
    store.put("b", "new", keep_s=60, most=9)

    assert [*store.rows()] == ["b"]


def test_of_one_owner_the_newest_rows_stay(opened: Opener, wall: ManualClock) -> None:
    """Whatever others keep; the beginning of a key names its owner."""
    store = _programs(opened)
    for key in ("a.1", "b.1", "a.2", "a.3"):
        wall.tick(1)
        store.put(key, "row", keep_s=60, most=2)

    assert {"b.1", "a.2", "a.3"} == set(store.rows())


def _programs(opened: Opener) -> Any:
    store: Any = opened()
    return program_store(store)
