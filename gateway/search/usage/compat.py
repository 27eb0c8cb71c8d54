"""Usage as a memory of associations weighs it: salience, decay, co-occurrence. Pure.

    score = base x (1 + 0.5 x importance) x temporal x (1 + 0.01 x co-occurrence)

Exposure counts as use here, and nothing bounds what use adds: what was shown is shown again. It is
for parity with systems that rank so; `gateway.search.usage.bounded` is for all others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

SALIENCE = 0.5
DEGREE = 0.15
CONSOLIDATION = 0.2
MOST_DEGREE = 15
DECAY_AN_HOUR = 0.0001
FLOOR = 0.1
"""The least that any decay leaves."""
TOGETHER = 0.01
EXPANSION = 3
"""How many candidates are ranked for each that is wanted."""
_WORDS_LEAST, _WORDS_RANGE = 0.2, 0.6


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """How often one entity was accessed."""

    count: int = 0
    days: int | None = None
    """On how many days; None if nobody counted."""
    degree: int = 0
    """How many edges it has."""
    last_s: float | None = None
    """When it was accessed last, or made if it never was; seconds since the epoch, None if
    unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Together:
    """How often two entities were accessed together."""

    count: int
    last_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One entity that may be shown."""

    id: str
    rank_score: float
    """Its score by reciprocal ranks, > 0."""
    distance: float | None = None
    """1 - cosine; None if only words found it."""
    access: Access = Access()


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
    candidates: Sequence[Candidate],
    pairs: Mapping[frozenset[str], Together],
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
    most = max((each.access.count for each in candidates), default=0)
    days = max((each.access.days or 0 for each in candidates), default=0)
    scores = [each.rank_score for each in candidates]
    found = []
    for each in candidates:
        weight = importance(each.access, most=most, most_days=days)
        temporal = decay(each.access.last_s, now_s)
        together = sum(
            math.log2(1 + pair.count) * decay(pair.last_s, now_s)
            for other in candidates
            if other.id != each.id and (pair := pairs.get(frozenset({each.id, other.id})))
        )
        salience, company = 1 + SALIENCE * weight, 1 + TOGETHER * together
        found.append(
            Scored(
                id=each.id,
                score=base(each, scores) * salience * temporal * company,
                importance=weight,
                temporal=temporal,
                together=together,
            )
        )
    return sorted(found, key=lambda each: (-each.score, each.id))[: max(limit, 0)]


def base(candidate: Candidate, scores: Sequence[float]) -> float:
    """Say how relevant a candidate is: by its distance, or by where *scores* place it.

    A candidate that only words found gets 0.2 to 0.8; if all scores are equal, 0.2.
    """
    if candidate.distance is not None:
        return max(0.0, 1 - candidate.distance)
    least = min(scores)
    spread = max(scores) - least
    return _WORDS_LEAST + _WORDS_RANGE * (
        (candidate.rank_score - least) / spread if spread else 0.0
    )


def importance(access: Access, *, most: int, most_days: int) -> float:
    """Say how important an entity is by its accesses, its edges and its days, 0 to 1.38.

    Args:
        access: Its own.
        most: The most accesses of any candidate; 0 makes nothing important.
        most_days: The most days of any candidate; up to 1 they have no say.
    """
    if most <= 0:
        return 0.0
    frequency = math.log2(1 + access.count) / math.log2(1 + most)
    degree = 1 + DEGREE * min(access.degree, MOST_DEGREE) / MOST_DEGREE
    steady = 1.0
    if most_days > 1:
        days = 1 if access.days is None else access.days
        steady += CONSOLIDATION * math.log2(1 + days) / math.log2(1 + most_days)
    return frequency * degree * steady


def decay(then_s: float | None, now_s: float) -> float:
    """Give exp(-0.0001 x hours), at least 0.1; 1 for the future and for what is unknown."""
    if then_s is None:
        return 1.0
    hours = max(0.0, now_s - then_s) / 3600
    return max(FLOOR, math.exp(-DECAY_AN_HOUR * hours))
