"""UsageTracker that helps a little: what it may move, and what it may not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.plugins.usage.rerank import (
    HALF_LIFE_S,
    MAX_SHIFT,
    TIE_SHARE,
    Outcomes,
    decay,
    multiplier,
    rerank,
)

NONE = Outcomes()
counts = st.floats(0, 1e6)
outcomes = st.builds(Outcomes, succeeded=counts, failed=counts)
falling = st.lists(st.floats(-10, 10), max_size=12).map(lambda each: sorted(each, reverse=True))


def test_a_call_of_a_month_ago_counts_half() -> None:
    """And one of the future no more than one of now."""
    assert [1.0, 0.5, 0.25] == [decay(times * HALF_LIFE_S) for times in (0, 1, 2)]
    assert 1.0 == decay(-5)


def test_without_calls_use_says_nothing() -> None:
    """Nor do as many failures as successes."""
    assert 1.0 == multiplier(NONE)
    assert pytest.approx(1.0) == multiplier(Outcomes(succeeded=50, failed=50))


def test_the_rate_of_success_is_shrunk_to_a_half() -> None:
    """By hand: five more calls, half of them successes."""
    rate = 97.5 / 105

    assert pytest.approx(1 + MAX_SHIFT * 100 / 105 * (2 * rate - 1)) == multiplier(
        Outcomes(succeeded=95, failed=5)
    )


@given(outcomes)
def test_the_multiplier_is_bounded(counted: Outcomes) -> None:
    """0.85 to 1.15, whatever the counts."""
    assert 1 - MAX_SHIFT <= multiplier(counted) <= 1 + MAX_SHIFT


def test_near_ties_swap_and_others_do_not() -> None:
    """Of a range of 1, 0.05 is near."""
    ids = ["a", "b", "c", "d"]
    liked = {"b": 1.15, "d": 1.15, "a": 0.85}

    assert [1, 0, 2, 3] == rerank(ids, [1.0, 0.96, 0.5, 0.0], liked)
    assert [0, 1, 2, 3] == rerank(ids, [1.0, 0.94, 0.5, 0.0], liked)


def test_equal_scores_are_ordered_by_use() -> None:
    """And stay as they were where use says nothing."""
    assert [1, 0, 2] == rerank(["a", "b", "c"], [0.3, 0.3, 0.3], {"b": 1.1})
    assert [0, 1, 2] == rerank(["a", "b", "c"], [0.3, 0.3, 0.3], {})
    assert [] == rerank([], [], {})


@given(falling, st.lists(st.floats(1 - MAX_SHIFT, 1 + MAX_SHIFT), min_size=12, max_size=12))
def test_nobody_passes_whom_it_is_not_near_to(scores: list[float], said: list[float]) -> None:
    """Whoever stands behind another although it ranked better is a near tie of it."""
    ids = [str(place) for place in range(len(scores))]

    order = rerank(ids, scores, dict(zip(ids, said, strict=False)))

    assert sorted(order) == list(range(len(scores)))
    near = TIE_SHARE * (scores[0] - scores[-1]) if scores else 0.0
    for at, place in enumerate(order):
        for later in order[at + 1 :]:
            assert later > place or scores[later] - scores[place] <= near
