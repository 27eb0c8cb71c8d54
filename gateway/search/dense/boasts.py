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
from gateway.search.dense.scan import Question, VectorIndex
from gateway.search.dense.segments import Positions
from gateway.search.eligible import Mask
from gateway.vectors import Vector, best_cosine
from graphs.arrays import Moves

SUSPECT = 1.3
"""How near to a boast a vector may be, on the model's scale, without seeming to boast."""
_HONEST = 1.1
"""Who is nearer to a boast than this vouches for nobody."""
_KIN, _SIBLING = 3.3, 3.7
"""How near a tool must be to vouch a little, and to vouch in full, on the model's scale. Of 87
tools that were invented to be found for everything, and seem to boast, the nearest to any of 8,456
honest ones is at 3.2, and at 3.4 if its text is made of theirs."""


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
        own = honest if mates is None else honest & (mates.numbers == mates.numbers[suspect])
        near = _nearest(suspect, vectors, own, yardstick)
        doubt = min(max((_SIBLING - near) / (_SIBLING - _KIN), 0.0), 1.0)
        found[suspect] = SUSPECT + doubt * (boasts[suspect] - SUSPECT)
    return found


def _nearest(suspect: int, vectors: VectorIndex, allowed: Mask, yardstick: Yardstick) -> float:
    """Say how near the nearest of the *allowed* is, on the model's scale; 0 if there is none."""
    own = vectors.rows(np.asarray([suspect]))
    found = vectors.search(Question(texts=own, clauses=own[:0]), mask=allowed, count=1)
    return yardstick.nearness(float(found.cosines[0])) if len(found.cosines) else 0.0
