"""Rows seen along the axes that tell them apart: a fifth of the numbers, nearly all of the order.

* The axes are those along which the catalog spreads most, so that of two rows the one that looks
  nearer mostly is. Who looks near is scored by its row, exactly.
* They are found once, by subspace iteration from a fixed start over a sample, and stay until the
  index is made anew: rows that come later are seen along the same axes.
* Row by row, in one thread, as the exact scan does.

After Halko, Martinsson and Tropp, *Finding structure with randomness* (2011).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gateway.search.dense.segments import Positions, joined
from gateway.search.eligible import Mask
from gateway.values import dataclass
from gateway.vectors import Matrix, Vector, best_cosine

AXES = 128
MOST_ROWS = 32_768
"""Of a longer catalog even so many numbers a row are more to read than a few hundred bits."""
_WORTH = 3
"""Rows of fewer numbers than this many times the axes gain too little."""
_SAMPLED = 2048
_TURNS = 3
SEED = 11
"""Of all that is drawn: each start draws the same."""
_AGAIN = 3
_AGAIN_LEAST = 256
"""So many rows are scored exactly for each one that is wanted, and at least so many."""


def worth(rows: Matrix) -> bool:
    """Say whether a projection of *rows* is cheaper to read than what else there is."""
    return len(rows) <= MOST_ROWS and rows.shape[1] >= _WORTH * AXES


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Projected:
    """A catalog along its axes, segment by segment."""

    mean: Vector
    """What is taken off each row first, shape (d,)."""
    axes: Matrix
    """Shape (AXES, d), at right angles."""
    parts: tuple[Matrix, ...]
    """Shape (m, AXES) each, one a segment."""

    @classmethod
    def of(cls, rows: Matrix) -> Projected:
        """Find the axes of *rows* and project them, the same at each start.

        Args:
            rows: Unit rows, shape (n, d), d >= `AXES`.
        """
        mean, axes = chief_axes(rows, AXES)
        found = cls(mean=mean, axes=axes, parts=())
        return replace(found, parts=(found.seen(rows),))

    def seen(self, rows: Matrix) -> Matrix:
        """Project *rows*, shape (n, AXES)."""
        return np.asarray(rows @ self.axes.T - self.axes @ self.mean, dtype=np.float32)

    def joined(self, added: Matrix, sizes: Sequence[int]) -> Projected:
        """Give the same with *added* behind it, in segments of these *sizes*."""
        return replace(self, parts=joined((*self.parts, self.seen(added)), sizes, axis=0))

    def wide(self, count: int) -> int:
        """Say how many rows must be scored exactly for the best *count* to be found."""
        return max(_AGAIN * count, _AGAIN_LEAST)

    def nearest(self, queries: Matrix, allowed: Mask, count: int) -> Positions:
        """Choose the *count* rows that seem nearest to one of *queries*; ties come along.

        Args:
            queries: Shape (q, d), q >= 1.
            allowed: Who may be chosen, shape (n,): at least *count* of them.
            count: How many.

        Returns:
            Where they stand, ascending.
        """
        return chosen(self.likeness(queries), allowed, count)

    def likeness(self, queries: Matrix) -> Vector:
        """Estimate the best cosine of each row over *queries*, shape (n,)."""
        # What the mean adds differs from query to query, and is the same for every row.
        found = [self._near(query) + np.dot(self.mean, query) for query in queries]
        best: Vector = found[0] if len(found) == 1 else np.maximum.reduce(found)
        return best

    def _near(self, query: Vector) -> Vector:
        short = np.vecdot(self.axes, query)
        found = [best_cosine(part, short[None]) for part in self.parts]
        return found[0] if len(found) == 1 else np.concatenate(found)


def sampled(rows: Matrix) -> Matrix:
    """Give some of *rows*, evenly from first to last: enough of them to speak for all."""
    return rows[:: max(1, len(rows) // _SAMPLED)]


def chief_axes(rows: Matrix, count: int) -> tuple[Vector, Matrix]:
    """Give the mean of *rows* and the axes along which they spread most, as a sample tells them.

    Args:
        rows: Unit rows, shape (n, d), d >= *count*.
        count: How many axes.

    Returns:
        Shape (d,) and (count, d), the axes at right angles; the same at each start.
    """
    sample = sampled(rows)
    mean = np.asarray(sample.mean(axis=0), dtype=np.float32)
    centred = sample - mean
    rng = np.random.default_rng(SEED)
    axes = rng.standard_normal((rows.shape[1], count), dtype=np.float32)
    for _ in range(_TURNS):
        axes = np.linalg.qr(centred.T @ (centred @ axes))[0]
    return mean, np.ascontiguousarray(axes.T)


def chosen(near: Vector, allowed: Mask, count: int) -> Positions:
    """Give where the *count* largest of *near* stand, of those allowed, ascending; ties too."""
    if not allowed.all():
        near = np.where(allowed, near, np.float32(-np.inf))
    return np.flatnonzero(near >= np.partition(near, -count)[-count])
