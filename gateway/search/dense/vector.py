"""Vectors -> candidates and the semantic window. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gateway.index.eligibility import Mask
from gateway.index.vectors.exact import ScanResult, VectorIndex, VectorQuery
from gateway.index.vectors.segments import Positions
from gateway.options import SearchOptions
from gateway.runtime.vectors import Vector


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Candidates:
    """What vectors say of one query."""

    index: VectorIndex
    question: VectorQuery
    scanned: ScanResult
    window: frozenset[int]
    """Where supplements may come from: the head of the pool, bounded by rank and by score."""

    @property
    def pool(self) -> Positions:
        """The positions of the best eligible entities by strength, best first."""
        return self.scanned.pool

    @property
    def strengths(self) -> Vector:
        """What the pool is ranked by: cosines, with those of a long request's best clause."""
        return self.scanned.strengths

    @property
    def mean(self) -> float:
        """Mean of the eligible strengths: the catalog as the query sees it."""
        return self.scanned.moments.mean

    @property
    def spread(self) -> float:
        """Standard deviation of the same."""
        return self.scanned.moments.spread

    @property
    def cosine_mean(self) -> float:
        """Mean of the eligible cosines."""
        return self.scanned.moments.cosine_mean

    @property
    def cosine_spread(self) -> float:
        """Standard deviation of the same."""
        return self.scanned.moments.cosine_spread

    def cosines(self, spots: Sequence[int]) -> list[float]:
        """Give the exact best cosine over the query's texts at each of *spots*, -1 to 1."""
        if self.scanned.dense is not None:
            told: list[float] = self.scanned.dense[0][list(spots)].tolist()
            return told
        pool, cosines = self.scanned.pool.tolist(), self.scanned.cosines.tolist()
        known = dict(zip(pool, cosines, strict=True))
        if absent := [spot for spot in spots if spot not in known]:
            known.update(zip(absent, self._at(np.asarray(absent))[0].tolist(), strict=True))
        return [known[spot] for spot in spots]

    def strengths_at(self, spots: Positions) -> Vector:
        """Give the exact strength at each of *spots*, in the pool or not, shape (len(spots),)."""
        return self._at(spots)[1]

    def cosine(self, position: int) -> float:
        """Give the exact best cosine of one entity, in the pool or not."""
        if self.scanned.dense is not None:
            return float(self.scanned.dense[0][position])
        return self.cosines([position])[0]

    def _at(self, spots: Positions) -> tuple[Vector, Vector]:
        if self.scanned.dense is None:
            return self.question.score(self.index.rows(spots))
        cosines, strengths = self.scanned.dense
        return cosines[spots], strengths[spots]


def candidates(
    index: VectorIndex,
    question: VectorQuery,
    *,
    mask: Mask,
    limit: int,
    options: SearchOptions,
    pool: int | None = None,
) -> Candidates:
    """Rank the eligible entities of *index*.

    Args:
        index: The catalog's vectors.
        question: The query's vectors.
        mask: Who may be found.
        limit: How many matches are wanted.
        options: Sizes of pool and window.
        pool: How large the pool is; None leaves that to the options.
    """
    scanned = index.search(question, mask=mask, count=pool or options.pool(limit))
    window = _window(scanned, limit, options)
    return Candidates(index=index, question=question, scanned=scanned, window=window)


def _window(scanned: ScanResult, limit: int, options: SearchOptions) -> frozenset[int]:
    head = scanned.strengths[: options.window(limit)]
    if head.size == 0:
        return frozenset()
    best, mean = float(head[0]), scanned.moments.mean
    floor = mean + options.window_margin * (best - mean)
    # Strengths fall, so that all above the floor stand in front.
    return frozenset(scanned.pool[: int(np.count_nonzero(head >= floor))].tolist())
