"""A long catalog seen twice along its chief axes: by bits, then by places of eight bits. Pure.

* Everybody is compared by a few bits: the sides on which a row lies along directions drawn among
  the axes. What a catalog does not spread along costs no bit.
* Who looks near by them is looked at again by where it stands along the axes, in steps of a 127th;
  who then looks near is scored by its row, exactly.
* Axes, directions and steps are found once and stay until the index is made anew: rows that come
  later are seen by them too.

After Gong and Lazebnik, *Iterative quantization: a Procrustean approach to learning binary codes*
(2011), without the iteration: a drawn turn does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gateway.search.dense.codes import NOBODY, Distances, Planes, differing, least, packed
from gateway.search.dense.projected import MOST_ROWS, SEED, chief_axes, chosen, sampled
from gateway.search.dense.segments import Positions, gathered, joined
from gateway.search.eligible import Mask
from gateway.values import dataclass
from gateway.vectors import Matrix, Vector

Places = NDArray[np.int8]
"""Shape (n, AXES): where each row stands along the axes, in steps."""
AXES = 192
BITS = 256
_VERY_MANY = 8 * MOST_ROWS
"""More rows than these are not sketched."""
_WORTH = 2
"""Rows of fewer numbers than this many times the axes gain too little."""
_STEPS = 127
_ROOM = 1.25
"""How much further than anybody of the sample a row may stand before its place is cut."""
_ENCODED = 4096
"""Rows at a time where they are first seen."""
_AGAIN = 4
_AGAIN_ROOT = 8
"""So many rows are looked at again for each that is to be scored, and for each root of a row."""
_SCORED = 4
_SCORED_LEAST = 384
"""So many rows are scored exactly for each one that is wanted, and at least so many."""


def long(rows: Matrix) -> bool:
    """Say whether *rows* are so many, and so long, that a sketch is cheaper than what else is.

    Of very many more bits are needed than are cheap: codes of all numbers find those for less.
    """
    return MOST_ROWS < len(rows) <= _VERY_MANY and rows.shape[1] >= _WORTH * AXES


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """One text, seen as the rows are."""

    short: Vector
    """Along the axes."""
    code: NDArray[np.uint64]
    common: float
    """What the catalog's mean adds to its cosines."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sketched:
    """A catalog along its axes, segment by segment."""

    mean: Vector
    """What is taken off each row first, shape (d,)."""
    axes: Matrix
    """Shape (AXES, d), at right angles."""
    turn: Matrix
    """The directions of the bits, drawn among the axes, shape (AXES, BITS)."""
    steps: Vector
    """How long a step is along each axis, shape (AXES,)."""
    planes: tuple[Planes, ...]
    places: tuple[Places, ...]

    @classmethod
    def of(cls, rows: Matrix) -> Sketched:
        """Find the axes of *rows* and see these along them, the same at each start.

        Args:
            rows: Unit rows, shape (n, d), d >= `AXES`.
        """
        mean, axes = chief_axes(rows, AXES)
        rng = np.random.default_rng(SEED)
        turns = [np.linalg.qr(rng.standard_normal((AXES, AXES)))[0] for _ in range(0, BITS, AXES)]
        sample = (sampled(rows) - mean) @ axes.T
        furthest = _ROOM * np.abs(sample).max(axis=0)
        found = cls(
            mean=mean,
            axes=axes,
            turn=np.concatenate(turns, axis=1)[:, :BITS].astype(np.float32),
            steps=np.maximum(furthest / _STEPS, np.finfo(np.float32).tiny),
            planes=(),
            places=(),
        )
        return found.joined(rows, [len(rows)])

    @property
    def size(self) -> int:
        """How many rows there are."""
        return sum(len(part) for part in self.places)

    def joined(self, added: Matrix, sizes: Sequence[int]) -> Sketched:
        """Give the same with *added* behind it, in segments of these *sizes*."""
        planes, places = self._sketch(added)
        return replace(
            self,
            planes=joined((*self.planes, planes), sizes, axis=1),
            places=joined((*self.places, places), sizes, axis=0),
        )

    def wide(self, count: int) -> int:
        """Say how many rows must be scored exactly for the best *count* to be found."""
        return max(_SCORED * count, _SCORED_LEAST)

    def nearest(
        self, queries: Matrix, allowed: Mask, count: int, *, clauses: Matrix, weight: float
    ) -> Positions:
        """Choose the *count* rows that seem nearest; ties come along.

        Args:
            queries: Texts of which the best one counts, shape (q, d), q >= 1.
            allowed: Who may be chosen, shape (n,): at least *count* of them.
            count: How many.
            clauses: Texts of which the best one counts besides, shape (c, d); may be empty.
            weight: How much it counts.

        Returns:
            Where they stand, ascending.
        """
        texts, parts = self._seen(queries), self._seen(clauses)
        again = max(_AGAIN * count, round(_AGAIN_ROOT * math.sqrt(self.size)))
        if parts:
            near = self._by_bits(texts) + np.float32(weight) * self._by_bits(parts)
            spots = chosen(near, allowed, min(again, int(np.count_nonzero(allowed))))
        else:
            far = np.minimum.reduce([self._distances(each) for each in texts])
            if not allowed.all():
                far[~allowed] = NOBODY
            spots = least(far, again)
        places = gathered(self.places, spots, axis=0).astype(np.float32)
        told = self._by_places(texts, places)
        if parts:
            told += np.float32(weight) * self._by_places(parts, places)
        return spots[chosen(told, np.ones(len(spots), dtype=np.bool_), min(count, len(spots)))]

    def _sketch(self, rows: Matrix) -> tuple[Planes, Places]:
        planes = np.empty((BITS // 64, len(rows)), dtype=np.uint64)
        places = np.empty((len(rows), AXES), dtype=np.int8)
        for start in range(0, len(rows), _ENCODED):
            part = slice(start, start + _ENCODED)
            short = (rows[part] - self.mean) @ self.axes.T
            planes[:, part] = packed(short @ self.turn > 0)
            places[part] = np.clip(np.rint(short / self.steps), -_STEPS, _STEPS)
        return planes, places

    def _seen(self, texts: Matrix) -> list[_Seen]:
        # The mean stays on them: what it adds to a row's cosine, it adds to every row's.
        shorts = [np.vecdot(self.axes, text) for text in texts]
        return [
            _Seen(
                short=short,
                code=packed((short @ self.turn > 0)[None])[:, 0],
                common=float(np.dot(self.mean, text)),
            )
            for text, short in zip(texts, shorts, strict=True)
        ]

    def _distances(self, text: _Seen) -> Distances:
        parts = [differing(part, text.code) for part in self.planes]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _by_bits(self, texts: Sequence[_Seen]) -> Vector:
        """Estimate everybody's best cosine over *texts*, but for the length of its row."""
        turns = np.cos(np.pi / BITS * np.arange(BITS + 1)).astype(np.float32)
        near = [turns[self._distances(each)] * np.linalg.norm(each.short) for each in texts]
        best: Vector = np.maximum.reduce(near)
        return best

    def _by_places(self, texts: Sequence[_Seen], places: Matrix) -> Vector:
        """Estimate the best cosine over *texts* of those who stand at *places*."""
        found = [np.vecdot(places, each.short * self.steps) + each.common for each in texts]
        best: Vector = found[0] if len(found) == 1 else np.maximum.reduce(found)
        return best
