"""Vectors -> candidates and the semantic window. Pure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gateway.config import SearchOptions
from gateway.search.eligible import Mask
from gateway.vectors import Matrix, Vector, best_cosine, top

CLAUSE_WEIGHT = 0.7
"""How much the best clause of a long request adds to the whole request's cosine."""

Positions = NDArray[np.intp]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Candidates:
    """What vectors say of one query."""

    cosines: Vector
    """Best cosine over the query's texts, shape (n,), -1 to 1; what is not eligible included."""
    strengths: Vector
    """What ranks: the cosines, for a long request with its best clause's added."""
    pool: Positions
    """The best eligible entities by strength, best first: what may be re-scored."""
    window: frozenset[int]
    """Where supplements may come from: the head of the pool, bounded by rank and by score."""
    mean: float
    spread: float
    """Mean and standard deviation of the eligible strengths: the catalog as the query sees it."""
    cosine_mean: float
    cosine_spread: float
    """The same of the eligible cosines."""
    eligible: int
    """How many entities that is."""


def candidates(
    matrix: Matrix,
    *,
    texts: Matrix,
    clauses: Matrix,
    mask: Mask,
    limit: int,
    options: SearchOptions,
) -> Candidates:
    """Rank the eligible rows of *matrix*.

    Args:
        matrix: Unit rows, shape (n, d); a row of zeros is an entity without a vector.
        texts: The original query and its English form, unit rows.
        clauses: Parts of a long request, unit rows; may be empty.
        mask: Who may be found.
        limit: How many matches are wanted.
        options: Sizes of pool and window.
    """
    cosines = best_cosine(matrix, texts)
    strengths = cosines
    if clauses.shape[0]:
        strengths = cosines + CLAUSE_WEIGHT * best_cosine(matrix, clauses)
    eligible = strengths[mask]
    mean, spread = _moments(eligible)
    cosine_mean, cosine_spread = _moments(cosines[mask])
    ranked = np.where(mask, strengths, -np.inf).astype(np.float32)
    pool = top(ranked, min(options.pool(limit), int(eligible.size)))
    return Candidates(
        cosines=cosines,
        strengths=strengths,
        pool=pool,
        window=_window(strengths, pool, mean, limit, options),
        mean=mean,
        spread=spread,
        cosine_mean=cosine_mean,
        cosine_spread=cosine_spread,
        eligible=int(eligible.size),
    )


def _moments(values: Vector) -> tuple[float, float]:
    return (float(values.mean()), float(values.std())) if values.size else (0.0, 0.0)


def _window(
    strengths: Vector, pool: Positions, mean: float, limit: int, options: SearchOptions
) -> frozenset[int]:
    head = pool[: options.window(limit)]
    if head.size == 0:
        return frozenset()
    best = float(strengths[head[0]])
    floor = mean + options.window_margin * (best - mean)
    return frozenset(int(position) for position in head if strengths[position] >= floor)
