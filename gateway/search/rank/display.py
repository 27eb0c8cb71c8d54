"""A ranking as registries show it: shared by kinds, with scores for people. Pure.

* No kind and no server takes all ranks of a result.
* What is displayed is chosen from the first `max_depth` of each kind. Scores for people are scaled
  over all of those, so that the last one displayed does not get 0 by definition.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from gateway.catalog.kinds import row_of
from gateway.search.rank.parameters import LEGACY_MAX_PER_KIND
from gateway.types import RankingPolicy
from graphs.lexical.analysis import Token

RATIO = 0.6
"""How many tools of matched servers are shown, as a share of the places of a search."""
FLOOR = 0.5
"""An entity that displaces another for variety's sake has at least this share of its score."""
MIN_TOOLS = 3
_IN_NAME, _IN_DESCRIPTION = 0.5, 0.3
_STRENGTH, _BREADTH = 0.7, 0.3


def cap_per_kind(
    kinds: Sequence[str],
    scores: Sequence[float],
    *,
    limit: int,
    ratio: float | None = None,
    floor: float = FLOOR,
) -> list[int]:
    """Choose *limit* places of a ranking, in its order, with a soft cap on each kind.

    A kind that has its share, ceil(ratio x limit), gives way to another kind that waits further
    down, has not had its share, and is good enough. Places that stay free go back to the first.

    Args:
        kinds: The kind of each entity, best first.
        scores: What it was ranked by, falling.
        limit: How many are wanted; below 1 gives nothing.
        ratio: In (0, 1]; None is that of each kind's row, in `gateway.catalog.kinds`.
        floor: See `FLOOR`; 0 lets anything displace anything.
    """
    if limit < 1:
        return []
    left = {
        kind: math.ceil((row_of(kind).cap if ratio is None else ratio) * limit)
        for kind in set(kinds)
    }
    waiting = dict.fromkeys(left, -1)
    chosen: list[int] = []
    skipped: list[int] = []
    place, count = 0, len(kinds)
    while place < count and len(chosen) < limit:
        kind = kinds[place]
        if not left[kind]:
            # Scores fall: of those that wait the next one is the best. All between are of kinds
            # that have had their share.
            ahead = _ahead(kinds, waiting, place)
            if ahead < count and scores[ahead] >= floor * scores[place]:
                skipped += range(place, min(ahead, place + limit))
                place = ahead
                continue
        else:
            left[kind] -= 1
            if not left[kind]:
                del waiting[kind]
        chosen.append(place)
        place += 1
    return sorted([*chosen, *skipped[: limit - len(chosen)]])


def _ahead(kinds: Sequence[str], waiting: dict[str, int], place: int) -> int:
    """Return the next place after *place* of a kind in *waiting*; `len(kinds)` if none is left.

    *waiting* holds the next place of each kind and is moved on: a long ranking is walked once.
    """
    for kind, at in waiting.items():
        if at <= place:
            try:
                waiting[kind] = kinds.index(kind, place + 1)
            except ValueError:
                waiting[kind] = len(kinds)
    return min(waiting.values(), default=len(kinds))


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolWords:
    """A tool of a matched server, with the words of its texts."""

    server: str
    name: str
    name_words: frozenset[str]
    description_words: frozenset[str]


def best_tools_per_server(
    tools: Sequence[ToolWords], query: Collection[str], *, limit: int, per_server: int | None = None
) -> list[tuple[int, float]]:
    """Choose the tools of matched servers that the query is about.

    Each word of the query earns 0.5 in a tool's name, else 0.3 in its description. The score is
    0.7 x what they earn together, at most 1, and 0.3 x the share of the words that earned.

    Args:
        tools: In any order.
        query: Its words, as `words_of` gives them; none gives no tools.
        limit: How many entities the search was for: max(3, ceil(0.6 x limit)) tools are given.
        per_server: At most so many of one server; None leaves it to the ranking.

    Returns:
        The place in *tools* and the score, in (0, 1], rounded to 4 digits; best first, ties by
        server and name. Tools without any word are left out.
    """
    scored = [
        (place, score)
        for place, tool in enumerate(tools)
        if (score := round(_score(tool, query), 4)) > 0
    ]
    scored.sort(key=lambda each: (-each[1], tools[each[0]].server, tools[each[0]].name))
    counts: Counter[str] = Counter()
    chosen: list[tuple[int, float]] = []
    for place, score in scored:
        counts[tools[place].server] += 1
        if per_server is None or counts[tools[place].server] <= per_server:
            chosen.append((place, score))
    return chosen[: max(MIN_TOOLS, math.ceil(RATIO * limit))]


def _score(tool: ToolWords, query: Collection[str]) -> float:
    named = sum(word in tool.name_words for word in query)
    described = sum(
        word in tool.description_words and word not in tool.name_words for word in query
    )
    if not named + described:
        return 0.0
    strength = min(1.0, _IN_NAME * named + _IN_DESCRIPTION * described)
    return _STRENGTH * strength + _BREADTH * (named + described) / len(query)


def words_of(tokens: Sequence[Token]) -> frozenset[str]:
    """Return the words of a text from its tokens: identifiers split, endings removed."""
    return frozenset(part for token in tokens for part in token.parts)


MIN_DEPTH = 30
MIN_DISPLAY = 0.2
"""An entity with a lower display score is left out, as long as enough others remain."""
MIN_A_SERVER = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class DisplayedEntity:
    """One place of a ranking that is shown."""

    place: int
    """Its place in the ranking, from 0."""
    display: float
    """Its score on a scale from 0, the last candidate, to 1, the first; rounded to four digits."""


def max_depth(limit: int) -> int:
    """Return how many of each kind compete for *limit* places."""
    return max(2 * limit, MIN_DEPTH)


def select(
    kinds: Sequence[str],
    scores: Sequence[float],
    *,
    limit: int,
    policy: RankingPolicy = "hybrid",
) -> list[DisplayedEntity]:
    """Choose which entities of a ranking are shown, in its order.

    Args:
        kinds: The kind of each entity, best first.
        scores: What they were ranked by, falling.
        limit: How many are wanted; below 1 gives nothing.
        policy: With ``legacy`` each kind has three places; else soft caps share them, see
            `gateway.search.rank.display.cap_per_kind`.
    """
    if limit < 1:
        return []
    competing = _first(kinds, max_depth(limit))
    shown = scale_scores([scores[place] for place in competing])
    strong = [number for number, display in enumerate(shown) if display >= MIN_DISPLAY]
    left = strong if len(strong) >= limit else range(len(competing))
    held = [kinds[competing[number]] for number in left]
    if policy == "legacy":
        picked = _first(held, LEGACY_MAX_PER_KIND)[:limit]
    else:
        picked = cap_per_kind(held, [scores[competing[number]] for number in left], limit=limit)
    return [DisplayedEntity(place=competing[left[at]], display=shown[left[at]]) for at in picked]


def _first(kinds: Sequence[str], most: int) -> list[int]:
    """Return the places of the first *most* of each kind."""
    counts: Counter[str] = Counter()
    indices = []
    for place, kind in enumerate(kinds):
        counts[kind] += 1
        if counts[kind] <= most:
            indices.append(place)
    return indices


def scale_scores(scores: Sequence[float]) -> list[float]:
    """Stretch *scores* to 0 to 1, rounded to four digits; if all are equal, all become 1."""
    low, high = min(scores, default=0.0), max(scores, default=0.0)
    if low == high:
        return [1.0] * len(scores)
    return [round((score - low) / (high - low), 4) for score in scores]


def server_tools(
    tools: Sequence[ToolWords], query: Collection[str], *, limit: int
) -> list[DisplayedEntity]:
    """Choose the tools of matched servers that the query is about, best first.

    At most max(3, ceil(0.6 x limit)); of one server at most its share of them, but two at least.
    A tool that holds no word of the query is left out. See `best_tools_per_server`.

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
    indices = best_tools_per_server(tools, query, limit=limit, per_server=share)
    return [DisplayedEntity(place=place, display=score) for place, score in indices]
