"""By how much the outcomes of calls multiply a score."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.plugins.usage import HALF_LIFE_S, MAX_SHIFT, Outcomes, decay, multiplier

NONE = Outcomes()
counts = st.floats(0, 1e6)
outcomes = st.builds(Outcomes, succeeded=counts, failed=counts)


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
