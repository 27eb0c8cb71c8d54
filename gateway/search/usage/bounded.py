"""Usage that can only help a little: outcomes, bounded, decaying, among near ties. Pure.

* Only calls count, by how they ended. Being shown, found or searched for changes nothing.
* A tenant's own calls speak as far as there are any; the rest is what everybody's calls say.
* Use multiplies by 0.85 to 1.15, and swaps only what is about equally good without it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gateway.values import dataclass

MOST = 0.15
"""How far use may move a score, as a share of it."""
NEAR = 0.05
"""Two are near if their scores differ by less than this share of the range that is ranked."""
HALF_LIFE_S = 30 * 24 * 3600.0
"""A call of a month ago counts half."""
PRIOR = 5.0
"""So many calls a tenant's own ones must be, to count as much as everybody's."""


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
    """Say what a call counts that is *age_s* old, in (0, 1]; one of the future counts 1."""
    return float(0.5 ** (max(age_s, 0.0) / HALF_LIFE_S))


def multiplier(own: Outcomes, everybody: Outcomes) -> float:
    """Say what use makes of a score, 0.85 to 1.15; 1 without any calls.

    The rate of success is shrunk twice, a tenant's to everybody's and that to a half, and what is
    left over a half counts by how many calls there were.

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

    One goes before another that ranked better only if both are near ties and use says so; it
    passes nobody whom it is not near to.

    Args:
        ids: Best first.
        scores: Falling, of any scale.
        multipliers: Of who has any, 0.85 to 1.15.
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
