"""Paired bootstrap."""

from __future__ import annotations

import pytest

from benchmarks.bootstrap import Difference, paired, paired_sets


def test_a_clear_difference_wins_whichever_side_it_is_on() -> None:
    """The interval does not hold 0."""
    ours, theirs = [1.0] * 30 + [0.0] * 10, [0.0] * 30 + [0.0] * 10

    found, turned = paired(ours, theirs), paired(theirs, ours)

    assert 0.75 == found.mean
    assert 0.5 < found.low < found.mean < found.high < 1.0
    assert ("wins", "loses") == (found.verdict, turned.verdict)


def test_what_goes_both_ways_ties() -> None:
    """Forty queries won and forty lost decide nothing."""
    assert "ties" == paired([1.0, 0.0] * 40, [0.0, 1.0] * 40).verdict


def test_equal_systems_differ_by_nothing_at_all() -> None:
    """No resample can make a difference."""
    assert Difference(mean=0.0, low=0.0, high=0.0) == paired([0.5, 1.0], [0.5, 1.0])


def test_the_interval_is_that_of_the_drawn_means() -> None:
    """A share of a half over 100 queries has a standard error of 0.05."""
    found = paired([1.0, 0.0] * 50, [0.0] * 100)

    assert found == paired([1.0, 0.0] * 50, [0.0] * 100)
    assert found != paired([1.0, 0.0] * 50, [0.0] * 100, resamples=2)
    assert pytest.approx(0.098, abs=0.01) == (found.high - found.low) / 2


@pytest.mark.parametrize(("ours", "theirs"), [([], []), ([1.0], [1.0, 0.0])])
def test_what_cannot_be_paired_is_refused(ours: list[float], theirs: list[float]) -> None:
    """A mean of nothing is no figure."""
    with pytest.raises(ValueError, match="cannot pair"):
        paired(ours, theirs)


def test_sets_have_equal_weights_however_many_queries_they_have() -> None:
    """A large set that gains nothing and a small one that gains all make a half."""
    small, large = [1.0] * 5, [0.5] * 500
    found = paired_sets([small, large], [[0.0] * 5, large])

    assert Difference(mean=0.5, low=0.5, high=0.5) == found
    assert paired(small, [0.0] * 5) == paired_sets([small], [[0.0] * 5])
    with pytest.raises(ValueError, match="cannot pair"):
        paired_sets([small], [small, large])
