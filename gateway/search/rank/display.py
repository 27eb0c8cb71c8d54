"""A ranking as registries show it: shared by kinds, with scores for people. Pure.

* No kind and no server takes all ranks of a result.
* What is displayed is chosen from the first `display_depth` of each kind. Scores for people are
  scaled over all of those, so that the last one displayed does not get 0 by definition.

Rankings -> the matches of a search. Pure.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Container, Sequence
from typing import TypeAlias

import numpy as np

from gateway.index.eligibility import Positions
from gateway.search.rank import parameters
from gateway.search.rank.fusion import RankedList, interleave
from gateway.search.state import SearchState
from gateway.types import Entity
from graphs.lexical.analysis import stems


def cap_per_kind(kinds: Sequence[str], *, limit: int, weak: Container[int] = ()) -> list[int]:
    """Choose *limit* places of a ranking, in its order, with a soft cap on each kind.

    A kind that has its share gives way while another kind stands further down. Places that stay
    free go back to those that gave way.

    Args:
        kinds: The kind of each entity, best first.
        limit: How many are wanted; below 1 gives nothing.
        weak: The places that displace nothing: they are chosen last.
    """
    cap = math.ceil(parameters.DISPLAY_KIND_SHARE * limit)
    last = {kind: place for place, kind in enumerate(kinds) if place not in weak}
    chosen_by_kind: Counter[str] = Counter()
    chosen: list[int] = []
    waiting: list[int] = []
    for place, kind in enumerate(kinds):
        competes = any(at > place for other, at in last.items() if other != kind)
        if place in weak or len(chosen) >= limit or (chosen_by_kind[kind] >= cap and competes):
            waiting.append(place)
            continue
        chosen_by_kind[kind] += 1
        chosen.append(place)
    return sorted([*chosen, *waiting[: max(limit - len(chosen), 0)]])


def spread(kinds: Sequence[str], scores: Sequence[float], *, limit: int) -> list[int]:
    """Choose *limit* places of a ranking as `select` does, and fill up with what is too weak."""
    strong = {place for place, _ in _strong(kinds, scores, limit)}
    weak = {*range(len(kinds))} - strong
    return cap_per_kind(kinds, limit=limit, weak=weak)


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
    return max(2 * limit, parameters.DISPLAY_MIN_DEPTH)


def select(
    kinds: Sequence[str], scores: Sequence[float], *, limit: int, kept: Container[int] = ()
) -> list[tuple[int, float]]:
    """Choose which entities of a ranking are shown, in its order.

    Args:
        kinds: The kind of each entity, best first.
        scores: What they were ranked by, falling.
        limit: How many are wanted; below 1 gives nothing.
        kept: Places that compete however low their scores are.

    Returns:
        Their places in the ranking, and their scores on a scale from 0, the last candidate, to 1,
        the first. Other places below 0.2 are left out, however few remain.
    """
    strong = _strong(kinds, scores, limit, kept)
    return [strong[at] for at in cap_per_kind([kinds[place] for place, _ in strong], limit=limit)]


def _strong(
    kinds: Sequence[str], scores: Sequence[float], limit: int, kept: Container[int] = ()
) -> list[tuple[int, float]]:
    """Return the places that compete for *limit*, with their display scores, above the floor."""
    competing = first_per_kind(kinds, display_depth(limit))
    displays = scale_scores([scores[place] for place in competing])
    ranked = zip(competing, displays, strict=True)
    least = parameters.DISPLAY_MIN_SCORE
    return [(place, display) for place, display in ranked if display >= least or place in kept]


def scale_scores(scores: Sequence[float]) -> list[float]:
    """Stretch *scores* to 0 to 1, rounded to four digits; if all are equal, all become 1."""
    low, high = min(scores, default=0.0), max(scores, default=0.0)
    if low == high:
        return [1.0] * len(scores)
    return [round((score - low) / (high - low), 4) for score in scores]


def server_tools(tools: Sequence[Entity], query: str, *, limit: int) -> list[tuple[Entity, float]]:
    """Choose the tools of matched servers that the query is about, best first.

    At most max(3, ceil(0.6 x limit)); of one server at most its share of them, but two at least.
    Ties fall by server and name. A tool that holds no word of the query is left out.

    Args:
        tools: Of the matched servers, in any order.
        query: What was searched for.
        limit: How many entities the search was for.

    Returns:
        The tools, and their scores on a scale of their own, in (0, 1].
    """
    words = frozenset(stems(query))
    count = max(parameters.SERVER_TOOLS_MIN, math.ceil(parameters.SERVER_TOOLS_SHARE * limit))
    scored = [(tool, score) for tool in tools if (score := _score(tool, words))]
    servers = len({tool.server for tool, _ in scored})
    share = max(parameters.SERVER_TOOLS_PER_SERVER, math.ceil(count / max(servers, 1)))
    scored.sort(key=lambda pair: (-pair[1], pair[0].server, pair[0].name))
    chosen = first_per_kind([tool.server for tool, _ in scored], share)
    return [scored[at] for at in chosen[:count]]


def _score(tool: Entity, query: frozenset[str]) -> float:
    """Score a tool: each word earns 0.5 in its name, else 0.3 in its description.

    0.7 x what they earn together, at most 1, and 0.3 x the share of the words that earned.
    """
    in_name = query.intersection(stems(tool.name))
    described = len(query.intersection(stems(tool.description)) - in_name)
    if not in_name and not described:
        return 0.0
    earned = (
        parameters.TOOL_WORD_IN_NAME * len(in_name)
        + parameters.TOOL_WORD_IN_DESCRIPTION * described
    )
    breadth = (len(in_name) + described) / len(query)
    return round(parameters.TOOL_STRENGTH * min(1.0, earned) + parameters.TOOL_BREADTH * breadth, 4)


Chosen: TypeAlias = list[tuple[int, int, float]]
"""The number of the ranking, the position of the entity and its score; best first."""


def choose(
    lists: Sequence[RankedList],
    state: SearchState,
    kinds: Callable[[Positions], Sequence[str]],
    confidences: Callable[[Sequence[int]], Sequence[float]],
    min_confidence: float,
) -> tuple[Chosen, tuple[float, ...]]:
    """Choose the matches of a search.

    Args:
        lists: One for each query.
        state: The search. Its request says how many are wanted, and whether kinds share the places.
        kinds: Returns the kinds of the entities at positions.
        confidences: Returns the confidences of the entities at positions, for the first query.
        min_confidence: Matches below it compete for display by their scores alone, unless all fit.

    Returns:
        The matches, and their scores for display, if they were chosen for that.
    """
    request = state.request
    limit = request.limit
    if request.diversify:
        lists = [
            ranked.at(spread(kinds(ranked.positions), ranked.scores.tolist(), limit=limit))
            for ranked in lists
        ]
    chosen = interleave(lists, limit=limit)
    if not request.display_limit:
        return chosen, ()
    positions = np.array([position for _, position, _ in chosen], dtype=np.intp)
    scores = [score for _, _, score in chosen]
    fits = state.counts.eligible <= request.display_limit
    least = 0.0 if fits else min_confidence
    likely = enumerate(confidences(positions.tolist()))
    kept = {place for place, confidence in likely if confidence >= least}
    shown = select(kinds(positions), scores, limit=request.display_limit, kept=kept)
    return [chosen[place] for place, _ in shown], tuple(score for _, score in shown)


def best_of_each(lists: Sequence[RankedList], chosen: Chosen) -> list[int]:
    """Return the positions of the best of each of *lists* that is among *chosen*, each once."""
    matches = {position for _, position, _ in chosen}
    best = (position for ranked in lists for position in ranked.positions[:1].tolist())
    return [position for position in dict.fromkeys(best) if position in matches]
