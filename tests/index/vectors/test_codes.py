"""Codes: who looks near is near, whatever the rows look like and however they were added."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.index.vectors.codes import Coder, Codes
from gateway.runtime.vectors import Matrix, unit_rows


def rows_of(count: int, size: int = 96, seed: int = 0) -> Matrix:
    return unit_rows(np.random.default_rng(seed).standard_normal((count, size)))


def codes_of(rows: Matrix, *parts: Matrix) -> Codes:
    coder = Coder.of(rows)
    return Codes(coder=coder, planes=tuple(coder.encode(part) for part in parts or (rows,)))


everybody = np.ones(3000, dtype=np.bool_)


@settings(deadline=None, max_examples=15)
@given(seed=st.integers(0, 50), cut=st.integers(1, 2999))
def test_rows_that_were_added_apart_are_chosen_as_those_added_together(seed: int, cut: int) -> None:
    """A segment is no border, and answers come in the order of the rows."""
    rows = rows_of(3000, seed=seed)
    query = unit_rows(rows[3:4] + rows[8:9])

    whole = codes_of(rows).nearest(query, everybody, 40)
    apart = codes_of(rows, rows[:cut], rows[cut:]).nearest(query, everybody, 40)

    assert whole.tolist() == apart.tolist() == sorted(whole.tolist())
    assert {3, 8} <= set(whole.tolist())


def test_who_may_not_be_chosen_takes_nobodys_place() -> None:
    """Of those that may, as many are chosen as without the others."""
    rows = rows_of(3000)
    allowed = np.arange(3000) % 3 > 0

    found = codes_of(rows).nearest(rows[4:5], allowed, 60)

    assert allowed[found].all()
    assert len(found) >= 60
    assert 4 in found


def test_a_question_of_two_texts_is_near_to_either() -> None:
    """A query as typed and as mended: each finds what it means."""
    rows = rows_of(3000)

    found = codes_of(rows).nearest(rows[[5, 1700]], everybody, 50)

    assert {5, 1700} <= set(found.tolist())


def test_two_places_of_a_query_tell_more_than_its_signs() -> None:
    """Of the true hundred nearest, more are among two hundred chosen."""
    rows, queries = rows_of(3000), rows_of(20, seed=1)
    known = codes_of(rows)
    by_signs = by_both = 0
    for query in queries:
        near = set(np.argsort(-(rows @ query))[:100].tolist())
        signs = np.argsort(-known.likeness(query[None]), kind="stable")[:200]
        by_signs += len(near & set(signs.tolist()))
        by_both += len(near & set(known.nearest(query[None], everybody, 200)[:230].tolist()))

    assert by_both > by_signs


def test_a_long_catalog_is_looked_at_by_fewer_bits_first() -> None:
    """Its rows are found all the same."""
    rows = rows_of(33_000, size=64)

    found = codes_of(rows).nearest(rows[77:78], np.ones(33_000, dtype=np.bool_), 30)

    assert 77 in found


@pytest.mark.parametrize("size", [64, 100, 896])
def test_directions_are_at_right_angles(size: int) -> None:
    """Turning keeps lengths, each way that a row is turned."""
    rows = rows_of(50, size=size)
    coder = Coder.of(rows)

    lengths = np.linalg.norm(coder.turned(rows), axis=1) / 8

    assert np.allclose(lengths, (coder.words * 64 // (-(-size // 64) * 64)) ** 0.5, atol=1e-3)
