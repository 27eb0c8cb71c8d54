"""The formulas of associative memory, by hand, with a clock that stands still."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.usage.associative import (
    AccessStats,
    AssociativeCandidate,
    CoAccess,
    base,
    decay,
    importance,
    rank,
)

NOW = 1_000_000_000.0
HOUR = 3600.0


@pytest.mark.parametrize(
    ("hours", "left"),
    [
        (0, 1.0),
        (-5, 1.0),
        (24 * 30, math.exp(-0.072)),
        (24 * 365, math.exp(-0.876)),
        (24 * 959.5, 0.1),
        (24 * 5000, 0.1),
    ],
)
def test_time_wears_down_to_a_tenth(hours: float, left: float) -> None:
    """0.0001 an hour: half after 289 days."""
    assert pytest.approx(left, abs=1e-4) == decay(NOW - hours * HOUR, NOW)
    assert 1.0 == decay(None, NOW)


def test_importance_is_frequency_edges_and_days() -> None:
    """log2(1 + 3) / log2(1 + 15) = 0.5; five edges of 15; two days of eight."""
    found = importance(AccessStats(count=3, days=2, degree=5), most=15, most_days=8)

    assert pytest.approx(0.5 * 1.05 * (1 + 0.2 * math.log2(3) / math.log2(9))) == found


def test_importance_has_its_edges() -> None:
    """Nobody accessed: none. Degree stops at 15. One day says nothing; unknown days are one."""
    assert 0.0 == importance(AccessStats(count=0), most=0, most_days=0)
    assert pytest.approx(1.15) == importance(AccessStats(count=7, degree=99), most=7, most_days=1)
    one = importance(AccessStats(count=7, days=1), most=7, most_days=9)
    assert one == importance(AccessStats(count=7), most=7, most_days=9)
    most = importance(AccessStats(count=7, days=9, degree=15), most=7, most_days=9)
    assert pytest.approx(1.38) == most


def test_relevance_is_nearness_or_where_the_ranks_place_it() -> None:
    """Words alone give 0.2 to 0.8, over all that were found."""
    scores = [0.01, 0.02, 0.03]

    assert 0.75 == base(AssociativeCandidate(id="a", rank_score=0.01, distance=0.25), scores)
    assert 0.0 == base(AssociativeCandidate(id="a", rank_score=0.01, distance=1.7), scores)
    assert pytest.approx(0.2) == base(AssociativeCandidate(id="a", rank_score=0.01), scores)
    assert pytest.approx(0.5) == base(AssociativeCandidate(id="a", rank_score=0.02), scores)
    assert pytest.approx(0.8) == base(AssociativeCandidate(id="a", rank_score=0.03), scores)
    assert 0.2 == base(AssociativeCandidate(id="a", rank_score=0.02), [0.02, 0.02])


def test_all_of_it_by_hand() -> None:
    """base x (1 + 0.5 importance) x temporal x (1 + 0.01 company)."""
    candidates = [
        AssociativeCandidate(
            id="used",
            rank_score=1 / 61,
            distance=0.5,
            access=AccessStats(count=31, days=4, degree=15, last_s=NOW - 720 * HOUR),
        ),
        AssociativeCandidate(
            id="near", rank_score=1 / 62, distance=0.4, access=AccessStats(count=1, last_s=NOW)
        ),
        AssociativeCandidate(id="word", rank_score=1 / 63, access=AccessStats()),
    ]
    pairs = {frozenset({"used", "near"}): CoAccess(count=7, last_s=NOW - 24 * HOUR)}

    found = {each.id: each for each in rank(candidates, pairs, now_s=NOW, limit=10)}

    company = 3 * math.exp(-0.0024)
    used = 0.5 * (1 + 0.5 * 1.15 * 1.2) * math.exp(-0.072) * (1 + 0.01 * company)
    light = 0.2 * (1 + 0.2 * math.log2(2) / math.log2(5))
    near = 0.6 * (1 + 0.5 * light) * (1 + 0.01 * company)
    assert pytest.approx(used) == found["used"].score
    assert pytest.approx(near) == found["near"].score
    assert pytest.approx(0.2) == found["word"].score
    assert ["used", "near", "word"] == list(found)
    assert [0.0, pytest.approx(company)] == [found["word"].together, found["near"].together]


def test_nothing_comes_of_nothing() -> None:
    """No candidates, or none wanted."""
    assert [] == rank([], {}, now_s=NOW, limit=5)
    assert [] == rank([AssociativeCandidate(id="a", rank_score=1.0)], {}, now_s=NOW, limit=-1)


@given(
    st.lists(
        st.builds(
            AssociativeCandidate,
            id=st.sampled_from("abcdefgh"),
            rank_score=st.floats(0.001, 0.033),
            distance=st.none() | st.floats(0, 2),
            access=st.builds(AccessStats, count=st.integers(0, 99), last_s=st.floats(0, NOW)),
        ),
        unique_by=lambda each: each.id,
    ),
    st.integers(0, 9),
)
def test_the_order_is_that_of_the_scores(
    candidates: list[AssociativeCandidate], limit: int
) -> None:
    """The same input gives the same order, whatever order it came in."""
    found = rank(candidates, {}, now_s=NOW, limit=limit)

    assert found == rank(candidates[::-1], {}, now_s=NOW, limit=limit)
    assert min(limit, len(candidates)) == len(found)
    assert found == sorted(found, key=lambda each: (-each.score, each.id))
