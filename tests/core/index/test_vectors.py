"""Search for the nearest vectors: exact in a small catalog, with a sketch in a large one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.index import MIN_CANDIDATES, SignSketch, VectorIndex, VectorQuery
from gateway.runtime.vectors import Matrix, cosines_of, unit_rows


def rows_of(count: int, *, size: int = 32, seed: int = 0) -> Matrix:
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((max(2, count // 20), size))
    return unit_rows(centres[np.arange(count) % len(centres)] + rng.standard_normal((count, size)))


def query_of(row: np.ndarray, *clauses: np.ndarray) -> VectorQuery:
    parts = unit_rows(np.stack(clauses)) if clauses else np.zeros((0, len(row)), np.float32)
    return VectorQuery(texts=unit_rows(row), clauses=parts)


seeds = st.integers(0, 50)


@settings(deadline=None, max_examples=25)
@given(seed=seeds, count=st.integers(1, 300), part=st.floats(0, 1), clauses=st.integers(0, 2))
def test_search_with_a_sketch_equals_an_exact_one_if_all_rows_are_candidates(
    seed: int, count: int, part: float, clauses: int
) -> None:
    """Positions are equal, and scores are equal to the last bit."""
    rows = rows_of(count, seed=seed)
    mask = np.random.default_rng(seed).random(count) <= part
    query = query_of(rows[0] + rows[-1], *rows[:clauses])

    small = VectorIndex.of(rows).search(query, mask=mask, count=10)
    large = VectorIndex.of(rows, exact_numbers=0).search(query, mask=mask, count=10)

    assert small.pool.tolist() == large.pool.tolist()
    assert small.strengths.tolist() == large.strengths.tolist()
    assert small.cosines.tolist() == large.cosines.tolist()
    assert small.moments == large.moments
    assert int(mask.sum()) == small.eligible == large.eligible


@settings(deadline=None, max_examples=15)
@given(seed=seeds, clauses=st.integers(0, 3))
def test_search_with_a_sketch_finds_the_nearest_rows_with_exact_scores(
    seed: int, clauses: int
) -> None:
    """It scores less than half of the rows, and finds at least nine of the best ten."""
    rows = rows_of(6000, seed=seed)
    mask = np.random.default_rng(seed).random(6000) < 0.7
    query = query_of(rows[7] + 0.3 * rows[1], *rows[20 : 20 + clauses])
    exact_index = VectorIndex.of(rows)

    nearest = VectorIndex.of(rows, exact_numbers=0).search(query, mask=mask, count=20)

    exact = exact_index.search(query, mask=mask, count=20)
    _, strengths = query.combine(cosines_of(rows, query.vectors))
    assert mask[nearest.pool].all()
    assert strengths[nearest.pool].tolist() == nearest.strengths.tolist()
    assert sorted(nearest.strengths.tolist(), reverse=True) == nearest.strengths.tolist()
    assert MIN_CANDIDATES <= nearest.scored < 3000
    assert len(set(nearest.pool[:10].tolist()) & set(exact.pool[:10].tolist())) >= 9


def test_search_scores_only_eligible_rows_if_they_are_few() -> None:
    rows = rows_of(3000)
    mask = np.zeros(3000, np.bool_)
    mask[[5, 9, 2000]] = True

    nearest = VectorIndex.of(rows, exact_numbers=0).search(query_of(rows[5]), mask=mask, count=10)

    assert [5] == nearest.pool.tolist()[:1]
    assert (3, 3, 3) == (len(nearest.pool), nearest.scored, nearest.eligible)


def test_mean_and_spread_of_scores_are_estimated_from_eligible_rows() -> None:
    """Here, only entities of a rare kind are eligible."""
    rows = rows_of(9000)
    mask = np.arange(9000) % 20 == 0
    query = query_of(rows[0])
    index = VectorIndex.of(rows, exact_numbers=0)

    nearest = index.search(query, mask=mask, count=5)

    exact = VectorIndex.of(rows).search(query, mask=mask, count=5)
    assert abs(nearest.moments.strengths.mean - exact.moments.strengths.mean) < 0.1
    assert abs(nearest.moments.strengths.spread - exact.moments.strengths.spread) < 0.1


@pytest.mark.parametrize("size", [5, 64, 100])
def test_sketch_encodes_vectors_of_any_number_of_dimensions(size: int) -> None:
    rows = rows_of(6000, size=size)
    index = VectorIndex.of(rows, exact_numbers=0)

    nearest = index.search(query_of(rows[17]), mask=np.ones(6000, np.bool_), count=3)

    assert 17 == nearest.pool[0]
    assert nearest.scored < 6000


def test_sketch_encodes_rows_of_zeros() -> None:
    """The catalog has such rows for entities without a vector."""
    rows = np.zeros((3000, 8), np.float32)

    nearest = VectorIndex.of(rows, exact_numbers=0).search(
        query_of(np.ones(8)), mask=np.ones(3000, np.bool_), count=3
    )

    assert [0.0, 0.0, 0.0] == nearest.strengths.tolist()


def test_equal_vectors_get_equal_scores_at_any_position() -> None:
    """Scores must be equal to the last bit, so that such ties are ordered by position."""
    rows = rows_of(6000)
    rows[4000] = rows[11]
    mask = np.ones(6000, np.bool_)

    nearest = VectorIndex.of(rows, exact_numbers=0).search(query_of(rows[11]), mask=mask, count=2)

    assert [11, 4000] == nearest.pool.tolist()
    assert nearest.strengths[0] == nearest.strengths[1]


def test_score_is_that_of_the_nearest_text_of_a_query() -> None:
    rows = rows_of(6000, size=64)
    query = VectorQuery(texts=rows[[5, 4700]], clauses=rows[:0])

    nearest = VectorIndex.of(rows, exact_numbers=0).search(
        query, mask=np.ones(6000, np.bool_), count=2
    )

    assert {5, 4700} == set(nearest.pool.tolist())


def test_sketch_of_the_same_vectors_is_the_same_in_each_process() -> None:
    """Its directions are drawn with a fixed seed."""
    rows = rows_of(5000)

    first, second = (SignSketch.of(rows).estimate(rows[:1]).tolist() for _ in range(2))

    assert first == second
