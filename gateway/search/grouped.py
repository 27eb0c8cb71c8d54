"""A ranking as registries show it: places shared by kinds, scores for people, servers with their
tools. Pure.

What is shown is chosen from the first `depth` of each kind. Scores for people are scaled over all
of those, so that the last one shown does not get 0 by definition.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from gateway.search.rank.parameters import LEGACY_MAX_PER_KIND
from gateway.search.spread import MIN_TOOLS, RATIO, Worded, capped, extracted
from gateway.types import RankingPolicy

MIN_DEPTH = 30
FLOOR = 0.2
"""An entity with a lower display score is left out, as long as enough others remain."""
MIN_A_SERVER = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """One place of a ranking that is shown."""

    place: int
    """Its place in the ranking, from 0."""
    display: float
    """Its score on a scale from 0, the last candidate, to 1, the first; rounded to four digits."""


def depth(limit: int) -> int:
    """Say how many of each kind compete for *limit* places."""
    return max(2 * limit, MIN_DEPTH)


def chosen(
    kinds: Sequence[str],
    scores: Sequence[float],
    *,
    limit: int,
    policy: RankingPolicy = "hybrid",
) -> list[Shown]:
    """Choose which entities of a ranking are shown, in its order.

    Args:
        kinds: The kind of each entity, best first.
        scores: What they were ranked by, falling.
        limit: How many are wanted; below 1 gives nothing.
        policy: With ``legacy`` each kind has three places; else soft caps share them, see
            `gateway.search.spread.capped`.
    """
    if limit < 1:
        return []
    competing = _first(kinds, depth(limit))
    shown = displayed([scores[place] for place in competing])
    strong = [number for number, display in enumerate(shown) if display >= FLOOR]
    left = strong if len(strong) >= limit else range(len(competing))
    held = [kinds[competing[number]] for number in left]
    if policy == "legacy":
        picked = _first(held, LEGACY_MAX_PER_KIND)[:limit]
    else:
        picked = capped(held, [scores[competing[number]] for number in left], limit=limit)
    return [Shown(place=competing[left[at]], display=shown[left[at]]) for at in picked]


def _first(kinds: Sequence[str], most: int) -> list[int]:
    """Give the places of the first *most* of each kind."""
    taken: Counter[str] = Counter()
    found = []
    for place, kind in enumerate(kinds):
        taken[kind] += 1
        if taken[kind] <= most:
            found.append(place)
    return found


def displayed(scores: Sequence[float]) -> list[float]:
    """Stretch *scores* to 0 to 1, rounded to four digits; if all are equal, all become 1."""
    low, high = min(scores, default=0.0), max(scores, default=0.0)
    if low == high:
        return [1.0] * len(scores)
    return [round((score - low) / (high - low), 4) for score in scores]


def lifted(tools: Sequence[Worded], query: Collection[str], *, limit: int) -> list[Shown]:
    """Choose the tools of matched servers that the query is about, best first.

    At most max(3, ceil(0.6 x limit)); of one server at most its share of them, but two at least.
    A tool that holds no word of the query is left out. See `gateway.search.spread.extracted`.

    Args:
        tools: Of the matched servers, in any order.
        query: Its words.
        limit: How many entities the search was for.

    Returns:
        The places in *tools*. The scores are on a scale of their own, in (0, 1].
    """
    most = max(MIN_TOOLS, math.ceil(RATIO * limit))
    servers = len({tool.server for tool in tools})
    share = max(MIN_A_SERVER, math.ceil(most / servers)) if servers else most
    found = extracted(tools, query, limit=limit, per_server=share)
    return [Shown(place=place, display=score) for place, score in found]
