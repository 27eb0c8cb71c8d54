"""Query vectors -> candidates and the semantic window. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gateway.index.eligibility import Mask, Positions
from gateway.index.vectors import ScanResult, VectorIndex, VectorQuery
from gateway.options import SearchOptions
from gateway.runtime.vectors import Vector


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Candidates:
    """The entities nearest to one query."""

    index: VectorIndex
    vectors: VectorQuery
    """The query's."""
    scan: ScanResult
    window: frozenset[int]
    """Positions that supplements may come from: the head of the pool, bounded by rank and score."""

    @property
    def pool(self) -> Positions:
        """The positions of the nearest eligible entities, best first."""
        return self.scan.pool

    @property
    def strengths(self) -> Vector:
        """What the pool is ranked by: cosines, with those of a long request's best clause."""
        return self.scan.strengths

    @property
    def deviations(self) -> Vector:
        """The strengths in deviations from the mean of all eligible entities."""
        return self._deviations(self.scan.strengths)

    def deviations_at(self, positions: Positions) -> Vector:
        """Return the same for *positions*, in the pool or not, shape (len(positions),)."""
        return self._deviations(self.strengths_at(positions))

    def strengths_at(self, positions: Positions) -> Vector:
        """Return the exact strength at *positions*, in the pool or not, shape (len(positions),)."""
        return self._scores_at(positions)[1]

    def cosines(self, positions: Sequence[int]) -> list[float]:
        """Return the exact best cosine over the query's texts at *positions*, -1 to 1."""
        in_pool = zip(self.scan.pool.tolist(), self.scan.cosines.tolist(), strict=True)
        cosines = dict(in_pool) if self.scan.dense is None else {}
        if others := [position for position in positions if position not in cosines]:
            exact = self._scores_at(np.asarray(others, dtype=np.intp))[0].tolist()
            cosines.update(zip(others, exact, strict=True))
        return [cosines[position] for position in positions]

    def _scores_at(self, positions: Positions) -> tuple[Vector, Vector]:
        if self.scan.dense is None:
            return self.vectors.score(self.index.rows(positions))
        cosines, strengths = self.scan.dense
        return cosines[positions], strengths[positions]

    def _deviations(self, strengths: Vector) -> Vector:
        moments = self.scan.moments
        if moments.spread <= 0:
            return np.zeros(len(strengths), dtype=np.float32)
        return np.asarray((strengths - moments.mean) / moments.spread, dtype=np.float32)


def find_candidates(
    index: VectorIndex,
    vectors: VectorQuery,
    *,
    mask: Mask,
    limit: int,
    options: SearchOptions,
    pool: int | None = None,
) -> Candidates:
    """Rank the eligible entities of *index* by their cosines with a query.

    Args:
        index: The catalog's vectors.
        vectors: The query's.
        mask: Eligible entities, shape (n,).
        limit: How many matches are wanted.
        options: Sizes of pool and window.
        pool: How large the pool is; None leaves that to the options.
    """
    scan = index.search(vectors, mask=mask, count=pool or options.pool(limit))
    window = _window(scan, limit, options)
    return Candidates(index=index, vectors=vectors, scan=scan, window=window)


def _window(scan: ScanResult, limit: int, options: SearchOptions) -> frozenset[int]:
    head = scan.strengths[: options.window(limit)]
    if head.size == 0:
        return frozenset()
    best, mean = float(head[0]), scan.moments.mean
    floor = mean + options.window_margin * (best - mean)
    # Strengths fall, so that all above the floor stand in front.
    return frozenset(scan.pool[: int(np.count_nonzero(head >= floor))].tolist())
