"""How the outcomes of past calls move a ranking: bounded, decaying, only among near ties. Pure.

* Only calls count, by how they ended. Being listed or searched for changes nothing.
* Use multiplies a score by 0.85 to 1.15, and swaps only what is about equally good without it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

MAX_SHIFT = 0.15
"""Share of a score that outcomes may move it by."""
TIE_SHARE = 0.05
"""Two scores are near ties if they differ by less than this share of the range of the ranking."""
HALF_LIFE_S = 30 * 24 * 3600.0
"""Seconds, a month, after which a call counts half."""
PRIOR = 5.0
"""Calls, half of them successes, that are assumed of each tool."""
POOL_FACTOR = 3
"""How many candidates are ranked for each that is wanted."""


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


def multiplier(outcomes: Outcomes) -> float:
    """Return the factor that outcomes multiply a score by, 0.85 to 1.15; 1 without any calls.

    What the rate of success, shrunk to a half, differs from a half counts by how many calls there
    were.
    """
    rate = (outcomes.succeeded + PRIOR / 2) / (outcomes.calls + PRIOR)
    certainty = outcomes.calls / (outcomes.calls + PRIOR)
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
