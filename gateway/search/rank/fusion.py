"""Evidence -> order. Pure.

The score of ``auto`` inside the vector pool is a plain sum of signals: see
`gateway.search.signals.every` for which there are.

* Entities that the query calls by their exact names come first, in the order of the query.
* Nothing else ranks. The graph never reorders matches.
* Ties break by name: positions are in the order of names.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from gateway.errors import Failed, StoreError, attempt_call
from gateway.index.eligibility import Positions
from gateway.runtime.vectors import Vector
from gateway.search.signals.signal import Pool, Signal


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
