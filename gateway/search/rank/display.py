"""Choice of the matches of a search, and display scores for people. Pure.

One kind or one server cannot take all ranks of a result. Displayed entities are chosen from the
best `display_depth` entities of each kind. Display scores are scaled over all of these, so that the
last displayed entity does not always get 0.
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
    """Choose *limit* indices of *kinds*, in order, with a soft maximum for each kind.

    *kinds* are the kinds of ranked entities. A kind at its maximum is skipped as long as another
    kind follows. Skipped indices fill the ranks that remain free, and so do indices in *weak*.
    """
    cap = math.ceil(parameters.DISPLAY_KIND_SHARE * limit)
    last = {kind: place for place, kind in enumerate(kinds) if place not in weak}
    chosen_by_kind: Counter[str] = Counter()
    chosen: list[int] = []
    waiting: list[int] = []
    for place, kind in enumerate(kinds):
        competes = any(last_place > place for other, last_place in last.items() if other != kind)
        if place in weak or len(chosen) >= limit or (chosen_by_kind[kind] >= cap and competes):
            waiting.append(place)
            continue
        chosen_by_kind[kind] += 1
        chosen.append(place)
    return sorted([*chosen, *waiting[: max(limit - len(chosen), 0)]])


def spread(kinds: Sequence[str], scores: Sequence[float], *, limit: int) -> list[int]:
    """Choose *limit* ranks like `select`, then fill up with ranks that `select` left out."""
    strong = {place for place, _ in _competing_ranks(kinds, scores, limit)}
    weak = {*range(len(kinds))} - strong
    return cap_per_kind(kinds, limit=limit, weak=weak)


def first_per_kind(kinds: Sequence[str], count: int) -> list[int]:
    """Return the indices of the first *count* entities of each kind."""
    counts: Counter[str] = Counter()
    places = []
    for place, kind in enumerate(kinds):
        counts[kind] += 1
        if counts[kind] <= count:
            places.append(place)
    return places


def display_depth(limit: int) -> int:
    """Return the number of entities of each kind considered for *limit* displayed ranks."""
    return max(2 * limit, parameters.DISPLAY_MIN_DEPTH)


def select(
    kinds: Sequence[str], scores: Sequence[float], *, limit: int, exempt: Container[int] = ()
) -> list[tuple[int, float]]:
    """Choose at most *limit* ranked entities to display, in order.

    *kinds* and descending *scores* describe the ranked entities.

    Returns:
        Pairs of index and display score, from 0 for the last considered entity to 1 for the first.
        Indices with a display score below 0.2 that are not in *exempt* are left out.
    """
    strong = _competing_ranks(kinds, scores, limit, exempt)
    return [
        strong[index] for index in cap_per_kind([kinds[place] for place, _ in strong], limit=limit)
    ]


def _competing_ranks(
    kinds: Sequence[str], scores: Sequence[float], limit: int, exempt: Container[int] = ()
) -> list[tuple[int, float]]:
    competing = first_per_kind(kinds, display_depth(limit))
    displays = scale_scores([scores[place] for place in competing])
    ranked = zip(competing, displays, strict=True)
    minimum = parameters.DISPLAY_MIN_SCORE
    return [(place, display) for place, display in ranked if display >= minimum or place in exempt]


def scale_scores(scores: Sequence[float]) -> list[float]:
    """Scale *scores* to 0 to 1, rounded to four digits. Equal scores all become 1."""
    low, high = min(scores, default=0.0), max(scores, default=0.0)
    if low == high:
        return [1.0] * len(scores)
    return [round((score - low) / (high - low), 4) for score in scores]


def server_tools(tools: Sequence[Entity], query: str, *, limit: int) -> list[tuple[Entity, float]]:
    """Choose the tools that contain words of the query, best first.

    At most max(3, ceil(0.6 x limit)) tools are chosen. One server gets at most its equal share of
    them, or two if the share is smaller. Ties are ordered by server and name.

    Returns:
        Pairs of tool and score, in (0, 1]. These scores are not comparable with scores of matches.
    """
    words = frozenset(stems(query))
    count = max(parameters.SERVER_TOOLS_MIN, math.ceil(parameters.SERVER_TOOLS_SHARE * limit))
    scored = [(tool, score) for tool in tools if (score := _score_tool(tool, words))]
    servers = len({tool.server for tool, _ in scored})
    share = max(parameters.SERVER_TOOLS_PER_SERVER, math.ceil(count / max(servers, 1)))
    scored.sort(key=lambda pair: (-pair[1], pair[0].server, pair[0].name))
    chosen = first_per_kind([tool.server for tool, _ in scored], share)
    return [scored[index] for index in chosen[:count]]


def _score_tool(tool: Entity, query: frozenset[str]) -> float:
    """Score a tool, 0 to 1, by *query*, the stems of the query's words."""
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
"""The matches, best first: index of the ranking, position and score."""


def choose(
    lists: Sequence[RankedList],
    state: SearchState,
    kinds: Callable[[Positions], Sequence[str]],
    confidences: Callable[[Sequence[int]], Sequence[float]],
    min_confidence: float,
) -> tuple[Chosen, tuple[float, ...]]:
    """Choose the matches of a search, from one ranking for each query.

    With a display limit, a match is displayed if the first query gives it *min_confidence*, or else
    if its display score suffices. If the limit admits all eligible entities, all are displayed.

    Returns:
        The matches, and their display scores (empty without a display limit).
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
    minimum = 0.0 if fits else min_confidence
    likely = enumerate(confidences(positions.tolist()))
    confident = {place for place, confidence in likely if confidence >= minimum}
    displayed = select(kinds(positions), scores, limit=request.display_limit, exempt=confident)
    return [chosen[place] for place, _ in displayed], tuple(score for _, score in displayed)


def best_of_each(lists: Sequence[RankedList], chosen: Chosen) -> list[int]:
    """Return the best position of each ranking if it is a match, without duplicates."""
    matches = {position for _, position, _ in chosen}
    best = (position for ranked in lists for position in ranked.positions[:1].tolist())
    return [position for position in dict.fromkeys(best) if position in matches]
