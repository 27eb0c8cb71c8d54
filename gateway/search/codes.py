"""Compact codes: one bit a dimension, so that a large catalog is scanned at memory's speed. Pure.

* A row's code says on which side of the catalog's mean it lies along each of many directions. Rows
  that differ in few bits point the same way; which ones do is found without reading the rows.
* The directions are turned at random, block by block, so that a model whose vectors are sparse, or
  lie along a few axes, is told apart as well as another.
* Codes only choose whom to look at. Who is looked at is scored by its row, exactly.

After Charikar, *Similarity estimation techniques from rounding algorithms* (2002).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gateway.search.eligible import Mask
from gateway.vectors import Matrix, Vector

Planes = NDArray[np.uint64]
"""Shape (words, n): 64 bits of every row after one another, so that a scan reads in order."""
Positions = NDArray[np.intp]
Distances = NDArray[np.uint16]
"""Shape (n,): how many bits differ."""
_BLOCK = 64
"""Dimensions that are turned together: a power of two, and one word of a code."""
_LEAST_BITS = 512
"""Short vectors are turned several ways: fewer bits than this tell too little apart."""
_CHUNK = 32_768
"""Rows at a time: what is between two steps stays in the processor's cache."""
_SEED = 11
_WIDE = 3000
_LEAST_SEEN = 64


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Coder:
    """Gives rows their codes. Equal coders give equal codes."""

    mean: Vector
    """What is taken off each row first, shape (d,)."""
    order: NDArray[np.intp]
    """The dimensions, shuffled, as often as they are turned; padded with d, which stands for 0."""
    turns: NDArray[np.float32]
    """One orthogonal matrix a block, shape (words, 64, 64)."""

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
        noise = rng.standard_normal((len(order) // _BLOCK, _BLOCK, _BLOCK))
        # A step through the catalog is as good a sample as a draw, and needs no second pass.
        sample = rows[:: max(1, len(rows) // _CHUNK)]
        real = sample[sample.any(axis=1)]
        mean = real.mean(axis=0) if len(real) else np.zeros(size)
        return cls(
            mean=mean.astype(np.float32),
            order=order.astype(np.intp),
            turns=np.linalg.qr(noise)[0].astype(np.float32),
        )

    def encode(self, rows: Matrix) -> Planes:
        """Give the codes of *rows*, shape (words, n)."""
        planes = np.empty((len(self.turns), len(rows)), dtype=np.uint64)
        for start in range(0, len(rows), _CHUNK):
            part = rows[start : start + _CHUNK]
            planes[:, start : start + len(part)] = self.turn(part - self.mean)
        return planes

    def turn(self, rows: Matrix) -> Planes:
        """Give the codes of *rows* from which the mean was not taken off, shape (words, n)."""
        # A dimension more, always 0, for the padding.
        padded = np.zeros((len(rows), rows.shape[1] + 1), dtype=np.float32)
        padded[:, :-1] = rows
        blocks = np.take(padded, self.order, axis=1).reshape(len(rows), -1, _BLOCK)
        turned = np.matmul(blocks.transpose(1, 0, 2), self.turns)
        return np.packbits(turned > 0, axis=2).view(np.uint64)[:, :, 0]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Codes:
    """The codes of a catalog, segment by segment."""

    coder: Coder
    planes: tuple[Planes, ...]
    """One array a segment."""

    def nearest(self, query: Vector, allowed: Mask, count: int) -> Positions:
        """Choose about *count* rows that seem nearest to *query*, ascending; ties come along.

        Args:
            query: Shape (d,).
            allowed: Who may be chosen, shape (n,): at least *count* of them.
            count: How many.
        """
        (far,) = self._distances(query[None])
        nobody = int(np.iinfo(far.dtype).max)
        far[~allowed] = nobody
        # Of a long list, a part tells well enough where the line is.
        step = max(1, count // _LEAST_SEEN)
        last = int(np.partition(far[::step], count // step - 1)[count // step - 1])
        return np.flatnonzero(far <= min(last, nobody - 1))

    def likeness(self, queries: Matrix) -> Vector:
        """Estimate the best cosine of each row over *queries*, shape (n,)."""
        bits = 64 * len(self.coder.turns)
        cosines = np.cos(np.pi / bits * np.arange(bits + 1)).astype(np.float32)
        return np.asarray(cosines[np.minimum.reduce(self._distances(queries))], dtype=np.float32)

    def wide(self) -> int:
        """Say how many rows must be scored exactly for the best ten to be among them.

        The more rows there are, the more look near that are not; the more bits, the fewer.
        """
        size = sum(part.shape[1] for part in self.planes)
        return round(_WIDE / (64 * len(self.coder.turns)) * math.sqrt(size))

    def _distances(self, queries: Matrix) -> list[Distances]:
        # The mean stays on the query: what it adds to a row's cosine, it adds to every row's.
        codes = np.ascontiguousarray(self.coder.turn(queries).T)
        return [np.concatenate([_differing(part, code) for part in self.planes]) for code in codes]


def _differing(planes: Planes, code: NDArray[np.uint64]) -> Distances:
    words, size = planes.shape
    found = np.zeros(size, dtype=np.uint16)
    differing = np.empty(min(size, _CHUNK), dtype=np.uint64)
    counts = np.empty(min(size, _CHUNK), dtype=np.uint8)
    for start in range(0, size, _CHUNK):
        total = found[start : start + _CHUNK]
        bits, count = differing[: len(total)], counts[: len(total)]
        for word in range(words):
            np.bitwise_xor(planes[word, start : start + _CHUNK], code[word], out=bits)
            np.bitwise_count(bits, out=count)
            np.add(total, count, out=total)
    return found
