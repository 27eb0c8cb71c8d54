"""How near to a boast each tool of a catalog is, and who vouches for it.

A boast says that a tool is good for every request. What lists, cancels or deletes everything of a
kind ("Get all users") is near to one too, as it speaks of all. Unlike a boast it has siblings:
tools of its own server that do nearly the same for one of the kind ("Get user"), and that are far
from any boast. What wants to be found for every request is like nothing else of a catalog, and
tools that boast do not vouch for each other.
"""

from __future__ import annotations

import numpy as np

from gateway.embed.yardstick import Yardstick
from gateway.search.dense.mates import Mates
from gateway.search.dense.scan import VectorIndex
from gateway.search.dense.segments import Positions
from gateway.vectors import Vector, best_cosine
from graphs.arrays import Moves

SUSPECT = 1.3
"""How near to a boast a vector may be, on the model's scale, without seeming to boast."""
_HONEST = 1.0
"""Who is nearer to a boast than this vouches for nobody."""
_KIN, _SIBLING = 3.3, 3.7
"""How near a tool must be to vouch a little, and to vouch in full, on the model's scale. Of 140
tools that were invented to be found for everything none is nearer than the first to any of 8,700
honest ones."""
_NEIGHBOURS = 256
"""Of a larger server so many tools are asked: those next to it in the order of names."""


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
    suspects = np.flatnonzero(boasts > SUSPECT)
    if not len(suspects):
        return boasts
    found = boasts.copy()
    honest = boasts <= _HONEST
    for suspect in suspects.tolist():
        near = _nearest(suspect, _asked(suspect, honest, mates), vectors, yardstick)
        doubt = min(max((_SIBLING - near) / (_SIBLING - _KIN), 0.0), 1.0)
        found[suspect] = SUSPECT + doubt * (boasts[suspect] - SUSPECT)
    return found


def _asked(suspect: int, honest: np.ndarray, mates: Mates | None) -> Positions:
    """Give the positions of the honest tools of its server, the next ones of a large one."""
    own = honest if mates is None else honest & (mates.numbers == mates.numbers[suspect])
    spots: Positions = np.flatnonzero(own)
    if len(spots) <= _NEIGHBOURS:
        return spots
    middle = int(np.searchsorted(spots, suspect)) - _NEIGHBOURS // 2
    start = min(max(middle, 0), len(spots) - _NEIGHBOURS)
    return spots[start : start + _NEIGHBOURS]


def _nearest(suspect: int, spots: Positions, vectors: VectorIndex, yardstick: Yardstick) -> float:
    """Say how near the nearest of *spots* is, on the model's scale; 0 if there is none."""
    if not len(spots):
        return 0.0
    own = vectors.rows(np.asarray([suspect]))
    return yardstick.nearness(float(best_cosine(vectors.rows(spots), own).max()))
