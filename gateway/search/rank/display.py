"""A ranking as registries show it: shared by kinds, with scores for people. Pure.

* No kind and no server takes all ranks of a result.
* What is displayed is chosen from the first `display_depth` of each kind. Scores for people are
  scaled over all of those, so that the last one displayed does not get 0 by definition.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from gateway.catalog.kinds import row_of
from gateway.search.rank.parameters import (
    DISPLAY_FLOOR,
    DISPLAY_MIN_DEPTH,
    DISPLAY_MIN_SCORE,
    SERVER_TOOLS_MIN,
    SERVER_TOOLS_PER_SERVER,
    SERVER_TOOLS_SHARE,
    TOOL_BREADTH,
    TOOL_STRENGTH,
    TOOL_WORD_IN_DESCRIPTION,
    TOOL_WORD_IN_NAME,
)
from graphs.lexical.analysis import Token


@dataclass(frozen=True, slots=True, kw_only=True)
class DisplayedEntity:
    """One place of a ranking that is shown."""

    place: int
    """Its place in the ranking, from 0."""
    display: float
    """Its score on a scale from 0, the last candidate, to 1, the first; rounded to four digits."""


def cap_per_kind(
    kinds: Sequence[str], scores: Sequence[float], *, limit: int, floor: float = DISPLAY_FLOOR
) -> list[int]:
    """Choose *limit* places of a ranking, in its order, with a soft cap on each kind.

    A kind that has its share gives way to another kind further down that has not, and is good
    enough. Places that stay free go back to the first.

    Args:
        kinds: The kind of each entity, best first; `gateway.catalog.kinds` has the share of each.
        scores: What it was ranked by, falling.
        limit: How many are wanted; below 1 gives nothing.
        floor: What displaces another has at least this share of its score.
    """
    left = {kind: math.ceil(row_of(kind).cap * limit) for kind in set(kinds)}
    chosen: list[int] = []
    waiting: list[int] = []
    for place, kind in enumerate(kinds):
        if not left[kind]:
            waiting.append(place)
            continue
        while waiting and len(chosen) < limit and scores[place] < floor * scores[waiting[0]]:
            chosen.append(waiting.pop(0))
        if len(chosen) >= limit:
            break
        left[kind] -= 1
        chosen.append(place)
    return sorted([*chosen, *waiting[: max(limit - len(chosen), 0)]])


def first_per_kind(kinds: Sequence[str], count: int) -> list[int]:
    """Return the places of the first *count* of each kind."""
    counts: Counter[str] = Counter()
    places = []
    for place, kind in enumerate(kinds):
        counts[kind] += 1
        if counts[kind] <= count:
            places.append(place)
    return places


def display_depth(limit: int) -> int:
    """Return how many of each kind compete for *limit* places."""
    return max(2 * limit, DISPLAY_MIN_DEPTH)


def select(kinds: Sequence[str], scores: Sequence[float], *, limit: int) -> list[DisplayedEntity]:
    """Choose which entities of a ranking are shown, in its order.

    Args:
        kinds: The kind of each entity, best first.
        scores: What they were ranked by, falling.
        limit: How many are wanted; below 1 gives nothing.
    """
    competing = first_per_kind(kinds, display_depth(limit))
    displays = scale_scores([scores[place] for place in competing])
    ranked = list(zip(competing, displays, strict=True))
    strong = [pair for pair in ranked if pair[1] >= DISPLAY_MIN_SCORE]
    shown = strong if len(strong) >= limit else ranked
    places = [place for place, _ in shown]
    picked = cap_per_kind(
        [kinds[place] for place in places], [scores[place] for place in places], limit=limit
    )
    return [DisplayedEntity(place=shown[at][0], display=shown[at][1]) for at in picked]


def scale_scores(scores: Sequence[float]) -> list[float]:
    """Stretch *scores* to 0 to 1, rounded to four digits; if all are equal, all become 1."""
    low, high = min(scores, default=0.0), max(scores, default=0.0)
    if low == high:
        return [1.0] * len(scores)
    return [round((score - low) / (high - low), 4) for score in scores]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolWords:
    """A tool of a matched server, with the words of its texts."""

    server: str
    name: str
    name_words: frozenset[str]
    description_words: frozenset[str]


def words_of(tokens: Sequence[Token]) -> frozenset[str]:
    """Return the words of a text from its tokens: identifiers split, endings removed."""
    return frozenset(part for token in tokens for part in token.parts)


def server_tools(
    tools: Sequence[ToolWords], query: Collection[str], *, limit: int
) -> list[DisplayedEntity]:
    """Choose the tools of matched servers that the query is about, best first.

    At most max(3, ceil(0.6 x limit)); of one server at most its share of them, but two at least.
    Ties fall by server and name. A tool that holds no word of the query is left out.

    Args:
        tools: Of the matched servers, in any order.
        query: Its words, as `words_of` gives them.
        limit: How many entities the search was for.

    Returns:
        The places in *tools*. The scores are on a scale of their own, in (0, 1].
    """
    count = max(SERVER_TOOLS_MIN, math.ceil(SERVER_TOOLS_SHARE * limit))
    servers = len({tool.server for tool in tools})
    share = max(SERVER_TOOLS_PER_SERVER, math.ceil(count / max(servers, 1)))
    scored = [(_score(tool, query), place) for place, tool in enumerate(tools)]
    ranked = sorted(
        (-score, tools[place].server, tools[place].name, place) for score, place in scored if score
    )
    chosen = [ranked[at] for at in first_per_kind([server for _, server, _, _ in ranked], share)]
    return [DisplayedEntity(place=place, display=-score) for score, _, _, place in chosen[:count]]


def _score(tool: ToolWords, query: Collection[str]) -> float:
    """Score a tool: each word earns 0.5 in its name, else 0.3 in its description.

    0.7 x what they earn together, at most 1, and 0.3 x the share of the words that earned.
    """
    named = sum(word in tool.name_words for word in query)
    described = sum(word in tool.description_words - tool.name_words for word in query)
    if not named + described:
        return 0.0
    earned = TOOL_WORD_IN_NAME * named + TOOL_WORD_IN_DESCRIPTION * described
    breadth = (named + described) / len(query)
    return round(TOOL_STRENGTH * min(1.0, earned) + TOOL_BREADTH * breadth, 4)
