"""Tests of `CatalogVectors`, in memory and in PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.index import CatalogVectors, EngineVectors, VectorIndex, VectorQuery
from gateway.runtime.vectors import Matrix, Vector, cosines_of, unit_rows
from tests.postgres_server import DATABASES

SIZE, COUNT = 32, 12_000
HALF = 1e-3
"""Maximum change of a cosine due to half precision, for rows of this size."""
Shelve = Callable[..., CatalogVectors]


def random_rows(count: int, seed: int = 0) -> Matrix:
    """Return random rows around random centres, twenty rows around each."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((count // 20, SIZE))
    near = centres[np.arange(count) // 20 % len(centres)]
    return unit_rows(near + 0.6 * rng.standard_normal((count, SIZE)))


ROWS = random_rows(COUNT + 1000)
"""Rows of all catalogs in the database. The last thousand belong to other catalogs than the tested
one."""


def vector_query(*texts: np.ndarray, clauses: Iterable[np.ndarray] = ()) -> VectorQuery:
    parts = unit_rows([*clauses]) if [*clauses] else np.zeros((0, SIZE), np.float32)
    return VectorQuery(texts=unit_rows(np.stack(texts)), clauses=parts, clause_weight=0.7)


def score_rows(rows: Matrix, query: VectorQuery) -> tuple[Vector, Vector]:
    return query.combine(cosines_of(rows, query.vectors))


@pytest.fixture(
    scope="module", params=["memory", *(name for name in DATABASES if name == "postgres")]
)
def store_vectors(request: pytest.FixtureRequest) -> Iterator[Shelve]:
    """Return a function that stores the vectors of a catalog, given rows of `ROWS`; -1 means no
    vector.
    """
    if request.param == "memory":

        def in_memory(chosen: np.ndarray, *, large: bool = False) -> CatalogVectors:
            present = chosen >= 0
            matrix = np.where(present[:, None], ROWS[chosen], np.float32(0))
            mean = np.asarray(matrix[present].mean(axis=0), np.float32)
            return VectorIndex.of(
                matrix,
                exact_numbers=0 if large else matrix.size,
                present=None if present.all() else present,
                mean=mean,
            )

        yield in_memory
        return
    from gateway.plugins.postgres import PgvectorEngine, PostgresDatabase  # noqa: PLC0415  (it may not be installed)

    database = PostgresDatabase(request.getfixturevalue("postgres").url, "shelf")
    engine = PgvectorEngine(database, "ab12", 60)
    keys = [f"{number:06}".encode() for number in range(len(ROWS))]
    keys_by_row = engine.put(dict(zip(keys, ROWS, strict=True)))
    ids = np.array([*(keys_by_row[key] for key in keys), 0])
    engine.maintain(ids, 0)

    def in_database(chosen: np.ndarray, *, large: bool = False) -> CatalogVectors:
        few = 100 if large else len(chosen)
        listed = np.flatnonzero(chosen >= 0)
        return EngineVectors(engine, ids[chosen], SIZE, listed=listed, few_rows=few)

    yield in_database
    database.close()


@settings(deadline=None, max_examples=15, suppress_health_check=[HealthCheck.too_slow])
@given(
    seed=st.integers(0, 99),
    share=st.floats(0, 1),
    texts=st.integers(1, 2),
    clauses=st.integers(0, 2),
    lacking=st.booleans(),
)
def test_exact_vector_search_returns_best_rows_and_mean_and_spread(
    store_vectors: Shelve, seed: int, share: float, texts: int, clauses: int, lacking: bool
) -> None:
    """Some entities share a row because their texts are equal, and some have no row."""
    rng = np.random.default_rng(seed)
    chosen = rng.integers(300, size=400)
    chosen[rng.random(400) < (0.2 if lacking else 0)] = -1
    mask = rng.random(400) < share
    query = vector_query(
        *random_rows(40, seed)[:texts], clauses=random_rows(40, seed)[10 : 10 + clauses]
    )
    rows = np.where(chosen[:, None] >= 0, ROWS[chosen], np.float32(0))
    cosines, strengths = score_rows(rows, query)

    result = store_vectors(chosen).search(query, mask=mask, count=30)

    best = np.sort(strengths[mask])[::-1][:30]
    assert result.eligible == int(mask.sum())
    assert np.allclose(best, strengths[result.pool], atol=2 * HALF)
    assert np.allclose(result.strengths, strengths[result.pool], atol=HALF)
    assert np.allclose(result.cosines, cosines[result.pool], atol=HALF)
    order = np.lexsort((result.pool, -result.strengths))
    assert order.tolist() == [*range(len(result.pool))]
    assert mask[result.pool].all()
    seen = cosines[mask & (chosen >= 0)]
    for moments, values in (
        (result.moments.strengths, strengths[mask]),
        (result.moments.cosines, seen),
    ):
        assert abs(moments.mean - (values.mean() if len(values) else 0)) < HALF
        assert abs(moments.spread - (values.std() if len(values) else 0)) < HALF


def servers_unlike(rows: Matrix, query: VectorQuery) -> np.ndarray:
    """Return a mask of some servers, each with 100 similar tools that differ from *query*."""
    nearness = score_rows(rows, query)[0].reshape(-1, 100).max(axis=1)
    return np.repeat(nearness < np.quantile(nearness, 0.5), 100)


def farthest(rows: Matrix, query: VectorQuery) -> np.ndarray:
    cosines = score_rows(rows, query)[0]
    return np.asarray(cosines < np.median(cosines))


@pytest.mark.parametrize("filtered", [1.0, 0.5, 0.1, 0.01, servers_unlike, farthest])
def test_filtered_vector_search_finds_all_best_rows(
    store_vectors: Shelve, filtered: float | Callable[[Matrix, VectorQuery], np.ndarray]
) -> None:
    """The best rows are found although the table also contains rows of other catalogs."""
    rows, index = ROWS[:COUNT], store_vectors(np.arange(COUNT), large=True)
    rng, recalls = np.random.default_rng(4), []
    for place in rng.integers(COUNT, size=12):
        query = vector_query(rows[place] + 0.1 * rng.standard_normal(SIZE))
        mask = filtered(rows, query) if callable(filtered) else rng.random(COUNT) < filtered
        strengths = score_rows(rows, query)[1]

        result = index.search(query, mask=mask, count=20)

        tenth = np.sort(strengths[mask])[-10]
        recalls.append(np.mean(strengths[result.pool[:10]] > tenth - HALF))
        assert mask[result.pool].all()
        # A search over many rows must be approximate, because an exact one always finds the best.
        assert filtered not in {1.0, 0.5} or result.scored < result.eligible
        assert abs(result.moments.strengths.mean - strengths[mask].mean()) < 0.05

    assert np.mean(recalls) >= 0.99


def test_vector_search_scores_only_part_of_a_large_catalog(store_vectors: Shelve) -> None:
    """The best row of each clause of the query is still found, with its exact similarity."""
    rows, index = ROWS[:COUNT], store_vectors(np.arange(COUNT), large=True)
    query = vector_query(rows[3] + rows[28], clauses=[rows[3], rows[28]])
    strengths = score_rows(rows, query)[1]

    result = index.search(query, mask=np.ones(COUNT, np.bool_), count=20)

    assert result.scored < COUNT
    assert len({*result.pool[:10].tolist()} & {*np.argsort(-strengths)[:10].tolist()}) >= 9
    assert np.allclose(np.sort(strengths)[-3:][::-1], result.strengths[:3], atol=2 * HALF)


def test_vector_rows_similarities_and_mean_are_exact(store_vectors: Shelve) -> None:
    """An entity without a row has zeros."""
    index, lacking = store_vectors(np.arange(200)), store_vectors(np.array([-1, 0]))

    assert np.allclose(ROWS[[5, 2]], index.rows(np.array([5, 2])), atol=HALF)
    expected = ROWS[:3] @ ROWS[[7, 4]].T
    assert np.allclose(expected, index.similarities(ROWS[:3], np.array([7, 4])), atol=HALF)
    assert index.mean is not None
    assert np.allclose(ROWS[:200].mean(axis=0), index.mean, atol=HALF)
    assert (200, SIZE, 200, None) == (index.size, index.dimensions, index.count, index.present)
    assert [False, True] == lacking.has(np.array([0, 1])).tolist()
    assert [0, 1] == np.linalg.norm(lacking.rows(np.array([0, 1])), axis=1).round(2).tolist()
    assert [0, 1] == lacking.similarities(ROWS[:1], np.array([0, 1])).round(2)[0].tolist()
    assert (1, SIZE) == lacking.rows(np.array([0])).shape
