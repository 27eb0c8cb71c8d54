"""Ranking of candidates by the sum of their signals, and reranking by past calls. Pure.

Ties are ordered by name, because positions are in the order of names.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile
from typing import TypeVar

import numpy as np

from gateway.errors import Failed, StoreError, attempt_call
from gateway.index.eligibility import Positions
from gateway.runtime.vectors import Vector
from gateway.search.signals.signal import Pool, Signal
from gateway.types import Entity

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RankedList:
    """Ranked entities, best first."""

    positions: Positions
    """Positions in the snapshot, without duplicates, shape (m,)."""
    scores: Vector
    """Score of each of `positions`, shape (m,). Comparable within one search."""

    @classmethod
    def of(cls, positions: Positions, scores: Vector) -> RankedList:
        """Sort *positions*, which have no duplicates, by *scores*. Ties are ordered by position."""
        order = np.lexsort((positions, -scores))
        return cls(positions=positions[order], scores=np.asarray(scores[order], dtype=np.float32))

    def at(self, indices: Sequence[int]) -> RankedList:
        """Return the entities at *indices* of this list, in the order of *indices*."""
        index = np.asarray(indices, dtype=np.intp)
        return RankedList(positions=self.positions[index], scores=self.scores[index])


def fuse(pool: Pool, signals: Sequence[Signal]) -> tuple[RankedList, dict[str, Vector]]:
    """Rank the candidates by the weighted sum of *signals*. A failing signal adds nothing.

    Returns:
        The ranking, and the contribution of each signal to the scores of the candidates, shape
        (m,), keyed by signal name. Failed signals are absent.

    Raises:
        StoreError: If the vectors cannot be read.
    """
    terms: dict[str, Vector] = {}
    scores = np.zeros(len(pool.positions), dtype=np.float32)
    for signal in signals:
        term = attempt_plugin(partial(_signal_term, signal, replace(pool, scores=scores)))
        if not isinstance(term, Failed):
            terms[signal.name] = term
            scores = scores + term
    return RankedList.of(pool.positions, scores), terms


def attempt_plugin(work: Callable[[], T]) -> T | Failed:
    """Call a signal or ranking policy, and return its exception as a `Failed`.

    Raises:
        StoreError: If the vectors cannot be read, which is not a fault of the signal or policy.
    """
    result = attempt_call(work)
    if isinstance(result, Failed) and isinstance(result.error, StoreError):
        raise result.error
    return result


def _signal_term(signal: Signal, pool: Pool) -> Vector:
    term = np.asarray(signal.weight * signal.score(pool), dtype=np.float32)
    if term.shape != pool.scores.shape or not np.isfinite(term).all():
        raise ValueError(f"the signal {signal.name!r} must return one number for each candidate")
    return term


def pin_exact_names(ranked: RankedList, named: Sequence[int]) -> RankedList:
    """Put the entities at *named* before all others, even if *ranked* does not contain them."""
    if not named:
        return ranked
    is_unnamed = ~np.isin(ranked.positions, named)
    scores = dict(zip(ranked.positions.tolist(), ranked.scores.tolist(), strict=True))
    top = max(ranked.scores.tolist(), default=1.0)
    head = [max(scores.get(position, 0.0), top) for position in named]
    return RankedList(
        positions=np.concatenate([np.asarray(named, np.intp), ranked.positions[is_unnamed]]),
        scores=np.concatenate([np.asarray(head, np.float32), ranked.scores[is_unnamed]]),
    )


def interleave(lists: Sequence[RankedList], *, limit: int) -> list[tuple[int, int, float]]:
    """Take the next best entity of each list in turn, without duplicates, *limit* entities at most.

    Returns:
        For each entity: index of its list, position and score.
    """
    queues = {
        number: iter(zip(ranked.positions.tolist(), ranked.scores.tolist(), strict=True))
        for number, ranked in enumerate(lists)
    }
    chosen: dict[int, tuple[int, int, float]] = {}
    while queues and len(chosen) < limit:
        for number, queue in tuple(queues.items()):
            following = next((pair for pair in queue if pair[0] not in chosen), None)
            if following is None:
                del queues[number]
            elif len(chosen) < limit:
                chosen[following[0]] = (number, *following)
    return list(chosen.values())


TIE_SHARE = 0.05
"""Two scores are near ties if they differ by at most this share of the ranking's score range."""
POOL_FACTOR = 3
"""Number of entities that past calls may reorder, as a multiple of the limit of matches."""


def rerank_by_usage(
    ranked: RankedList,
    multipliers: Mapping[str, float],
    *,
    named: Container[int],
    entities: Sequence[Entity],
    limit: int,
) -> RankedList:
    """Reorder near ties by *multipliers*. Entities at *named* stay first.

    An entity that moves up gets the best score of the entities below it, so that scores stay
    descending.
    """
    head = ranked.positions[: POOL_FACTOR * limit].tolist()
    first = sum(1 for _ in takewhile(named.__contains__, head))
    ids = [entities[position].id for position in head[first:]]
    order = rerank(ids, ranked.scores[first : len(head)].tolist(), multipliers)
    moved = [*range(first), *(first + index for index in order)]
    reranked = ranked.at([*moved, *range(len(head), len(ranked.positions))])
    return replace(reranked, scores=np.maximum.accumulate(reranked.scores[::-1])[::-1])


def rerank(
    ids: Sequence[str], scores: Sequence[float], multipliers: Mapping[str, float]
) -> list[int]:
    """Return the indices of a ranking in their new order.

    An entity moves before a better one only if they are near ties and its own past calls ended
    better. *scores* are descending. *multipliers* are 0.85 to 1.15; 1 for absent ids.
    """
    if not scores:
        return []
    lowest = scores[-1]
    spread = scores[0] - lowest
    tie = TIE_SHARE * spread
    # Scale the scores to 1 to 2, so that a factor has the same effect along the whole ranking.
    scaled = [1 + (score - lowest) / spread if spread else 1.0 for score in scores]
    pairs = zip(ids, scaled, strict=True)
    values = [value * multipliers.get(entity, 1.0) for entity, value in pairs]
    order: list[int] = []
    for index in range(len(ids)):
        place = len(order)
        while place and scores[order[place - 1]] - scores[index] <= tie:
            if values[order[place - 1]] >= values[index]:
                break
            place -= 1
        order.insert(place, index)
    return order
