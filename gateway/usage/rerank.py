"""How past calls, or what searches returned, move a ranking. Pure.

`rerank`, by the outcomes of calls: bounded, decaying, and only among near ties.

* Only calls count, by how they ended. Being listed or searched for changes nothing.
* A tenant's own calls count as far as there are any; for the rest those of all tenants do.
* Use multiplies a score by 0.85 to 1.15, and swaps only what is about equally good without it.

`rank_by_association`, for parity with systems that rank so:

    score = base x (1 + 0.5 x importance) x temporal x (1 + 0.01 x co-occurrence)

Exposure counts as use there, and nothing bounds what it adds: what was listed is listed again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gateway.usage.call_log import Exposure

MAX_SHIFT = 0.15
"""Share of a score that outcomes may move it by."""
TIE_SHARE = 0.05
"""Two scores are near ties if they differ by less than this share of the range of the ranking."""
HALF_LIFE_S = 30 * 24 * 3600.0
"""Seconds, a month, after which a call counts half."""
PRIOR = 5.0
"""Calls of a tenant's own that count as much as those of all tenants."""
POOL_FACTOR = 3
"""How many candidates are ranked for each that is wanted."""
SALIENCE = 0.5
DEGREE = 0.15
CONSOLIDATION = 0.2
MAX_DEGREE = 15
DECAY_PER_HOUR = 0.0001
MIN_DECAY = 0.1
"""The least that any decay leaves."""
CO_ACCESS_WEIGHT = 0.01
_MIN_BY_WORDS, _RANGE_BY_WORDS = 0.2, 0.6


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcomes:
    """How the calls of one tool ended, decayed to one moment."""

    succeeded: float = 0.0
    failed: float = 0.0

    @property
    def calls(self) -> float:
        """How many there were."""
        return self.succeeded + self.failed

    def __add__(self, other: Outcomes) -> Outcomes:
        """Add the calls of both."""
        return Outcomes(
            succeeded=self.succeeded + other.succeeded, failed=self.failed + other.failed
        )


def decay(age_s: float) -> float:
    """Return what a call that is *age_s* old counts, in (0, 1]; one from the future counts 1."""
    return float(0.5 ** (max(age_s, 0.0) / HALF_LIFE_S))


def multiplier(own: Outcomes, all_tenants: Outcomes) -> float:
    """Return the factor that outcomes multiply a score by, 0.85 to 1.15; 1 without any calls.

    The rate of success is shrunk twice: that of a tenant to that of all, and that to a half.
    What it then differs from a half counts by how many calls there were.

    Args:
        own: The calls of the tenant that searches.
        all_tenants: The calls of all tenants, its own too.
    """
    overall = (all_tenants.succeeded + PRIOR / 2) / (all_tenants.calls + PRIOR)
    rate = (own.succeeded + PRIOR * overall) / (own.calls + PRIOR)
    calls = max(own.calls, all_tenants.calls)
    certainty = calls / (calls + PRIOR)
    return 1 + MAX_SHIFT * certainty * (2 * rate - 1)


def rerank(
    ids: Sequence[str], scores: Sequence[float], multipliers: Mapping[str, float]
) -> list[int]:
    """Return the indices of a ranking in their new order.

    An entity passes a better one only if both are near ties and outcomes say so.

    Args:
        ids: Best first.
        scores: Falling, of any scale.
        multipliers: By id, 0.85 to 1.15; 1 for ids that are absent.
    """
    if not scores:
        return []
    lowest = scores[-1]
    spread = scores[0] - lowest
    tie = TIE_SHARE * spread
    # On a scale from 1 to 2, so that a share of a score means the same along the ranking.
    scaled = [1 + (score - lowest) / spread if spread else 1.0 for score in scores]
    pairs = zip(ids, scaled, strict=True)
    values = [value * multipliers.get(entity, 1.0) for entity, value in pairs]
    order: list[int] = []
    for index in range(len(ids)):
        at = len(order)
        while at and scores[order[at - 1]] - scores[index] <= tie:
            if values[order[at - 1]] >= values[index]:
                break
            at -= 1
        order.insert(at, index)
    return order


@dataclass(frozen=True, slots=True, kw_only=True)
class Associations:
    """What searches returned, and what together."""

    exposures: Mapping[str, Exposure]
    pairs: Mapping[frozenset[str], Exposure]
    now_s: float
    """When it was read, in seconds since the epoch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AssociativeCandidate:
    """One entity that may be shown."""

    id: str
    rank_score: float
    """Its score by reciprocal ranks, > 0."""
    distance: float | None = None
    """1 - cosine; None if only words found it."""
    degree: int = 0
    """How many edges it has."""


def rank_by_association(
    candidates: Sequence[AssociativeCandidate], seen: Associations
) -> list[tuple[float, str]]:
    """Return the score and the id of each of *candidates*, best first; ties by id.

    Args:
        candidates: All that were found: the ranges of scores and exposures are theirs.
        seen: What was returned so far.
    """
    exposures = [seen.exposures.get(candidate.id) for candidate in candidates]
    max_count = max((exposure.count for exposure in exposures if exposure), default=0)
    max_days = max((exposure.days for exposure in exposures if exposure), default=0)
    bases = relevance(candidates)
    scores = []
    for candidate, exposure, base in zip(candidates, exposures, bases, strict=True):
        weight, temporal = 0.0, 1.0
        if exposure is not None:
            weight = importance_of(exposure, candidate.degree, max_count, max_days)
            temporal = decay_by_hours(exposure.last_s, seen.now_s)
        pairs = (seen.pairs.get(frozenset({candidate.id, other.id})) for other in candidates)
        together = sum(
            math.log2(1 + pair.count) * decay_by_hours(pair.last_s, seen.now_s)
            for pair in pairs
            if pair is not None
        )
        score = base * (1 + SALIENCE * weight) * temporal * (1 + CO_ACCESS_WEIGHT * together)
        scores.append((score, candidate.id))
    return sorted(scores, key=lambda scored: (-scored[0], scored[1]))


def relevance(candidates: Sequence[AssociativeCandidate]) -> list[float]:
    """Return how relevant each candidate is: by its distance, or by its place among the scores.

    A candidate that only words found gets 0.2 to 0.8; if all scores are equal, 0.2.
    """
    scores = [candidate.rank_score for candidate in candidates]
    lowest = min(scores, default=0.0)
    spread = max(scores, default=0.0) - lowest or math.inf
    return [
        _MIN_BY_WORDS + _RANGE_BY_WORDS * (candidate.rank_score - lowest) / spread
        if candidate.distance is None
        else max(0.0, 1 - candidate.distance)
        for candidate in candidates
    ]


def importance_of(exposure: Exposure, degree: int, max_count: int, max_days: int) -> float:
    """Return how important an entity is by its exposures, its edges and its days, 0 to 1.38.

    Args:
        exposure: Its own.
        degree: How many edges it has.
        max_count: The most exposures of any candidate.
        max_days: The most days of any candidate; up to 1 they do not count.
    """
    frequency = math.log2(1 + exposure.count) / math.log2(1 + max_count)
    steadiness = 0.0
    if max_days > 1:
        steadiness = math.log2(1 + exposure.days) / math.log2(1 + max_days)
    connected = min(degree, MAX_DEGREE) / MAX_DEGREE
    return frequency * (1 + DEGREE * connected) * (1 + CONSOLIDATION * steadiness)


def decay_by_hours(then_s: float, now_s: float) -> float:
    """Return exp(-0.0001 x hours), at least 0.1; 1 for the future."""
    hours = max(0.0, now_s - then_s) / 3600
    return max(MIN_DECAY, math.exp(-DECAY_PER_HOUR * hours))
