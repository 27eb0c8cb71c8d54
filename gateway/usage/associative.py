"""Usage as a memory of associations weighs it: salience, decay, co-occurrence. Pure.

    score = base x (1 + 0.5 x importance) x temporal x (1 + 0.01 x co-occurrence)

Exposure counts as use here, and nothing bounds what it adds: what was listed is listed again. It
is for parity with systems that rank so; `gateway.usage.outcome_rerank` is for all others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

SALIENCE = 0.5
DEGREE = 0.15
CONSOLIDATION = 0.2
MAX_DEGREE = 15
DECAY_PER_HOUR = 0.0001
MIN_DECAY = 0.1
"""The least that any decay leaves."""
CO_ACCESS_WEIGHT = 0.01
EXPANSION = 3
"""How many candidates are ranked for each that is wanted."""
_MIN_BY_WORDS, _RANGE_BY_WORDS = 0.2, 0.6


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessStats:
    """How often one entity was accessed."""

    count: int = 0
    days: int | None = None
    """On how many days; None if they were not counted."""
    degree: int = 0
    """How many edges it has."""
    last_s: float | None = None
    """When it was accessed last, or made if it never was; seconds since the epoch, None if
    unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CoAccess:
    """How often two entities were accessed together."""

    count: int
    last_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AssociativeCandidate:
    """One entity that may be shown."""

    id: str
    rank_score: float
    """Its score by reciprocal ranks, > 0."""
    distance: float | None = None
    """1 - cosine; None if only words found it."""
    access: AccessStats = AccessStats()


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """A candidate, ranked."""

    id: str
    score: float
    """>= 0; above 1 for what is used much."""
    importance: float
    """0 to 1.38."""
    temporal: float
    """0.1 to 1."""
    together: float
    """>= 0, without a bound."""


def rank(
    candidates: Sequence[AssociativeCandidate],
    pairs: Mapping[frozenset[str], CoAccess],
    *,
    now_s: float,
    limit: int,
) -> list[Scored]:
    """Rank *candidates*, best first; ties by id.

    Args:
        candidates: All that were found: the ranges of the scores and the most accesses are theirs.
        pairs: How often two of them were accessed together.
        now_s: Seconds since the epoch.
        limit: How many are wanted.
    """
    most = max((candidate.access.count for candidate in candidates), default=0)
    days = max((candidate.access.days or 0 for candidate in candidates), default=0)
    scores = [candidate.rank_score for candidate in candidates]
    ranked = []
    for candidate in candidates:
        weight = importance(candidate.access, most=most, most_days=days)
        temporal = decay(candidate.access.last_s, now_s)
        together = sum(
            math.log2(1 + pair.count) * decay(pair.last_s, now_s)
            for other in candidates
            if other.id != candidate.id and (pair := pairs.get(frozenset({candidate.id, other.id})))
        )
        salience, association = 1 + SALIENCE * weight, 1 + CO_ACCESS_WEIGHT * together
        ranked.append(
            Scored(
                id=candidate.id,
                score=base(candidate, scores) * salience * temporal * association,
                importance=weight,
                temporal=temporal,
                together=together,
            )
        )
    return sorted(ranked, key=lambda scored: (-scored.score, scored.id))[: max(limit, 0)]


def base(candidate: AssociativeCandidate, scores: Sequence[float]) -> float:
    """Return how relevant a candidate is: by its distance, or by its place among *scores*.

    A candidate that only words found gets 0.2 to 0.8; if all scores are equal, 0.2.
    """
    if candidate.distance is not None:
        return max(0.0, 1 - candidate.distance)
    lowest = min(scores)
    spread = max(scores) - lowest
    return _MIN_BY_WORDS + _RANGE_BY_WORDS * (
        (candidate.rank_score - lowest) / spread if spread else 0.0
    )


def importance(access: AccessStats, *, most: int, most_days: int) -> float:
    """Return how important an entity is by its accesses, its edges and its days, 0 to 1.38.

    Args:
        access: Its own.
        most: The most accesses of any candidate; 0 makes nothing important.
        most_days: The most days of any candidate; up to 1 they do not count.
    """
    if most <= 0:
        return 0.0
    frequency = math.log2(1 + access.count) / math.log2(1 + most)
    degree = 1 + DEGREE * min(access.degree, MAX_DEGREE) / MAX_DEGREE
    steady = 1.0
    if most_days > 1:
        days = 1 if access.days is None else access.days
        steady += CONSOLIDATION * math.log2(1 + days) / math.log2(1 + most_days)
    return frequency * degree * steady


def decay(then_s: float | None, now_s: float) -> float:
    """Return exp(-0.0001 x hours), at least 0.1; 1 for the future and for what is unknown."""
    if then_s is None:
        return 1.0
    hours = max(0.0, now_s - then_s) / 3600
    return max(MIN_DECAY, math.exp(-DECAY_PER_HOUR * hours))
