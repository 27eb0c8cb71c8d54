"""Names that come and go keep their places right, and a change hashes only what came."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphs.arrays import Moves
from graphs.standing import Standing

NAMES = st.sets(st.sampled_from("abcdefgh"))


def change(standing: Standing, before: list[str], after: list[str]) -> Standing:
    gone = [name for name in before if name not in after]
    new = [at for at, name in enumerate(after) if name not in before]
    moves = Moves(size=len(before), gone=[before.index(name) for name in gone], new=new)
    return standing.moved(after, gone, moves)


@given(st.lists(NAMES, max_size=6))
def test_whatever_came_and_went_each_stands_where_it_stands(walk: list[set[str]]) -> None:
    standing, before = Standing.of([]), list[str]()
    for each in walk:
        after = sorted(each)
        older, standing = standing, change(standing, before, after)

        assert {name: at for at, name in enumerate(after)} == standing
        assert {name: at for at, name in enumerate(before)} == older
        before = after


def test_who_is_gone_has_no_place() -> None:
    standing = change(Standing.of(["a", "b"]), ["a", "b"], ["b"])

    assert standing.get("a") is None
    assert standing.get("a", 7) == 7
    assert standing.get("b", 7) == 0
    assert "a" not in standing
    assert len(standing) == 1
    with pytest.raises(KeyError):
        standing["a"]


def test_who_moves_may_go_and_come_at_once() -> None:
    """As a node does that becomes a document."""
    moves = Moves(size=3, gone=(2,), new=(0,))

    assert Standing.of(["a", "b", "c"]).moved(["c", "a", "b"], ["c"], moves) == {
        "c": 0,
        "a": 1,
        "b": 2,
    }


def test_a_catalog_that_changes_for_years_takes_the_room_of_what_is_there() -> None:
    standing, before = Standing.of([]), list[str]()
    numbers = []
    for at in range(3000):
        standing = change(standing, before, after := [str(at)])
        before = after
        numbers.append(standing.room)

    assert max(numbers) < 1100
    assert {"2999": 0} == standing
