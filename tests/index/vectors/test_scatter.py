"""Scatter: mean and spread of a catalog's cosines, without a look at its rows."""

from __future__ import annotations

import numpy as np
import pytest

from gateway.index.vectors.exact import VectorIndex, VectorQuery
from gateway.index.vectors.scatter import AXES, Scatter
from gateway.runtime.vectors import Matrix, moments, unit_rows

SIZE = 400


def rows_of(count: int, seed: int = 0) -> Matrix:
    """Rows around a common mean, whose directions fall off, as those of models do."""
    rng = np.random.default_rng(seed)
    spectrum = (1 + np.arange(SIZE)) ** -0.5
    return unit_rows(0.3 * spectrum + rng.standard_normal((count, SIZE)) * spectrum)


ROWS = rows_of(3000)
everybody = np.ones(len(ROWS), dtype=np.bool_)


def test_few_rows_are_told_exactly() -> None:
    """All that they span are axes, and nothing is left over."""
    few = ROWS[:AXES]
    query = ROWS[100]

    told = Scatter.of(few, few.mean(axis=0)).moments(query)

    assert told == pytest.approx(moments(few @ query), abs=1e-3)


def test_a_sample_tells_mean_and_spread_of_all() -> None:
    """The mean is that of all rows; the spread is near to theirs."""
    scatter = Scatter.of(ROWS[:256], ROWS.mean(axis=0))

    for query in rows_of(10, seed=1):
        mean, spread = moments(ROWS @ query)
        told = scatter.moments(query)
        assert mean == pytest.approx(told[0], abs=1e-4)
        assert spread == pytest.approx(told[1], rel=0.15)


def test_rows_that_are_all_alike_scatter_nowhere() -> None:
    """No spread, and no error."""
    alike = np.repeat(ROWS[:1], 300, axis=0)

    assert (1.0, 0.0) == pytest.approx(
        Scatter.of(alike, alike.mean(axis=0)).moments(ROWS[0]), abs=1e-3
    )


def test_a_catalog_that_changed_is_told_as_a_fresh_one() -> None:
    """Whichever way its rows came: the same mean and the same spread, to the last bit."""
    kept = np.arange(200, 3000)
    added = rows_of(200, seed=2)
    index = VectorIndex.of(ROWS, dense_numbers=0).changed(kept, added, np.arange(3000))
    query = VectorQuery(texts=ROWS[:1], clauses=ROWS[:0])

    found = index.search(query, mask=everybody, count=10)

    fresh = VectorIndex.of(np.concatenate([ROWS[kept], added]), dense_numbers=0)
    assert fresh.search(query, mask=everybody, count=10).moments == found.moments


def test_rows_without_a_vector_count() -> None:
    """As in a small catalog, where they have the cosine 0."""
    rows = np.concatenate([ROWS, np.zeros((1000, SIZE), np.float32)])
    query = VectorQuery(texts=ROWS[:1], clauses=ROWS[:0])
    mask = np.ones(len(rows), dtype=np.bool_)

    found = VectorIndex.of(rows, dense_numbers=0).search(query, mask=mask, count=10)

    assert (rows @ ROWS[0]).mean() == pytest.approx(found.moments.mean, abs=1e-4)
