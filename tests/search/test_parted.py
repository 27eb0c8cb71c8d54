"""A place among the first for each part of a request."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.index.vectors.exact import VectorIndex, VectorQuery
from gateway.options import SearchOptions
from gateway.runtime.vectors import unit_rows
from gateway.search.dense.doubts import Doubts
from gateway.search.dense.vector import Candidates, candidates
from gateway.search.fusion import STEPS, Order, by_vector
from gateway.search.parted import FIRST, REACH, each_part

MANY = 30
WEATHER, LAND = np.eye(3, dtype=np.float32)[:2]


def found(place: int, *, plain: bool = True) -> tuple[Candidates, Order]:
    """Tools for the weather, and at *place* one for the land, or the nearest to it by chance."""
    rows = np.tile(WEATHER, (MANY, 1))
    rows[:, 2] = np.linspace(0.5, 0.9, MANY)
    rows[:, 1] = np.roll(np.linspace(0.3, 0, MANY), place)
    if plain:
        rows[place, :2] = LAND[:2]
    rows = unit_rows(rows)
    asked = unit_rows((WEATHER + LAND / 2)[None])
    seen = candidates(
        VectorIndex.of(rows),
        VectorQuery(texts=asked, clauses=np.stack([WEATHER, LAND])),
        mask=np.ones(MANY, bool),
        limit=5,
        options=SearchOptions(),
    )
    order = Order(positions=np.arange(MANY), scores=np.linspace(3, 1, MANY, dtype=np.float32))
    return seen, order


def ranked(place: int, *, parts: int = 2, lost: float = 0.0, plain: bool = True) -> list[int]:
    """The positions, after each part has its place."""
    seen, order = found(place, plain=plain)
    doubt = np.zeros(MANY, np.float32)
    doubt[place] = lost
    doubts = Doubts(lost=doubt, unheard=np.zeros(MANY, np.float32))
    after = each_part(seen, order, parts=parts, doubts=doubts)
    assert order.scores.tolist() == after.scores.tolist()
    return [int(spot) for spot in after.positions]


@pytest.mark.parametrize("place", range(FIRST, REACH))
def test_the_tool_of_another_part_comes_to_stand_among_the_first(place: int) -> None:
    """In place of the last of them, and the rest keeps its order."""
    after = ranked(place)

    assert [0, 1, 2, 3, place] == after[:FIRST]
    assert sorted(set(range(MANY)) - {0, 1, 2, 3, place}) == after[FIRST:]


@pytest.mark.parametrize("parts", [0, 1, STEPS[0] + 1])
def test_a_request_of_one_part_and_a_job_stay_as_they_are(parts: int) -> None:
    """One has nothing to share, the other more parts than there are places."""
    assert list(range(MANY)) == ranked(FIRST, parts=parts)


def test_who_stands_far_behind_or_serves_no_part_plainly_stays() -> None:
    """What is a little nearer than others by chance is no part's tool."""
    assert list(range(MANY)) == ranked(REACH)
    assert list(range(MANY)) == ranked(FIRST, plain=False)


def test_who_is_doubted_is_not_moved_up() -> None:
    """Or whoever boasts would be found for each part of a request."""
    assert list(range(MANY)) == ranked(FIRST, lost=0.5)


def test_few_matches_stay_as_they_are() -> None:
    """All of them are among the first."""
    seen, order = found(FIRST)
    few = order.at(range(FIRST))

    assert few is each_part(seen, few, parts=2, doubts=None)


@given(st.permutations(range(12)), st.integers(2, STEPS[0]), st.integers(0, 99))
def test_nobody_is_lost_and_the_first_stays(places: list[int], parts: int, seed: int) -> None:
    """Whatever is asked for."""
    rows = unit_rows(np.random.default_rng(seed).normal(size=(12, 4)))
    question = VectorQuery(texts=rows[:1], clauses=rows[:parts])
    seen = candidates(
        VectorIndex.of(rows), question, mask=np.ones(12, bool), limit=5, options=SearchOptions()
    )
    order = by_vector(seen).at(places)

    after = each_part(seen, order, parts=parts, doubts=None)

    assert order.positions[0] == after.positions[0]
    assert sorted(order.positions.tolist()) == sorted(after.positions.tolist())
    assert set(order.positions[:REACH].tolist()) == set(after.positions[:REACH].tolist())
