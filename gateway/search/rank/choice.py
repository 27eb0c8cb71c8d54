"""Rankings -> the matches of a search. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from gateway.index.eligibility import Positions
from gateway.search.rank.display import select, spread
from gateway.search.rank.fusion import RankedList, interleave
from gateway.search.state import SearchState

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
