"""What a request is judged against."""

from __future__ import annotations

import numpy as np
import pytest

from gateway.index.eligibility import Mask
from gateway.index.vectors.exact import VectorIndex, VectorQuery
from gateway.options import SearchOptions
from gateway.search.dense.home import LEAST, Ground, Homes
from gateway.search.dense.mates import Mates
from gateway.search.dense.vector import Candidates, candidates

MANY = 2 * LEAST


def mates(*counts: int) -> Mates | None:
    """Servers of so many tools each."""
    return Mates.numbered(np.repeat(np.arange(len(counts)), counts))


def found(mask: Mask, *, dense: bool = True) -> Candidates:
    """What a query finds whose cosine falls evenly from the first tool to the last."""
    cosines = np.linspace(1, -1, len(mask), dtype=np.float32)
    rows = np.column_stack([cosines, np.sqrt(1 - cosines**2)])
    index = VectorIndex.of(rows, dense_numbers=1 << 20 if dense else 1)
    question = VectorQuery(texts=np.array([[1, 0]], np.float32), clauses=rows[:0])
    return candidates(index, question, mask=mask, limit=5, options=SearchOptions())


def whole(seen: Candidates) -> Ground:
    """The catalog."""
    return Ground(mean=seen.cosine_mean, spread=seen.cosine_spread)


def ground_of(homes: Homes, seen: Candidates, spot: int) -> Ground:
    """What the entity at *spot* is judged against."""
    return homes.ground(seen, homes.own(seen, spot))


def test_a_request_is_judged_against_the_server_of_its_first_match() -> None:
    """Whoever else is there, and only by who may be found."""
    mask = np.ones(2 * MANY, dtype=np.bool_)
    mask[1] = False
    homes = Homes(mates=mates(MANY, MANY), mask=mask)
    seen = found(mask)
    own = np.delete(np.linspace(1, -1, 2 * MANY)[:MANY], 1)

    ground = ground_of(homes, seen, 0)

    assert (ground.mean, ground.spread) == pytest.approx((own.mean(), own.std()))
    assert ground_of(homes, seen, MANY).mean < 0 < ground.mean
    everybody = ground_of(Homes(mates=homes.mates), seen, 0)
    assert everybody.mean == pytest.approx(np.linspace(1, -1, 2 * MANY)[:MANY].mean())


def test_a_small_server_and_a_large_catalog_are_judged_as_a_whole() -> None:
    """Few tools say too little, and not every cosine of many is known."""
    mask = np.ones(LEAST - 1 + MANY, dtype=np.bool_)
    small = Homes(mates=mates(LEAST - 1, MANY), mask=mask)
    alone = Homes(mates=None, mask=mask)
    seen, quick = found(mask), found(mask, dense=False)

    assert (
        whole(seen)
        == ground_of(small, seen, 0)
        == ground_of(alone, seen, 0)
        == ground_of(Homes(), seen, 0)
    )
    assert whole(seen) != ground_of(small, seen, LEAST)
    assert whole(quick) == ground_of(small, quick, LEAST)
    assert Ground(mean=0.0, spread=0.0) == ground_of(small, found(mask & False), 0)
