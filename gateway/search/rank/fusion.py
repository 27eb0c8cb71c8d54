"""Evidence -> order. Pure.

The score of ``auto`` inside the vector pool is a plain sum of signals: see
`gateway.search.signals.every` for which there are.

* Entities that the query calls by their exact names come first, in the order of the query.
* Nothing else ranks. The graph never reorders matches.
* Ties break by name: positions are in the order of names.

How past calls move a ranking: only what is about equally good without them. Pure.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile

import numpy as np

from gateway.errors import Failed, StoreError, attempt_call
from gateway.index.eligibility import Positions
from gateway.runtime.vectors import Vector
from gateway.search.signals.signal import Pool, Signal
from gateway.types import Entity


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RankedList:
    """Entities, best first; empty if there are none."""

    positions: Positions
    """Each once, shape (m,)."""
    scores: Vector
    """One for each position, shape (m,), comparable within one search."""

    @classmethod
    def of(cls, positions: Positions, scores: Vector) -> RankedList:
        """Sort *positions*, each once, by *scores*; ties by position."""
        order = np.lexsort((positions, -scores))
        return cls(positions=positions[order], scores=np.asarray(scores[order], dtype=np.float32))

    def at(self, indices: Sequence[int]) -> RankedList:
        """Return the entities at these indices, in their order."""
        index = np.asarray(indices, dtype=np.intp)
        return RankedList(positions=self.positions[index], scores=self.scores[index])


def fuse(pool: Pool, signals: Sequence[Signal]) -> tuple[RankedList, dict[str, Vector]]:
    """Rank the candidates by the sum of *signals*. One that fails adds nothing.

    Args:
        pool: The candidates.
        signals: In the order of the sum; see `gateway.search.signals.every.all_signals`.

    Returns:
        The ranking, and what each signal adds to the score of each of the pool, shape (m,), by the
        signal's name; a signal that failed is absent.

    Raises:
        StoreError: The vectors cannot be read.
    """
    terms: dict[str, Vector] = {}
    scores = np.zeros(len(pool.positions), dtype=np.float32)
    for signal in signals:
        term = attempt_call(partial(_term, signal, replace(pool, scores=scores)))
        if not isinstance(term, Failed):
            terms[signal.name] = term
            scores = scores + term
        elif isinstance(term.error, StoreError):
            raise term.error
    return RankedList.of(pool.positions, scores), terms


def _term(signal: Signal, pool: Pool) -> Vector:
    """Return what *signal* adds to each candidate.

    Raises:
        ValueError: It is not one number a candidate.
    """
    term = np.asarray(signal.weight * signal.score(pool), dtype=np.float32)
    if term.shape != pool.scores.shape or not np.isfinite(term).all():
        raise ValueError(f"the signal {signal.name!r} has to return one number a candidate")
    return term


def pin_exact_names(ranked: RankedList, named: Sequence[int]) -> RankedList:
    """Put the entities at *named* before all others, in that order; none of them needs a score."""
    if not named:
        return ranked
    rest = ~np.isin(ranked.positions, named)
    scores = dict(zip(ranked.positions.tolist(), ranked.scores.tolist(), strict=True))
    top = max(ranked.scores.tolist(), default=1.0)
    head = [max(scores.get(position, 0.0), top) for position in named]
    return RankedList(
        positions=np.concatenate([np.asarray(named, np.intp), ranked.positions[rest]]),
        scores=np.concatenate([np.asarray(head, np.float32), ranked.scores[rest]]),
    )


def interleave(lists: Sequence[RankedList], *, limit: int) -> list[tuple[int, int, float]]:
    """Take the next best of each list in turn, each entity once.

    Returns:
        The list's number, the entity's position and its score there, at most *limit* of them.
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
"""Two scores are near ties if they differ by less than this share of the range of the ranking."""
POOL_FACTOR = 3
"""How many candidates are ranked for each that is wanted."""


def rerank_by_usage(
    ranked: RankedList,
    multipliers: Mapping[str, float],
    *,
    named: Container[int],
    entities: Sequence[Entity],
    limit: int,
) -> RankedList:
    """Swap near ties by how past calls ended.

    Only entities that may be listed and a few behind them move; exact names stay in front. What
    passes a better one gets its score, so that scores still fall.

    Args:
        ranked: One query, ranked.
        multipliers: By entity id; see `UsageSignals.multipliers`.
        named: The positions that the query calls by their exact names.
        entities: By position.
        limit: How many matches are wanted.
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
