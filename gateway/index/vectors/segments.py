"""Rows that come and go: their sum, a sample of them, and the segments they are kept in. Pure.

Nothing here tells in which order the rows came, so that an index that was changed is one that was
made anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from gateway.runtime.vectors import Matrix, NDArray, Vector

Positions = NDArray[np.intp]
T = TypeVar("T", bound=np.generic)
SAMPLE = 256
"""Rows that stand for a large catalog where its mean and spread are asked for."""
_LOT_NUMBERS = 16
"""So many of a row's numbers tell it apart where lots are drawn."""
_CHUNK = 4096
_UNIT = float(1 << 40)
"""Rows are summed in multiples of one part of this."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Mean:
    """The sum of rows in whole numbers: what is added can be taken off again to the last bit."""

    sums: NDArray[np.int64]
    """Shape (d,)."""
    count: int
    """How many rows are no zeros."""

    @classmethod
    def of(cls, rows: Matrix) -> Mean:
        """Sum *rows*, shape (n, d)."""
        sums = np.zeros(rows.shape[1], dtype=np.int64)
        for start in range(0, len(rows), _CHUNK):
            part = rows[start : start + _CHUNK].astype(np.float64) * _UNIT
            sums += np.rint(part).astype(np.int64).sum(axis=0)
        return cls(sums=sums, count=int(np.count_nonzero(rows.any(axis=1))))

    def changed(self, gone: Matrix, new: Matrix) -> Mean:
        """Give the same without some rows and with others."""
        less, more = Mean.of(gone), Mean.of(new)
        return Mean(
            sums=self.sums - less.sums + more.sums, count=self.count - less.count + more.count
        )

    @property
    def row(self) -> Vector:
        """The mean row, shape (d,); zeros for no rows."""
        return self.over(self.count)

    def over(self, count: int) -> Vector:
        """Give the mean of *count* rows, of which those that are zeros count too, shape (d,)."""
        return np.asarray(self.sums / (_UNIT * max(count, 1)), dtype=np.float32)


def lots(rows: Matrix) -> NDArray[np.uint64]:
    """Give what each row draws by its numbers, shape (n,): equal rows draw the same."""
    bits = np.ascontiguousarray(rows[:, :_LOT_NUMBERS]).view(np.uint32).astype(np.uint64)
    factors = np.random.default_rng(0).integers(1 << 63, size=bits.shape[1], dtype=np.uint64)
    found = (bits * (2 * factors + np.uint64(1))).sum(axis=1, dtype=np.uint64)
    return np.asarray(found ^ (found >> np.uint64(29)), dtype=np.uint64)


def drawn(tickets: NDArray[np.uint64], slots: Positions) -> Positions:
    """Give the `SAMPLE` of *slots* that drew least, by what they drew."""
    luck = tickets[slots]
    if len(slots) > SAMPLE:
        least = np.argpartition(luck, SAMPLE)[:SAMPLE]
        slots, luck = slots[least], luck[least]
    return slots[np.argsort(luck, kind="stable")]


def merged(sizes: list[int]) -> list[int]:
    """Say how large segments are when small ones behind each other are joined."""
    while len(sizes) > 1 and sizes[-2] <= 2 * sizes[-1]:
        sizes[-2:] = [sizes[-2] + sizes[-1]]
    return [size for size in sizes if size]


def joined(
    parts: tuple[NDArray[T], ...], sizes: Sequence[int], *, axis: int
) -> tuple[NDArray[T], ...]:
    """Join neighbouring *parts* to parts of these *sizes*; what is whole is not copied."""
    found: list[NDArray[T]] = []
    left = list(parts)
    for size in sizes:
        taken = [left.pop(0)]
        while sum(part.shape[axis] for part in taken) < size:
            taken.append(left.pop(0))
        found.append(taken[0] if len(taken) == 1 else np.concatenate(taken, axis=axis))
    return tuple(found)


def gathered(parts: tuple[NDArray[T], ...], spots: Positions, *, axis: int) -> NDArray[T]:
    """Give what stands at *spots*, ascending, of *parts* behind each other."""
    if len(parts) == 1:
        return parts[0].take(spots, axis=axis)
    found: list[NDArray[T]] = []
    start = 0
    for part in parts:
        first, last = spots.searchsorted([start, start + part.shape[axis]])
        found.append(part.take(spots[first:last] - start, axis=axis))
        start += part.shape[axis]
    return np.concatenate(found, axis=axis)
