"""A table that changed little is the table that a copy would have been, and copies little."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphs.patched import Patched, patched

TABLES = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 3), max_size=8)


@given(st.lists(TABLES, min_size=1, max_size=6))
def test_whatever_came_and_went_it_says_what_a_copy_would(walk: list[dict[str, int]]) -> None:
    table: Patched[str, int] = patched({}, (), {})
    before: dict[str, int] = {}
    for after in walk:
        gone = [key for key in before if key not in after]
        new = {key: value for key, value in after.items() if before.get(key) != value}
        older, table = table, table.changed(gone, new)

        assert after == table
        assert before == older
        assert len(table) == len(after)
        assert sorted(table) == sorted(after)
        assert [after.get(key, 9) for key in "abcdefgh"] == [
            table.get(key, 9) for key in "abcdefgh"
        ]
        assert [key in after for key in "abcdefgh"] == [key in table for key in "abcdefgh"]
        before = after


def test_what_is_gone_is_not_there_and_cannot_go_again() -> None:
    table = patched({"a": 1, "b": 2}, ["a"], {})

    assert table.get("a") is None
    assert "a" not in table
    with pytest.raises(KeyError):
        table["a"]
    with pytest.raises(KeyError):
        table.changed(["a"], {})


def test_what_goes_may_come_at_once() -> None:
    assert {"a": 7, "b": 2} == patched({"a": 1, "b": 2}, ["a"], {"a": 7})


def test_little_is_copied_and_much_is_written_anew() -> None:
    whole = {str(at): at for at in range(10_000)}
    table: Patched[str, int] = patched(whole, ["5"], {"new": 0})
    most = 0
    for at in range(3000):
        table = table.changed([str(at + 10)], {f"n{at}": at})
        most = max(most, table.apart)

    assert 500 < most < 700
    assert len(table) == 10_000
    assert {key for key in whole if key not in table} == {"5", *map(str, range(10, 3010))}


def test_many_changes_at_once_leave_one_table() -> None:
    table = patched({"a": 1}, ["a"], {str(at): at for at in range(100)})

    assert table.apart == 0
    assert len(table) == 100
    with pytest.raises(KeyError):
        table.changed(["a"], {str(at): at for at in range(100, 200)})
