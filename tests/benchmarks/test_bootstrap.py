"""Paired bootstrap: confidence interval for the difference of two systems."""

from __future__ import annotations

import pytest

from benchmarks.bootstrap import Difference, paired, paired_sets


def test_system_with_clearly_better_values_wins() -> None:
    """The interval of the difference does not contain 0."""
    ours, theirs = [1.0] * 30 + [0.0] * 10, [0.0] * 30 + [0.0] * 10

    result, turned = paired(ours, theirs), paired(theirs, ours)

    assert 0.75 == result.mean
    assert 0.5 < result.low < result.mean < result.high < 1.0
    assert ("wins", "loses") == (result.verdict, turned.verdict)


def test_systems_with_balanced_differences_tie() -> None:
    assert "ties" == paired([1.0, 0.0] * 40, [0.0, 1.0] * 40).verdict


def test_equal_systems_have_no_difference() -> None:
    assert Difference(mean=0.0, low=0.0, high=0.0) == paired([0.5, 1.0], [0.5, 1.0])


def test_interval_of_the_difference_has_the_expected_width() -> None:
    """A share of 0.5 over 100 queries has a standard error of 0.05."""
    result = paired([1.0, 0.0] * 50, [0.0] * 100)

    assert result == paired([1.0, 0.0] * 50, [0.0] * 100)
    assert result != paired([1.0, 0.0] * 50, [0.0] * 100, resamples=2)
    assert pytest.approx(0.098, abs=0.01) == (result.high - result.low) / 2


@pytest.mark.parametrize(("ours", "theirs"), [([], []), ([1.0], [1.0, 0.0])])
def test_unpaired_or_missing_values_are_refused(ours: list[float], theirs: list[float]) -> None:
    """Without values there is no mean."""
    with pytest.raises(ValueError, match="cannot pair"):
        paired(ours, theirs)


def test_data_sets_of_any_size_have_equal_weight_in_the_mean() -> None:
    """A large set without gain and a small set with full gain give a mean of 0.5."""
    small, large = [1.0] * 5, [0.5] * 500
    result = paired_sets([small, large], [[0.0] * 5, large])

    assert Difference(mean=0.5, low=0.5, high=0.5) == result
    assert paired(small, [0.0] * 5) == paired_sets([small], [[0.0] * 5])
    with pytest.raises(ValueError, match="cannot pair"):
        paired_sets([small], [small, large])
