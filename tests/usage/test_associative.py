"""The formulas of associative memory, by hand, with a clock that stands still."""

from __future__ import annotations

import math

import pytest

from gateway.usage.call_log import Exposure
from gateway.usage.rerank import (
    Associations,
    AssociativeCandidate,
    decay_by_hours,
    importance_of,
    rank_by_association,
    relevance,
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
    assert pytest.approx(left, abs=1e-4) == decay_by_hours(NOW - hours * HOUR, NOW)


@pytest.mark.parametrize(
    ("count", "days", "degree", "max_days", "expected"),
    [
        (3, 2, 5, 8, 0.5 * 1.05 * (1 + 0.2 * math.log2(3) / math.log2(9))),
        (15, 1, 99, 1, 1.15),
        (15, 9, 15, 9, 1.38),
    ],
)
def test_importance_is_frequency_edges_and_days(
    count: int, days: int, degree: int, max_days: int, expected: float
) -> None:
    """Of at most 15 exposures. The degree stops at 15, and one day says nothing."""
    exposure = Exposure(count=count, days=days, last_s=NOW)

    assert pytest.approx(expected) == importance_of(exposure, degree, 15, max_days)


def test_relevance_is_nearness_or_where_the_ranks_place_it() -> None:
    """Words alone give 0.2 to 0.8, over all that were found."""
    words = [AssociativeCandidate(id="a", rank_score=score) for score in (0.01, 0.02, 0.03)]
    near = [AssociativeCandidate(id="a", rank_score=0.01, distance=d) for d in (0.25, 1.7)]

    assert pytest.approx([0.2, 0.5, 0.8]) == relevance(words)
    assert [0.75, 0.0] == relevance(near)
    assert [0.2, 0.2] == relevance([words[1], words[1]])


def test_all_of_it_by_hand() -> None:
    """base x (1 + 0.5 importance) x temporal x (1 + 0.01 co-occurrence)."""
    candidates = [
        AssociativeCandidate(id="used", rank_score=1 / 61, distance=0.5, degree=15),
        AssociativeCandidate(id="near", rank_score=1 / 62, distance=0.4),
        AssociativeCandidate(id="word", rank_score=1 / 63),
    ]
    exposures = {
        "used": Exposure(count=31, days=4, last_s=NOW - 720 * HOUR),
        "near": Exposure(count=1, days=1, last_s=NOW),
    }
    together = Exposure(count=7, days=1, last_s=NOW - 24 * HOUR)
    seen = Associations(
        exposures=exposures, pairs={frozenset({"used", "near"}): together}, now_s=NOW
    )

    ranked = rank_by_association(candidates, seen)

    boost = 1 + 0.01 * 3 * math.exp(-0.0024)
    used = 0.5 * (1 + 0.5 * 1.15 * 1.2) * math.exp(-0.072) * boost
    light = 0.2 * (1 + 0.2 * math.log2(2) / math.log2(5))
    near = 0.6 * (1 + 0.5 * light) * boost
    assert ["used", "near", "word"] == [entity for _, entity in ranked]
    assert pytest.approx([used, near, 0.2]) == [score for score, _ in ranked]
    assert ranked == rank_by_association(candidates[::-1], seen)
    assert [] == rank_by_association([], seen)
