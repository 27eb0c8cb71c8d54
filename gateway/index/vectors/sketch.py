"""A large catalog seen twice along its chief axes: by bits, then by places of eight bits. Pure.

* Everybody is compared by a few bits: the sides on which a row lies along directions among the
  axes, which are turned by random signs and a Hadamard matrix. What a catalog does not spread along
  costs no bit.
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
from dataclasses import dataclass, replace

import numpy as np

from gateway.index.eligibility import Mask
from gateway.index.vectors.axes import SEED, chief_axes, sampled
from gateway.index.vectors.codes import (
    NOBODY,
    Distances,
    Planes,
    chosen,
    differing,
    hadamard,
    least,
    packed,
)
from gateway.index.vectors.segments import Positions, gathered, joined
from gateway.runtime.vectors import Matrix, NDArray, Vector

Places = NDArray[np.int8]
"""Shape (n, AXES): where each row stands along the axes, in steps."""
_BLOCK = 16
AXES = _BLOCK * _BLOCK
BITS = 256
MORE_BITS = 384
"""Of a catalog of up to `SHORT` rows more bits cost less than what they save: looking at fewer rows
again."""
SHORT = 32_768
MOST_ROWS = 262_144
"""More rows than these are not sketched."""
LEAST_LONG = 384
"""Rows of fewer numbers gain too little."""
_TURN = hadamard(_BLOCK)
"""Of a block of as many rows as columns, from both sides: a turn of all of it."""
_STEPS = 127
_ROOM = 1.25
"""How much further than anybody of the sample a row may stand before its place is cut."""
_ENCODED = 4096
"""Rows at a time where they are first seen."""
_READ = 512
"""Places at a time: what is made of them stays in the processor's cache."""
_AGAIN = 2048
"""By so many bits one row would be looked at again for each that is to be scored, and for each root
of a row; by half of them two."""
_SCORED = 3
_SCORED_LEAST = 128
_SCORED_ROOT = 0.8
"""So many rows are scored exactly for each one that is wanted, and at least so many; and so many
for each root of a row."""


def worth(rows: Matrix) -> bool:
    """Say whether *rows* are long enough, and not so many, that nothing is cheaper than a sketch.

    Of very many more bits are needed than are cheap: codes of all numbers find those for less.
    """
    return len(rows) <= MOST_ROWS and rows.shape[1] >= LEAST_LONG


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """One text, seen as the rows are."""

    short: Vector
    """Along the axes."""
    stepped: Vector
    """The same, times how long a step is."""
    code: NDArray[np.uint64]
    common: float
    """What the catalog's mean adds to its cosines; 0 if no other text is held against it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sketched:
    """A catalog along its axes, segment by segment."""

    mean: Vector
    """What is taken off each row first, shape (d,)."""
    axes: Matrix
    """Shape (AXES, d), at right angles."""
    signs: Matrix
    """What the axes are multiplied by before each turn, 1 or -1, shape (turns, AXES)."""
    bits: int
    """How many of what the turns give are told by their signs, a multiple of 64."""
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
        bits = MORE_BITS if len(rows) <= SHORT else BITS
        turns = -(-bits // AXES), AXES
        signs = np.random.default_rng(SEED).choice(np.asarray([-1, 1], dtype=np.float32), turns)
        sample = (sampled(rows) - mean) @ axes.T
        furthest = _ROOM * np.abs(sample).max(axis=0)
        found = cls(
            mean=mean,
            axes=axes,
            signs=signs,
            bits=bits,
            steps=np.maximum(furthest / _STEPS, np.finfo(np.float32).tiny),
            planes=(),
            places=(),
        )
        return found.joined(rows, [len(rows)])

    @property
    def size(self) -> int:
        """How many rows there are."""
        return sum(map(len, self.places))

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
        return max(_SCORED * count, _SCORED_LEAST, round(_SCORED_ROOT * math.sqrt(self.size)))

    def nearest(
        self, queries: Matrix, allowed: Mask | None, count: int, *, clauses: Matrix, weight: float
    ) -> Positions:
        """Choose the *count* rows that seem nearest; ties come along.

        Args:
            queries: Texts of which the best one counts, shape (q, d), q >= 1.
            allowed: Who may be chosen, shape (n,): at least *count* of them; None for all.
            count: How many.
            clauses: Texts of which the best one counts besides, shape (c, d); may be empty.
            weight: How much it counts.

        Returns:
            Where they stand, ascending.
        """
        texts, parts = self._seen(queries), self._seen(clauses)
        spots = self._by_bits(texts, parts, weight, allowed, self._again(count))
        told = np.empty(len(spots), dtype=np.float32)
        # One room for all of them: new memory is slower to write than what was just read.
        room = np.empty((min(_READ, len(spots)), AXES), dtype=np.float32)
        for start in range(0, len(spots), _READ):
            part = slice(start, start + _READ)
            places = room[: len(told[part])]
            np.copyto(places, gathered(self.places, spots[part], axis=0))
            told[part] = _by_places(texts, places)
            if parts:
                told[part] += np.float32(weight) * _by_places(parts, places)
        return spots[chosen(told, None, count)]

    def _again(self, count: int) -> int:
        return round(_AGAIN / self.bits * max(count, math.sqrt(self.size)))

    def _by_bits(
        self,
        texts: Sequence[_Seen],
        parts: Sequence[_Seen],
        weight: float,
        allowed: Mask | None,
        count: int,
    ) -> Positions:
        """Choose the *count* rows that look nearest by their bits; see `nearest`."""
        if parts:
            near = self._likeness(texts) + np.float32(weight) * self._likeness(parts)
            return chosen(near, allowed, count)
        distances = [self._distances(each) for each in texts]
        far = distances[0] if len(distances) == 1 else np.minimum.reduce(distances)
        if allowed is not None:
            far[~allowed] = NOBODY
        return least(far, count)

    def _sketch(self, rows: Matrix) -> tuple[Planes, Places]:
        planes = np.empty((self.bits // 64, len(rows)), dtype=np.uint64)
        places = np.empty((len(rows), AXES), dtype=np.int8)
        for start in range(0, len(rows), _ENCODED):
            part = slice(start, start + _ENCODED)
            short = np.asarray((rows[part] - self.mean) @ self.axes.T, dtype=np.float32)
            planes[:, part] = packed(self._turned(short) > 0)
            places[part] = np.clip(np.rint(short / self.steps), -_STEPS, _STEPS)
        return planes, places

    def _seen(self, texts: Matrix) -> list[_Seen]:
        # The mean stays on them: what it adds to a row's cosine, it adds to every row's.
        shorts = [np.vecdot(self.axes, text) for text in texts]
        return [
            _Seen(
                short=short,
                stepped=short * self.steps,
                code=np.packbits(self._turned(short[None]) > 0).view(np.uint64),
                common=float(np.dot(self.mean, text)) if len(texts) > 1 else 0.0,
            )
            for text, short in zip(texts, shorts, strict=True)
        ]

    def _turned(self, shorts: Matrix) -> Matrix:
        """Turn places along the axes, shape (n, AXES), to the directions of the bits."""
        blocks = (shorts[:, None] * self.signs).reshape(-1, _BLOCK, _BLOCK)
        turned: Matrix = np.matmul(np.matmul(_TURN, blocks), _TURN).reshape(len(shorts), -1)
        return turned[:, : self.bits]

    def _distances(self, text: _Seen) -> Distances:
        parts = [differing(part, text.code) for part in self.planes]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _likeness(self, texts: Sequence[_Seen]) -> Vector:
        """Estimate everybody's best cosine over *texts*, but for the length of its row."""
        turns = np.cos(np.pi / self.bits * np.arange(self.bits + 1)).astype(np.float32)
        near = [turns[self._distances(each)] * np.linalg.norm(each.short) for each in texts]
        best: Vector = np.maximum.reduce(near)
        return best


def _by_places(texts: Sequence[_Seen], places: Matrix) -> Vector:
    """Estimate the best cosine over *texts* of those at *places*, but for what all have alike."""
    if len(texts) == 1:
        alone: Vector = np.vecdot(places, texts[0].stepped)
        return alone
    several = [np.vecdot(places, each.stepped) + each.common for each in texts]
    best: Vector = np.maximum.reduce(several)
    return best
