"""The scan: exact where it is small, coded where it is large, the same mask everywhere."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.index.vectors import exact
from gateway.index.vectors.exact import VectorIndex, VectorQuery
from gateway.runtime.vectors import Matrix, unit_rows


def rows_of(count: int, *, size: int = 32, seed: int = 0) -> Matrix:
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((max(2, count // 20), size))
    return unit_rows(centres[np.arange(count) % len(centres)] + rng.standard_normal((count, size)))


def asked(row: np.ndarray, *clauses: np.ndarray) -> VectorQuery:
    parts = unit_rows(np.stack(clauses)) if clauses else np.zeros((0, len(row)), np.float32)
    return VectorQuery(texts=unit_rows(row), clauses=parts)


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
    assert 256 <= found.scored < 1600
    assert len(set(found.pool[:10].tolist()) & set(exact.pool[:10].tolist())) >= 8


@settings(deadline=None, max_examples=20)
@given(
    seed=seeds,
    large=st.booleans(),
    steps=st.lists(
        st.tuples(st.sets(st.integers(0, 19), max_size=6), st.integers(0, 4)), max_size=4
    ),
)
def test_rows_that_come_and_go_rank_as_if_they_had_always_been_so(
    seed: int, large: bool, steps: list[tuple[set[int], int]]
) -> None:
    """Segments and tombstones never show: the same positions and the same bits as a fresh index."""
    rng = np.random.default_rng(seed)
    rows = rows_of(400, seed=seed)
    numbers = 0 if large else exact.DENSE_NUMBERS
    index = VectorIndex.of(rows, dense_numbers=numbers)
    for gone, came in steps:
        kept = np.asarray([spot for spot in range(len(rows)) if spot not in gone], np.intp)
        added = unit_rows(rng.standard_normal((came, rows.shape[1])))
        order = rng.permutation(len(kept) + came)
        index = index.changed(kept, added, order)
        rows = np.concatenate([rows[kept], added])[order]
    mask = rng.random(len(rows)) < 0.9
    query = asked(rows[3] + rows[5])

    found = index.search(query, mask=mask, count=150)

    fresh = VectorIndex.of(rows).search(query, mask=mask, count=150)
    assert len(rows) == index.size
    assert rows.tolist() == index.rows(np.arange(len(rows))).tolist()
    assert fresh.pool.tolist() == found.pool.tolist()
    assert fresh.strengths.tolist() == found.strengths.tolist()


def test_a_mask_that_leaves_few_is_scored_exactly() -> None:
    """Whom the mask lets pass is then all that is looked at."""
    rows = rows_of(3000)
    mask = np.zeros(3000, np.bool_)
    mask[[5, 9, 2000]] = True

    found = VectorIndex.of(rows, dense_numbers=0).search(asked(rows[5]), mask=mask, count=10)

    assert [5] == found.pool.tolist()[:1]
    assert (3, 3, 3) == (len(found.pool), found.scored, found.eligible)


def test_the_sample_of_a_rare_kind_is_drawn_from_that_kind() -> None:
    """Mean and spread are those of the eligible, though the sample of all holds few of them."""
    rows = rows_of(9000)
    mask = np.arange(9000) % 20 == 0
    query = asked(rows[0])
    index = VectorIndex.of(rows, dense_numbers=0)

    found = index.search(query, mask=mask, count=5)

    exact = VectorIndex.of(rows).search(query, mask=mask, count=5)
    assert abs(found.moments.mean - exact.moments.mean) < 0.1
    assert abs(found.moments.spread - exact.moments.spread) < 0.1


@pytest.mark.parametrize("size", [5, 64, 100])
def test_rows_of_any_length_have_codes(size: int) -> None:
    """Padding and turning several ways: a row is nearest to itself."""
    rows = rows_of(2000, size=size)
    index = VectorIndex.of(rows, dense_numbers=0)

    found = index.search(asked(rows[17]), mask=np.ones(2000, np.bool_), count=3)

    assert 17 == found.pool[0]
    assert found.scored < 2000


def test_rows_of_zeros_alone_have_codes_too() -> None:
    """A catalog whose vectors are all missing is no error."""
    rows = np.zeros((600, 8), np.float32)

    found = VectorIndex.of(rows, dense_numbers=0).search(
        asked(np.ones(8)), mask=np.ones(600, np.bool_), count=3
    )

    assert [0.0, 0.0, 0.0] == found.strengths.tolist()
