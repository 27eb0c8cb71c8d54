"""Sketches: who looks near by bits, then by places, is near, however the rows came."""

from __future__ import annotations

import numpy as np
import pytest

from gateway.index.vectors.codes import Codes, chosen
from gateway.index.vectors.exact import VectorIndex, VectorQuery
from gateway.index.vectors.sketch import LEAST_LONG, MOST_ROWS, SHORT, Sketched, worth
from gateway.runtime.vectors import Matrix, unit_rows

SIZE = LEAST_LONG
COUNT = 6000


def rows_of(count: int = COUNT, *, size: int = SIZE, seed: int = 0) -> Matrix:
    """Rows whose directions fall off, as those of models do."""
    rng = np.random.default_rng(seed)
    spectrum = (1 + np.arange(size, dtype=np.float32)) ** -0.5
    centres = rng.standard_normal((500, size), dtype=np.float32)
    rows = rng.standard_normal((count, size), dtype=np.float32)
    rows *= np.float32(0.6)
    rows += centres[np.arange(count) % len(centres)]
    return unit_rows(rows * spectrum)


ROWS = rows_of()
NOBODY = ROWS[:0]
everybody = np.ones(COUNT, dtype=np.bool_)
sketch = Sketched.of(ROWS)


def nearest(known: Sketched, queries: Matrix, allowed: np.ndarray, count: int) -> list[int]:
    return list(known.nearest(queries, allowed, count, clauses=NOBODY, weight=0.0).tolist())


def test_the_ten_nearest_are_among_the_chosen() -> None:
    """Of questions with as much noise as signal, nearly always."""
    noise = rows_of(20, seed=1)
    met = 0
    for query in unit_rows(ROWS[:20] + noise):
        exact = np.argsort(-(ROWS @ query))[:10].tolist()
        found = nearest(sketch, query[None], everybody, 256)
        assert 256 == len(found)
        assert sorted(found) == found
        met += len(set(exact) & set(found))

    assert met >= 198


def test_who_may_not_be_chosen_takes_nobodys_place() -> None:
    """Of those that may, as many are chosen as without the others."""
    allowed = np.arange(COUNT) % 3 > 0

    found = nearest(sketch, ROWS[4:5], allowed, 60)

    assert allowed[found].all()
    assert 60 == len(found)
    assert 4 in found


def test_a_question_of_two_texts_is_near_to_either() -> None:
    """A query as typed and as mended: each finds what it means."""
    assert {5, 1700} <= set(nearest(sketch, ROWS[[5, 1700]], everybody, 50))


@pytest.mark.parametrize("part", [1, 3])
def test_the_best_clause_counts_besides(part: int) -> None:
    """Who is near to the whole and to a part is chosen, whoever may be."""
    clauses = unit_rows(ROWS[20 : 20 + part] + ROWS[7:8])
    strengths = ROWS @ ROWS[7] + 0.7 * (ROWS @ clauses.T).max(axis=1)
    exact = np.argsort(-strengths)[:10].tolist()

    found = sketch.nearest(ROWS[7:8], everybody, 256, clauses=clauses, weight=0.7)

    assert len(set(exact) & set(found.tolist())) >= 9


def test_rows_that_were_added_later_are_seen_like_the_others() -> None:
    """Along the axes that there are already, and a segment is no border."""
    grown = Sketched.of(ROWS[:4000]).joined(ROWS[4000:], [4000, 2000])
    whole = Sketched.of(ROWS[:4000]).joined(ROWS[4000:], [6000])

    assert [4000, 2000] == [len(part) for part in grown.places]
    found = nearest(grown, ROWS[[3, 4800]], everybody, 40)
    assert {3, 4800} <= set(found)
    assert found == nearest(whole, ROWS[[3, 4800]], everybody, 40)


def test_equal_catalogs_have_equal_sketches() -> None:
    """No draw differs from start to start."""
    again = Sketched.of(ROWS.copy())

    assert sketch.places[0].tobytes() == again.places[0].tobytes()
    assert sketch.planes[0].tobytes() == again.planes[0].tobytes()


def test_rows_that_hardly_differ_have_sketches_too() -> None:
    """An axis along which nobody stands apart has steps, however small."""
    rows = np.repeat(ROWS[:2], 100, axis=0)

    assert {0, 150} <= set(nearest(Sketched.of(rows), ROWS[:2], np.ones(200, np.bool_), 200))


def test_a_longer_catalog_is_told_by_fewer_bits() -> None:
    """They cost more of it, and looking at more rows again costs less."""
    longer = Sketched.of(np.broadcast_to(ROWS[0], (SHORT + 1, SIZE)))

    assert sketch.bits == 64 * len(sketch.planes[0])
    assert longer.bits == 64 * len(longer.planes[0])
    assert longer.bits < sketch.bits


@pytest.mark.parametrize("count", [9000, 200_000])
def test_the_largest_are_chosen_of_long_lists_too(count: int) -> None:
    """Ties come along, and who may not be chosen takes nobody's place."""
    near = np.random.default_rng(1).integers(0, count, size=count).astype(np.float32)
    allowed = np.arange(count) % 2 == 0
    least = np.sort(near[allowed])[-700]

    found = chosen(near, allowed, 700)

    assert found.tolist() == np.flatnonzero(allowed & (near >= least)).tolist()


def test_of_fewer_than_are_wanted_all_are_chosen() -> None:
    """Those that may be."""
    near = np.arange(9, dtype=np.float32)

    assert [0, 1, 2] == chosen(near, near < 3, 6).tolist()
    assert list(range(9)) == chosen(near, None, 60).tolist()


@pytest.mark.parametrize("clauses", [0, 2])
def test_an_index_of_long_rows_is_sketched_and_scores_rows(clauses: int) -> None:
    """Exact numbers, the same best ones, and no more rows scored than looked near."""
    index = VectorIndex.of(ROWS, dense_numbers=0)
    query = VectorQuery(texts=ROWS[7:8], clauses=ROWS[20 : 20 + clauses])

    found = index.search(query, mask=everybody, count=20)

    exact = VectorIndex.of(ROWS).search(query, mask=everybody, count=20)
    assert index.large is not None
    assert isinstance(index.large.codes, Sketched)
    assert exact.pool[:10].tolist() == found.pool[:10].tolist()
    assert exact.strengths[:10].tolist() == found.strengths[:10].tolist()
    assert 128 == found.scored


def test_rows_that_come_and_go_rank_as_in_a_fresh_index() -> None:
    """Who is looked at may differ; what is said of the best does not."""
    kept = np.arange(100, 5900)
    index = VectorIndex.of(ROWS[:5900], dense_numbers=0)
    index = index.changed(kept, ROWS[5900:], np.arange(5900))
    query = VectorQuery(texts=ROWS[5950:5951], clauses=NOBODY)

    found = index.search(query, mask=everybody[:5900], count=10)

    fresh = VectorIndex.of(ROWS[100:], dense_numbers=0)
    expected = fresh.search(query, mask=everybody[:5900], count=10)
    assert expected.pool.tolist() == found.pool.tolist()
    assert expected.strengths.tolist() == found.strengths.tolist()
    assert expected.moments == found.moments


@pytest.mark.parametrize(
    ("count", "size", "sketched"),
    [
        (600, SIZE, True),
        (600, SIZE - 1, False),
        (MOST_ROWS, SIZE, True),
        (MOST_ROWS + 1, SIZE, False),
    ],
)
def test_long_rows_that_are_not_too_many_are_sketched(
    count: int, size: int, sketched: bool
) -> None:
    """Shorter ones and very many have codes."""
    rows = np.broadcast_to(np.float32(0.1), (count, size))

    assert sketched == worth(rows)
    if count < SHORT:
        large = VectorIndex.of(rows, dense_numbers=0).large
        assert large is not None
        assert isinstance(large.codes, Sketched if sketched else Codes)


def test_a_long_catalog_reads_few_rows_and_says_exact_numbers() -> None:
    """However many there are, a few are scored: .8 for each root of a row."""
    rows = rows_of(SHORT + 1000)
    index = VectorIndex.of(rows)

    found = index.search(
        VectorQuery(texts=rows[7:8], clauses=NOBODY),
        mask=np.ones(len(rows), dtype=np.bool_),
        count=40,
    )

    assert index.large is not None
    assert isinstance(index.large.codes, Sketched)
    assert 147 == found.scored
    assert 7 == found.pool[0]
    assert np.vecdot(rows[found.pool], rows[7]).tolist() == found.strengths.tolist()
