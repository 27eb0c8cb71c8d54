"""How near to a boast a tool is, and who vouches for it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from gateway.embed.yardstick import Yardstick
from gateway.index.vectors.exact import VectorIndex
from gateway.runtime.vectors import Matrix, Vector, unit_rows
from gateway.search.dense.boasts import SUSPECT, Boasts
from gateway.search.dense.mates import Mates
from graphs.arrays import Moves

LOUD = Yardstick(strangers=0.0, matches=0.2, boast=np.array([1, 0, 0, 0], np.float32))
SUSPICIOUS = [0.4, 0.9, 0, 0]
"""Twice as near to a boast as a weak match is to a request."""
SIBLING = [0.0, 1, 0, 0]
COUSIN = [0.0, 0.75, 0.66, 0]
STRANGER = [0.0, 0, 0, 1]


def rows(*given: Sequence[float]) -> Matrix:
    return unit_rows(np.array(given, np.float32))


def boasts(matrix: Matrix, servers: Sequence[str] = ()) -> Vector:
    """Measure a fresh catalog."""
    moves = Moves(size=0, gone=(), new=range(len(matrix)))
    mates = Mates.of(servers) if servers else None
    found = Boasts().change(VectorIndex.of(matrix), moves, None, LOUD, mates)
    assert found is not None
    return found


def test_a_sibling_of_the_same_server_vouches() -> None:
    """Nobody else does, and who needs no voucher is as it was."""
    matrix = rows(SUSPICIOUS, SIBLING, STRANGER)
    plain = LOUD.nearness(matrix[:, 0])

    np.testing.assert_allclose(boasts(matrix), [SUSPECT, *plain[1:]], rtol=1e-6)
    np.testing.assert_allclose(boasts(matrix, ["a", "a", "b"]), [SUSPECT, *plain[1:]], rtol=1e-6)
    np.testing.assert_allclose(boasts(matrix, ["a", "b", "a"]), plain)
    np.testing.assert_allclose(boasts(matrix[[0, 2]]), plain[[0, 2]])
    np.testing.assert_allclose(boasts(matrix[:1]), plain[:1])


def test_who_is_less_like_it_vouches_less() -> None:
    """In between, a part of the doubt stays."""
    matrix = rows(SUSPICIOUS, COUSIN)
    found, plain = boasts(matrix), LOUD.nearness(matrix[:, 0])

    assert SUSPECT < found[0] < plain[0]
    assert found[1] == plain[1]


def test_boasters_do_not_vouch_for_each_other() -> None:
    """Nor does who is half as loud."""
    pair = rows(SUSPICIOUS, SUSPICIOUS)
    np.testing.assert_allclose(boasts(pair), LOUD.nearness(pair[:, 0]))

    half = rows(SUSPICIOUS, [0.24, 0.97, 0, 0])
    assert 1.1 < LOUD.nearness(float(half[1, 0])) < SUSPECT
    np.testing.assert_allclose(boasts(half), LOUD.nearness(half[:, 0]))


def test_where_many_of_a_server_boast_nobody_vouches() -> None:
    """One honest tool would do so for all; of a large server some speak of all by chance."""
    few, some, many = (rows(*[SUSPICIOUS] * count, SIBLING) for count in (3, 6, 12))
    plain = LOUD.nearness(many[:, 0])
    large = rows(*[SUSPICIOUS] * 12, *[SIBLING] * 200)

    np.testing.assert_allclose(boasts(few)[:3], SUSPECT)
    assert SUSPECT < boasts(some)[0] < plain[0]
    np.testing.assert_allclose(boasts(many), plain)
    np.testing.assert_allclose(boasts(large)[:12], SUSPECT)


def test_a_sibling_is_found_in_a_server_of_many() -> None:
    """Wherever its name stands."""
    matrix = rows(SUSPICIOUS, *[STRANGER] * 700, SIBLING)

    assert boasts(matrix)[0] == pytest.approx(SUSPECT)


def test_what_stays_is_not_measured_again() -> None:
    """A row that came and one that left: as if all were measured anew."""
    before = rows(SUSPICIOUS, STRANGER, [0.6, 0, 0.8, 0])
    after = rows([0.8, 0, 0.6, 0], STRANGER, [0.6, 0, 0.8, 0])
    kept = Boasts()
    kept.change(VectorIndex.of(before), Moves(size=0, gone=(), new=range(3)), None, LOUD)

    moves = Moves(size=3, gone=(0,), new=(0,))
    found = kept.change(VectorIndex.of(after), moves, np.array([0]), LOUD)

    assert found is not None
    np.testing.assert_allclose(found, boasts(after))


def test_a_sibling_that_leaves_vouches_no_more() -> None:
    """Nobody remembers what it said."""
    before = rows(SUSPICIOUS, SIBLING, STRANGER)
    kept = Boasts()
    first = kept.change(VectorIndex.of(before), Moves(size=0, gone=(), new=range(3)), None, LOUD)

    alone = VectorIndex.of(before[[0, 2]])
    found = kept.change(alone, Moves(size=3, gone=(1,), new=()), np.zeros(0, np.intp), LOUD)

    assert first is not None
    assert found is not None
    assert first[0] == pytest.approx(SUSPECT)
    assert found[0] > SUSPECT


def test_a_sibling_is_found_whatever_way_a_large_catalog_came_to_be() -> None:
    """What was there first chose the axes: along them the sibling is like any other."""
    rng, half = np.random.default_rng(0), 800
    matrix = rng.normal(size=(2 * half, 384)).astype(np.float32)
    matrix[:half, 256:] = 0
    matrix[half:, 256:] *= 2
    matrix[half, 256:] = matrix[half + 1, 256:]
    matrix[:, 0] = 0
    matrix[half, 0] = 14
    matrix = unit_rows(matrix)
    boast = np.eye(1, 384, dtype=np.float32)[0]
    yardstick = Yardstick(strangers=0.0, matches=0.14, boast=boast)

    everybody = np.arange(2 * half)
    grown = VectorIndex.of(matrix[:half], dense_numbers=1000)
    grown = grown.changed(everybody[:half], matrix[half:], everybody)
    moves = Moves(size=0, gone=(), new=everybody.tolist())
    fresh, found = (
        Boasts().change(index, moves, None, yardstick) for index in (VectorIndex.of(matrix), grown)
    )

    assert grown.large is not None
    assert fresh is not None
    assert found is not None
    assert fresh[half] == pytest.approx(SUSPECT)
    np.testing.assert_array_equal(found, fresh)
