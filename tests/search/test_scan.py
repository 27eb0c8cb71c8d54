"""The scan: exact where it is small, coded where it is large, the same mask everywhere."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.search.scan import Question, VectorIndex
from gateway.vectors import Matrix, unit_rows


def rows_of(count: int, *, size: int = 32, seed: int = 0) -> Matrix:
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((max(2, count // 20), size))
    return unit_rows(centres[np.arange(count) % len(centres)] + rng.standard_normal((count, size)))


def asked(row: np.ndarray, *clauses: np.ndarray) -> Question:
    parts = unit_rows(np.stack(clauses)) if clauses else np.zeros((0, len(row)), np.float32)
    return Question(texts=unit_rows(row), clauses=parts)


seeds = st.integers(0, 50)


@settings(deadline=None, max_examples=25)
@given(seed=seeds, count=st.integers(1, 300), part=st.floats(0, 1), clauses=st.integers(0, 2))
def test_a_coded_scan_that_may_look_at_all_is_an_exact_one(
    seed: int, count: int, part: float, clauses: int
) -> None:
    """The same positions, the same numbers to the last bit."""
    rows = rows_of(count, seed=seed)
    mask = np.random.default_rng(seed).random(count) <= part
    query = asked(rows[0] + rows[-1], *rows[:clauses])

    small = VectorIndex.of(rows).search(query, mask=mask, count=10)
    large = VectorIndex.of(rows, dense_numbers=0).search(query, mask=mask, count=10)

    assert small.pool.tolist() == large.pool.tolist()
    assert small.strengths.tolist() == large.strengths.tolist()
    assert small.cosines.tolist() == large.cosines.tolist()
    assert small.moments == large.moments
    assert int(mask.sum()) == small.eligible == large.eligible


@settings(deadline=None, max_examples=15)
@given(seed=seeds, clauses=st.integers(0, 3))
def test_codes_find_the_nearest_and_score_them_exactly(seed: int, clauses: int) -> None:
    """Among thousands a few hundred rows are scored, and the best ten are the best ten."""
    rows = rows_of(4000, seed=seed)
    mask = np.random.default_rng(seed).random(4000) < 0.7
    query = asked(rows[7] + 0.3 * rows[1], *rows[20 : 20 + clauses])
    whole = VectorIndex.of(rows)

    found = VectorIndex.of(rows, dense_numbers=0).search(query, mask=mask, count=20)

    exact = whole.search(query, mask=mask, count=20)
    _, strengths = whole.score(query)
    assert mask[found.pool].all()
    assert strengths[found.pool].tolist() == found.strengths.tolist()
    assert sorted(found.strengths.tolist(), reverse=True) == found.strengths.tolist()
    assert 256 <= found.scored < 600
    assert len(set(found.pool[:10].tolist()) & set(exact.pool[:10].tolist())) >= 8
