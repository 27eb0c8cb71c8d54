"""How outcomes of calls move a ranking: bounded, decaying, and only among near ties. Pure.

* Only calls count, by how they ended. Being shown, found or searched for changes nothing.
* A tenant's own calls count as far as there are any; for the rest everybody's calls do.
* Use multiplies a score by 0.85 to 1.15, and swaps only what is about equally good without it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

MOST = 0.15
"""By which share of itself use may move a score."""
NEAR = 0.05
"""Two scores are near ties if they differ by less than this share of the range of the ranking."""
HALF_LIFE_S = 30 * 24 * 3600.0
"""After so many seconds, a month, a call counts half."""
PRIOR = 5.0
"""So many calls of a tenant's own count as much as everybody's."""


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


def decayed(age_s: float) -> float:
    """Say what a call that is *age_s* old counts, in (0, 1]; one from the future counts 1."""
    return float(0.5 ** (max(age_s, 0.0) / HALF_LIFE_S))


def multiplier(own: Outcomes, everybody: Outcomes) -> float:
    """Give the factor by which use multiplies a score, 0.85 to 1.15; 1 without any calls.

    The rate of success is shrunk twice: a tenant's towards everybody's, and that towards a half.
    What it then differs from a half counts by how many calls there were.

    Args:
        own: The calls of the tenant who asks.
        everybody: The calls of all tenants, its own too.
    """
    common = (everybody.succeeded + PRIOR / 2) / (everybody.calls + PRIOR)
    rate = (own.succeeded + PRIOR * common) / (own.calls + PRIOR)
    known = max(own.calls, everybody.calls)
    sure = known / (known + PRIOR)
    return 1 + MOST * sure * (2 * rate - 1)


def reranked(
    ids: Sequence[str], scores: Sequence[float], multipliers: Mapping[str, float]
) -> list[int]:
    """Give the places of a ranking in their new order.

    An entity passes a better one only if both are near ties and use says so. It passes none that it
    is no near tie of.

    Args:
        ids: Best first.
        scores: Falling, of any scale.
        multipliers: By id, 0.85 to 1.15; 1 for ids that are absent.
    """
    if not scores:
        return []
    least = scores[-1]
    spread = scores[0] - least
    near = NEAR * spread
    # On a scale from 1 to 2, so that a share of a score means the same along the ranking.
    told = [1 + (score - least) / spread if spread else 1.0 for score in scores]
    worth = [value * multipliers.get(each, 1.0) for each, value in zip(ids, told, strict=True)]
    order: list[int] = []
    for place in range(len(ids)):
        at = len(order)
        while at and scores[order[at - 1]] - scores[place] <= near:
            if worth[order[at - 1]] >= worth[place]:
                break
            at -= 1
        order.insert(at, place)
    return order
