"""Axes: who looks near along them is near, whatever the rows look like and however they came."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.search.dense.codes import Codes
from gateway.search.dense.projected import AXES, Projected, chosen, worth
from gateway.search.dense.scan import Question, VectorIndex
from gateway.vectors import Matrix, unit_rows

SIZE = 400
everybody = np.ones(2000, dtype=np.bool_)


def rows_of(count: int = 2000, seed: int = 0) -> Matrix:
    """Rows whose directions fall off, as those of models do."""
    rng = np.random.default_rng(seed)
    spectrum = (1 + np.arange(SIZE)) ** -0.5
    centres = rng.standard_normal((max(2, count // 10), SIZE)) * spectrum
    away = 0.6 * rng.standard_normal((count, SIZE)) * spectrum
    return unit_rows(centres[np.arange(count) % len(centres)] + away)


ROWS = rows_of()


@settings(deadline=None, max_examples=10)
@given(seed=st.integers(0, 50))
def test_the_ten_nearest_are_among_the_chosen(seed: int) -> None:
    """Of rows as models give them, looking at a third of the numbers."""
    query = unit_rows(ROWS[seed : seed + 1] + rows_of(2, seed=seed + 1)[:1])
    exact = np.argsort(-(ROWS @ query[0]))[:10]

    found = Projected.of(ROWS).nearest(query, everybody, 256)

    assert 256 == len(found)
    assert len(set(exact.tolist()) & set(found.tolist())) >= 9


def test_equal_catalogs_have_equal_axes_at_right_angles() -> None:
    """No draw differs from start to start."""
    one, two = Projected.of(ROWS), Projected.of(ROWS.copy())

    assert one.axes.tolist() == two.axes.tolist()
    assert (AXES, SIZE) == one.axes.shape
    assert np.allclose(np.eye(AXES), one.axes @ one.axes.T, atol=1e-4)


def test_what_the_axes_hold_is_told_as_it_is() -> None:
    """A query of the catalog's own span: the estimate is the cosine."""
    few = rows_of(AXES // 2)

    near = Projected.of(few).likeness(few[:1])

    assert np.allclose(few @ few[0], near, atol=1e-3)


def test_a_question_of_two_texts_is_near_to_either() -> None:
    """A query as typed and as mended: each finds what it means, whatever the mean adds to it."""
    found = Projected.of(ROWS).nearest(ROWS[[5, 1700]], everybody, 40)

    assert {5, 1700} <= set(found.tolist())


def test_rows_that_were_added_later_are_chosen_like_the_others() -> None:
    """Along the axes that there are already."""
    first = Projected.of(ROWS[:1500])

    grown = first.joined(ROWS[1500:], [1500, 500])

    assert [1500, 500] == [len(part) for part in grown.parts]
    assert {3, 1800} <= set(grown.nearest(ROWS[[3, 1800]], everybody, 40).tolist())


@pytest.mark.parametrize("count", [9000, 200_000])
def test_the_largest_are_chosen_of_long_lists_too(count: int) -> None:
    """Ties come along, and who may not be chosen takes nobody's place."""
    near = np.random.default_rng(1).integers(0, count, size=count).astype(np.float32)
    allowed = np.arange(count) % 2 == 0
    least = np.sort(near[allowed])[-700]

    found = chosen(near, allowed, 700)

    assert found.tolist() == np.flatnonzero(allowed & (near >= least)).tolist()


def test_many_wanted_of_a_long_list_are_chosen_without_columns() -> None:
    """There are fewer columns than places."""
    near = np.arange(9000, dtype=np.float32)

    assert np.arange(3000, 9000).tolist() == chosen(near, near >= 0, 6000).tolist()


@pytest.mark.parametrize("clauses", [0, 2])
def test_an_index_of_long_rows_looks_along_axes_and_scores_rows(clauses: int) -> None:
    """Exact numbers, the same best ones, and no more rows scored than looked near."""
    index = VectorIndex.of(ROWS, dense_numbers=0)
    query = Question(texts=ROWS[7:8], clauses=ROWS[20 : 20 + clauses])

    found = index.search(query, mask=everybody, count=20)

    exact = VectorIndex.of(ROWS).search(query, mask=everybody, count=20)
    assert index.large is not None
    assert isinstance(index.large.codes, Projected)
    assert exact.pool[:10].tolist() == found.pool[:10].tolist()
    assert exact.strengths[:10].tolist() == found.strengths[:10].tolist()
    assert 256 == found.scored


def test_rows_that_come_and_go_rank_as_in_a_fresh_index() -> None:
    """Who is looked at may differ; what is said of the best does not."""
    rows = ROWS[:1900]
    kept = np.arange(100, 1900)
    index = VectorIndex.of(rows, dense_numbers=0).changed(kept, ROWS[1900:], np.arange(1900))
    query = Question(texts=ROWS[1950:1951], clauses=ROWS[:0])

    found = index.search(query, mask=everybody[:1900], count=10)

    fresh = VectorIndex.of(ROWS[100:], dense_numbers=0)
    expected = fresh.search(query, mask=everybody[:1900], count=10)
    assert expected.pool.tolist() == found.pool.tolist()
    assert expected.strengths.tolist() == found.strengths.tolist()
    assert expected.moments == found.moments


@pytest.mark.parametrize(("size", "projected"), [(SIZE, True), (2 * AXES, False)])
def test_short_rows_have_codes(size: int, projected: bool) -> None:
    """Along the axes there would be next to nothing less to read."""
    rows = unit_rows(np.random.default_rng(3).standard_normal((600, size)))

    large = VectorIndex.of(rows, dense_numbers=0).large

    assert projected == worth(rows)
    assert large is not None
    assert isinstance(large.codes, Projected if projected else Codes)
