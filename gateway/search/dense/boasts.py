"""How near to a boast each tool of a catalog is, and who vouches for it.

A boast says that a tool is good for every request. What lists, cancels or deletes everything of a
kind ("Get all users") is near to one too, as it speaks of all. Unlike a boast it has siblings:
tools of its own server that do nearly the same for one of the kind ("Get user"), and that are far
from any boast. What wants to be found for every request is like nothing else of a catalog, and
tools that boast do not vouch for each other. Where many tools of a server seem to boast, nobody of
it vouches: one tool of key words without a boast would do so for all that boast of the same.
"""

from __future__ import annotations

import numpy as np

from gateway.embed.yardstick import Yardstick
from gateway.index.vectors.exact import VectorIndex
from gateway.index.vectors.segments import Positions
from gateway.runtime.vectors import Vector, best_cosine
from gateway.search.dense.mates import Mates
from graphs.arrays import Moves

SUSPECT = 1.3
"""How near to a boast a vector may be, on the model's scale, without seeming to boast."""
_HONEST = 1.1
"""Who is nearer to a boast than this vouches for nobody."""
_KIN, _SIBLING = 3.3, 3.7
"""How near a tool must be to vouch a little, and to vouch in full, on the model's scale. Of 87
tools that were invented to be found for everything, and seem to boast, the nearest to any of 8,456
honest ones is at 3.2, and at 3.4 if its text is made of theirs."""
_USUAL = 0.05
"""Up to this part of a server's tools may seem to boast by chance."""
_FEW, _MANY = 3, 10
"""With up to the first number of suspects of a server, beyond the usual, siblings count in full;
with the second or more none does."""
_BLOCK = 512
"""Rows at a time that suspects are held against."""


class Boasts:
    """How near to a boast each row of a changing catalog is. Not for two builds at once."""

    def __init__(self) -> None:
        self._boast: Vector | None = None
        self._near: Vector | None = None

    def change(
        self,
        vectors: VectorIndex | None,
        moves: Moves,
        fresh: Positions | None,
        yardstick: Yardstick | None,
        mates: Mates | None = None,
    ) -> Vector | None:
        """Measure the rows that are new, and give how near all of them are.

        Args:
            vectors: The entities' rows.
            moves: Where the entities of the last time stand now.
            fresh: The positions whose rows are new; None if all are.
            yardstick: What the model's cosines mean, if known.
            mates: The server of each entity; None if all are of one.

        Returns:
            On the model's scale, shape (n,), less for whom siblings vouch; None without rows, or if
            no boast was measured.
        """
        boast = yardstick.boast if yardstick is not None else None
        before, known = self._boast, self._near
        self._boast, self._near = boast, None
        if vectors is None or yardstick is None or boast is None:
            return None
        same = before is not None and np.array_equal(boast, before)
        if known is None or fresh is None or not same:
            fresh = np.arange(vectors.size)
            known = np.zeros(0, dtype=np.float32)
            places = np.zeros(0, dtype=np.int64)
        else:
            places = moves.table()
        self._near = np.empty(vectors.size, dtype=np.float32)
        self._near[places[places >= 0]] = known[places >= 0]
        self._near[fresh] = best_cosine(vectors.rows(fresh), boast[None])
        return _vouched(yardstick.nearness(self._near), vectors, mates, yardstick)


def _vouched(
    boasts: Vector, vectors: VectorIndex, mates: Mates | None, yardstick: Yardstick
) -> Vector:
    """Give *boasts* with less for suspects who have siblings, at the least `SUSPECT`."""
    suspicious, honest = boasts > SUSPECT, boasts <= _HONEST
    if not suspicious.any():
        return boasts
    found = boasts.copy()
    numbers = np.zeros(len(boasts), dtype=np.intp) if mates is None else mates.numbers
    for server in np.unique(numbers[suspicious]).tolist():
        own = numbers == server
        suspects = np.flatnonzero(own & suspicious)
        many = len(suspects) - _USUAL * int(np.count_nonzero(own))
        if many >= _MANY:
            continue
        heard = min((_MANY - many) / (_MANY - _FEW), 1.0)
        near = yardstick.nearness(_best(vectors, suspects, np.flatnonzero(own & honest)))
        doubt = 1 - heard * np.clip((near - _KIN) / (_SIBLING - _KIN), 0.0, 1.0)
        found[suspects] = SUSPECT + doubt * (boasts[suspects] - SUSPECT)
    return found


def _best(vectors: VectorIndex, spots: Positions, others: Positions) -> Vector:
    """Give the best cosine of each row at *spots* with one of those at *others*, -1 without any.

    Every pair is looked at: whom the codes of a large catalog show depends on how it came to be.
    """
    rows = vectors.rows(spots)
    found = np.full(len(spots), -1, dtype=np.float32)
    for start in range(0, len(others), _BLOCK):
        told = vectors.rows(others[start : start + _BLOCK])
        # A product of matrices is quick, but rounds equal rows unequally.
        nearest = (rows @ told.T).argmax(axis=1)
        np.maximum(found, np.vecdot(rows, told[nearest]), out=found)
    return found
