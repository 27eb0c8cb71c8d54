from __future__ import annotations

from typing import Any

from gateway.plugins.programs import program_store
from gateway.testing import ManualClock
from tests.core.storage.conformance.stores import Opener


def test_program_rows_are_shared_by_processes_and_taken_once(opened: Opener) -> None:
    first, other = (_programs(opened) for _ in range(2))

    first.put("a", "first", keep_s=60, most=9)
    first.put("b", "second", keep_s=60, most=9)

    assert other.read("a") == "first"
    assert [*other.rows()] == ["a", "b"]
    assert first.take("a") == "first"
    assert other.take("a") is None
    assert other.read("a") is None


def test_program_row_is_replaced_only_if_unchanged(opened: Opener) -> None:
    """So of two concurrent decisions, only one is stored. A taken row does not return."""
    store = _programs(opened)
    store.put("a", "old", keep_s=60, most=9)

    assert store.replace("a", "old", "new")
    assert not store.replace("a", "old", "other")
    store.take("a")
    assert not store.replace("a", "new", "other")
    assert store.rows() == {}


def test_old_program_rows_are_deleted(opened: Opener, wall: ManualClock) -> None:
    store = _programs(opened)
    store.put("a", "old", keep_s=60, most=9)
    wall.tick(61)
    store.put("b", "new", keep_s=60, most=9)

    assert [*store.rows()] == ["b"]


def test_newest_program_rows_of_a_caller_stay(opened: Opener, wall: ManualClock) -> None:
    """The prefix of a row's key identifies the caller."""
    store = _programs(opened)
    for key in ("a.1", "b.1", "a.2", "a.3"):
        wall.tick(1)
        store.put(key, "row", keep_s=60, most=2)

    assert {"b.1", "a.2", "a.3"} == set(store.rows())


def _programs(opened: Opener) -> Any:
    store: Any = opened()
    return program_store(store)
