"""Arithmetic of embeddings."""

from __future__ import annotations

from statistics import fmean, pstdev

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.runtime.vectors import Distribution, cosines_of, deviations, top, unit_rows, usable

numbers = st.floats(-1000, 1000, width=32)


@given(st.lists(st.lists(numbers, min_size=3, max_size=3), min_size=1, max_size=8))
def test_unit_rows_have_length_one_or_are_zeros(rows: list[list[float]]) -> None:
    lengths = np.linalg.norm(unit_rows(rows), axis=1)

    assert all(length == 0 or abs(length - 1) < 1e-3 for length in lengths)


def test_unit_rows_keep_rows_of_zeros() -> None:
    """A row of zeros means "no vector" and must score 0, not NaN."""
    assert [[0, 0], [0.6, 0.8]] == pytest.approx(unit_rows([[0, 0], [3, 4]]))


@pytest.mark.parametrize(
    ("rows", "fault"),
    [
        (np.ones((2, 4)), ""),
        (np.ones((1, 4)), "expected 2 vectors"),
        (np.ones(4), "expected 2 vectors"),
        (np.ones((2, 3)), "expected 4 dimensions"),
        (np.full((2, 4), np.nan), "NaN or infinity"),
        (np.full((2, 4), np.inf), "NaN or infinity"),
        (np.zeros((2, 4)), "all zeros"),
    ],
)
def test_usable_returns_the_reason_for_refusing_vectors(rows: np.ndarray, fault: str) -> None:
    """Part of rule 5 in `tests/requirements.py`: unusable vectors must not be ranked."""
    actual = usable(rows.astype(np.float32), count=2, dimensions=4)

    assert fault in actual
    assert bool(fault) == bool(actual)


def test_usable_accepts_vectors_of_any_length_if_the_length_is_unknown() -> None:
    assert "" == usable(np.ones((1, 7), np.float32), count=1, dimensions=None)


def test_cosines_of_returns_a_cosine_for_each_query_and_row() -> None:
    matrix = unit_rows([[1, 0], [0, 1], [0, 0]])

    assert [[1, 0, 0], [0, 1, 0]] == cosines_of(matrix, unit_rows([[1, 0], [0, 1]])).tolist()
    assert (0, 3) == cosines_of(matrix, np.zeros((0, 2), np.float32)).shape


@given(st.lists(st.integers(-3, 3), max_size=40), st.integers(-2, 50))
def test_top_returns_the_first_positions_of_a_stable_sort(scores: list[int], limit: int) -> None:
    expected = sorted(range(len(scores)), key=lambda spot: (-scores[spot], spot))

    actual = top(np.asarray(scores, dtype=np.float32), limit)

    assert expected[: max(limit, 0)] == actual.tolist()


@given(st.lists(st.floats(-40, 40, width=32), min_size=1, max_size=200))
def test_distribution_has_mean_and_spread_in_double_precision(values: list[float]) -> None:
    measured = Distribution.of(np.asarray(values, np.float32))

    assert measured.mean == pytest.approx(fmean(values), abs=1e-12)
    assert measured.spread == pytest.approx(pstdev(values), abs=1e-9)


def test_distribution_of_no_values_is_zero() -> None:
    assert (0.0, 0.0) == Distribution.of(np.zeros(0, np.float32))


@given(st.floats(-40, 40, width=32), st.integers(1, 5000))
def test_distribution_of_equal_values_has_no_spread(value: float, count: int) -> None:
    """A spread from rounding errors would rank equal entities by chance."""
    numbers = np.full(count, value, np.float32)

    assert not deviations(numbers, Distribution.of(numbers)).any()
