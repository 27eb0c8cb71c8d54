"""Compact codes: one bit a dimension, so that a large catalog is scanned at memory's speed. Pure.

* A row's code says on which side of the catalog's mean it lies along each of many directions. Rows
  that differ in few bits point the same way; which ones do is found without reading the rows.
* The directions are turned, block by block, by random signs and a Hadamard matrix, so that a model
  whose vectors are sparse, or lie along a few axes, is told apart as well as another.
* A query is known better than by its signs: whoever looks near by the first bits is looked at
  again by all of them, with the query's in two binary places.
* Codes only choose whom to look at. Who is looked at is scored by its row, exactly.

After Charikar, *Similarity estimation techniques from rounding algorithms* (2002), and, for the
query's places, Gao and Long, *RaBitQ* (2024).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gateway.index.eligibility import Mask
from gateway.index.vectors.segments import Positions, gathered, joined
from gateway.runtime.vectors import Matrix, NDArray, Vector, placed

Planes = NDArray[np.uint64]
"""Shape (words, n): 64 bits of every row after one another, so that a scan reads in order."""
Distances = NDArray[np.uint16]
"""Shape (n,): how many bits differ."""
_BLOCK = 64
"""Dimensions that are turned together: a power of two, and one word of a code."""
_LEAST_BITS = 512
"""Short vectors are turned several ways: fewer bits than this tell too little apart."""
_CHUNK = 16_384
"""Rows at a time: what is between two steps stays in the processor's cache."""
_ENCODED = 4096
"""Rows at a time where codes are made."""
_SAMPLED = 32_768
"""Of a long catalog, so many rows tell its mean."""
_SEED = 11
_ALL = 1024
_FIRST = 384
"""Of a catalog of up to so many rows as `_SAMPLED`, every row is looked at by this many of its
bits; of a longer one, by fewer."""
_AGAIN = 4
_AGAIN_ROOT = 5
"""So many rows are looked at again for each that is wanted, and for each root of a row."""
_WIDE = 600
_RESCORED = 4
_RESCORED_LEAST = 512
"""So many rows are scored exactly for each one that is wanted, and at least so many."""
_LEAST_SEEN = 64


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Coder:
    """Gives rows their codes. Equal coders give equal codes."""

    mean: Vector
    """What is taken off each row first, shape (d,)."""
    order: NDArray[np.intp]
    """The dimensions, shuffled, as often as they are turned; padded with d, which stands for 0."""
    signs: Vector
    """What each of them is turned by first, 1 or -1; shape (words * 64,)."""
    turn: Matrix
    """A Hadamard matrix: what a block is turned by then, shape (64, 64)."""

    @classmethod
    def of(cls, rows: Matrix) -> Coder:
        """Make the coder of a catalog, the same at each start.

        Args:
            rows: Unit rows, shape (n, d), n >= 1; the mean is that of those that are not zeros.
        """
        size = rows.shape[1]
        whole = -(-size // _BLOCK) * _BLOCK
        ways = max(1, -(-_LEAST_BITS // whole))
        rng = np.random.default_rng(_SEED)
        padded = np.concatenate([np.arange(size), np.full(whole - size, size)])
        order = np.concatenate([rng.permutation(padded) for _ in range(ways)])
        signs = rng.choice(np.asarray([-1, 1], dtype=np.float32), len(order))
        # A step through the catalog is as good a sample as a draw, and needs no second pass.
        sample = rows[:: max(1, len(rows) // _SAMPLED)]
        real = sample[sample.any(axis=1)]
        mean = real.mean(axis=0) if len(real) else np.zeros(size)
        return cls(
            mean=mean.astype(np.float32),
            order=order.astype(np.intp),
            signs=signs,
            turn=hadamard(_BLOCK),
        )

    @property
    def words(self) -> int:
        """How many words a code has."""
        return len(self.order) // _BLOCK

    def encode(self, rows: Matrix) -> Planes:
        """Give the codes of *rows*, shape (words, n)."""
        planes = np.empty((self.words, len(rows)), dtype=np.uint64)
        for start in range(0, len(rows), _ENCODED):
            part = rows[start : start + _ENCODED]
            turned = self.turned(part - self.mean)
            planes[:, start : start + len(part)] = packed(turned > 0)
        return planes

    def turned(self, rows: Matrix) -> Matrix:
        """Turn *rows*, from which the mean was not taken off; shape (n, words * 64)."""
        if rows.shape[1] % _BLOCK:
            # A dimension more, always 0, for the padding.
            rows = np.pad(rows, ((0, 0), (0, 1)))
        shuffled = rows.take(self.order, axis=1)
        shuffled *= self.signs
        turned: Matrix = np.matmul(shuffled.reshape(-1, _BLOCK), self.turn)
        return turned.reshape(shuffled.shape)

    def places(self, queries: Matrix) -> tuple[Planes, Planes]:
        """Give the two binary places of *queries* along each direction, the higher one first.

        The higher is the sign, as in the codes of rows; the lower says, among those of a sign,
        which are the larger numbers. Shape (words, queries) each.
        """
        # The mean stays on the query: what it adds to a row's cosine, it adds to every row's.
        turned = self.turned(queries)
        spread = np.sqrt(np.vecdot(turned, turned)[:, None] / np.float32(turned.shape[1]))
        above = turned > 0
        return packed(above), packed((np.abs(turned) > spread) == above)


def hadamard(size: int) -> Matrix:
    """Give what turns *size* numbers, a power of two, but for their length; shape (size, size)."""
    found = np.ones((1, 1), dtype=np.float32)
    while len(found) < size:
        found = np.block([[found, found], [found, -found]])
    return found


def packed(bits: NDArray[np.bool_]) -> Planes:
    """Give rows of *bits*, shape (n, words * 64), word by word."""
    return np.ascontiguousarray(np.packbits(bits, axis=1).view(np.uint64).T)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Codes:
    """The codes of a catalog, segment by segment."""

    coder: Coder
    planes: tuple[Planes, ...]
    """One array a segment."""

    @property
    def size(self) -> int:
        """How many rows there are."""
        return sum(part.shape[1] for part in self.planes)

    def nearest(self, queries: Matrix, allowed: Mask | None, count: int) -> Positions:
        """Choose about *count* rows that seem nearest to one of *queries*; ties come along.

        Args:
            queries: Shape (q, d), q >= 1.
            allowed: Who may be chosen, shape (n,): at least *count* of them; None for all.
            count: How many.

        Returns:
            Where they stand, ascending.
        """
        high, low = self.coder.places(queries)
        size = self.size
        first = (_ALL if size <= _SAMPLED else _FIRST) // _BLOCK
        far = np.minimum.reduce([self._distances(code[:first]) for code in high.T])
        if allowed is not None:
            far[~allowed] = NOBODY
        again = max(_AGAIN * count, round(_AGAIN_ROOT * math.sqrt(size)))
        spots = least(far, again)
        planes = self._at(spots)
        told = [
            2 * differing(planes, one) + differing(planes, two)
            for one, two in zip(high.T, low.T, strict=True)
        ]
        return spots[least(np.minimum.reduce(told), count)]

    def likeness(self, queries: Matrix) -> Vector:
        """Estimate the best cosine of each row over *queries*, shape (n,)."""
        bits = _BLOCK * self.coder.words
        cosines = np.cos(np.pi / bits * np.arange(bits + 1)).astype(np.float32)
        high, _ = self.coder.places(queries)
        far = np.minimum.reduce([self._distances(code) for code in high.T])
        return np.asarray(cosines[far], dtype=np.float32)

    def joined(self, added: Matrix, sizes: Sequence[int]) -> Codes:
        """Give the same with *added* behind it, in segments of these *sizes*."""
        planes = joined((*self.planes, self.coder.encode(added)), sizes, axis=1)
        return replace(self, planes=planes)

    def wide(self, count: int) -> int:
        """Say how many rows must be scored exactly for the best *count* to be found.

        The more rows there are, the more look near that are not; the more bits, the fewer.
        """
        enough = round(_WIDE / (_BLOCK * self.coder.words) * math.sqrt(self.size))
        return max(_RESCORED * count, _RESCORED_LEAST, enough)

    def _distances(self, code: NDArray[np.uint64]) -> Distances:
        """Give how far everybody is by the first words, those of *code*."""
        parts = [differing(part[: len(code)], code[: len(part)]) for part in self.planes]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _at(self, spots: Positions) -> Planes:
        """Give the codes of the rows at *spots*, ascending."""
        return gathered(self.planes, spots, axis=1)


NOBODY = int(np.iinfo(np.uint16).max)
"""How far those are who may not be chosen."""


def least(far: Distances, count: int) -> Positions:
    """Give where about *count* of the least distances below `NOBODY` are, ascending; ties too."""
    if count >= len(far):
        return np.flatnonzero(far < NOBODY)
    # Of a long list, a part tells well enough where the line is.
    step = max(1, count // _LEAST_SEEN) if len(far) > _CHUNK else 1
    last = int(placed(far[::step], count // step - 1))
    return (far <= min(last, NOBODY - 1)).nonzero()[0]


def chosen(near: Vector, allowed: Mask | None, count: int) -> Positions:
    """Give where the *count* largest of *near* stand, of those allowed, ascending; ties too."""
    count = min(count, len(near) if allowed is None else int(np.count_nonzero(allowed)))
    if allowed is not None:
        near = np.where(allowed, near, np.float32(-np.inf))
    return (near >= placed(near, len(near) - count)).nonzero()[0]


def differing(planes: Planes, code: NDArray[np.uint64]) -> Distances:
    """Give in how many bits each row differs from *code*, a word a plane; shape (n,)."""
    words, size = planes.shape
    found = np.empty(size, dtype=np.uint16)
    chunk = min(size, _CHUNK)
    differing, counts = np.empty((words, chunk), np.uint64), np.empty((words, chunk), np.uint8)
    for start in range(0, size, _CHUNK):
        part = planes[:, start : start + _CHUNK]
        bits, count = differing[:, : part.shape[1]], counts[:, : part.shape[1]]
        np.bitwise_xor(part, code[:, None], out=bits)
        np.bitwise_count(bits, out=count)
        np.add.reduce(count, axis=0, dtype=np.uint16, out=found[start : start + _CHUNK])
    return found
