"""Score multipliers by outcomes of calls."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.plugins.usage import HALF_LIFE_S, MAX_SHIFT, Outcomes, decay, multiplier

NONE = Outcomes()
counts = st.floats(0, 1e6)
outcomes = st.builds(Outcomes, succeeded=counts, failed=counts)


def test_call_weight_halves_after_a_month() -> None:
    """A call from the future weighs as much as a current one."""
    assert [1.0, 0.5, 0.25] == [decay(times * HALF_LIFE_S) for times in (0, 1, 2)]
    assert 1.0 == decay(-5)


def test_multiplier_is_1_without_calls_and_with_equal_outcomes() -> None:
    assert 1.0 == multiplier(NONE)
    assert pytest.approx(1.0) == multiplier(Outcomes(succeeded=50, failed=50))


def test_multiplier_shrinks_the_success_rate_towards_one_half() -> None:
    """Five calls are added, half of them successful."""
    rate = 97.5 / 105

    assert pytest.approx(1 + MAX_SHIFT * 100 / 105 * (2 * rate - 1)) == multiplier(
        Outcomes(succeeded=95, failed=5)
    )


@given(outcomes)
def test_multiplier_is_between_085_and_115(counted: Outcomes) -> None:
    assert 1 - MAX_SHIFT <= multiplier(counted) <= 1 + MAX_SHIFT
