"""Axes: those along which a catalog spreads, the same at each start."""

from __future__ import annotations

import numpy as np

from gateway.index.vectors.axes import chief_axes
from gateway.runtime.vectors import Matrix, unit_rows

SIZE = 400
COUNT = 128


def rows_of(count: int = 2000) -> Matrix:
    """Rows whose directions fall off, as those of models do."""
    rng = np.random.default_rng(0)
    spectrum = (1 + np.arange(SIZE)) ** -0.5
    centres = rng.standard_normal((max(2, count // 10), SIZE)) * spectrum
    away = 0.6 * rng.standard_normal((count, SIZE)) * spectrum
    return unit_rows(centres[np.arange(count) % len(centres)] + away)


ROWS = rows_of()


def test_equal_catalogs_have_equal_axes_at_right_angles() -> None:
    """No draw differs from start to start."""
    mean, axes = chief_axes(ROWS, COUNT)
    again = chief_axes(ROWS.copy(), COUNT)

    assert mean.tolist() == again[0].tolist()
    assert axes.tolist() == again[1].tolist()
    assert (COUNT, SIZE) == axes.shape
    assert np.allclose(np.eye(COUNT), axes @ axes.T, atol=1e-4)


def test_the_axes_hold_what_few_rows_span() -> None:
    """Of fewer rows than axes nothing is left out."""
    few = rows_of(COUNT // 2)

    mean, axes = chief_axes(few, COUNT)

    away = few - mean
    assert np.allclose(away, away @ axes.T @ axes, atol=1e-3)
