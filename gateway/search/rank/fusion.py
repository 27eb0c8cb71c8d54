"""Evidence -> order. Pure.

The score of ``auto`` inside the vector pool, where z is in deviations from the mean of all eligible
entities, and the clause terms are those of a long request:

    z(cosine + 0.7 best clause cosine) + 0.3 z(BM25F) + 0.3 z(best clause BM25F)

* All tools of a server gain by its best one, the more the more clauses the request has.
* The tool nearest to each clause of a long request gains, so that no part of it is crowded out.
* Entities that the query calls by their exact names come first, in the order of the query.
* Nothing else ranks. The graph never reorders matches.
* Ties break by name: positions are in the order of names.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gateway.index.candidates import Candidates
from gateway.index.eligibility import Mask, Positions
from gateway.runtime.vectors import Distribution, Vector, deviations
from gateway.search.rank.parameters import (
    CLAUSE_GAIN,
    MAX_GAINING_CLAUSES,
    SERVER_GROUP_CLAUSES,
    SERVER_GROUP_WEIGHTS,
)


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


def fuse(
    candidates: Candidates,
    words: Sequence[Vector],
    *,
    mask: Mask,
    weight: float,
    server_ids: Positions,
    clause_count: int = 0,
) -> RankedList:
    """Rank the vector pool by vectors and words together.

    Args:
        candidates: The vector candidates.
        words: The scores of the whole catalog by the words of the request, and by those of its
            best clause if it is long; shape (n,) each.
        mask: Eligible entities, shape (n,).
        weight: What one deviation in words adds, in deviations of vectors.
        server_ids: The number of each entity's server, shape (n,).
        clause_count: How many clauses the request has, 0 for a short one.
    """
    positions = candidates.pool
    scores = candidates.deviations(candidates.strengths)
    scores += lexical_deviations(words, positions, mask, weight)
    scores += group_scores(server_ids, positions, scores, clause_count)
    scores += clause_gains(len(positions), candidates.nearest_to_clauses(MAX_GAINING_CLAUSES))
    return RankedList.of(positions, scores)


def lexical_deviations(
    words: Sequence[Vector], positions: Positions, mask: Mask, weight: float
) -> Vector:
    """Return the scores by words at *positions*, in deviations, times *weight*."""
    total = np.zeros(len(positions), dtype=np.float32)
    for scores in words:
        total += weight * deviations(scores[positions], Distribution.of(scores[mask]))
    return total


def group_scores(
    ids: Positions,
    positions: Positions,
    scores: Vector,
    clauses: int,
    weights: Sequence[float] = SERVER_GROUP_WEIGHTS,
) -> Vector:
    """Return what servers add to the scores at *positions*, in deviations.

    A request is mostly served by few servers, one of many clauses all the more: the better the best
    tool of its server fits, the likelier a tool is. The smaller the server's part of the catalog,
    the more that says. All tools of a server gain the same, so that no sibling overtakes the tool
    that lifts it.

    Args:
        ids: The number of each entity's server without gaps, shape (n,).
        positions: Those that are ranked, each once, shape (m,).
        scores: Their scores, in deviations, shape (m,).
        clauses: How many clauses the request has, 0 for a short one.
        weights: What a server's best score counts, at each of `SERVER_GROUP_CLAUSES`.
    """
    groups = ids[positions]
    if len(ids) < 2:
        return np.zeros(len(groups), dtype=np.float32)
    weight = np.float32(np.interp(clauses, SERVER_GROUP_CLAUSES, weights))
    # 1 for a server of one tool, 0 for one that is the whole catalog.
    sizes = np.bincount(ids)[groups]
    rarity = (np.log(len(ids) / sizes) / math.log(len(ids))).astype(np.float32)
    _, places = np.unique(groups, return_inverse=True)
    best = np.zeros(len(groups), dtype=np.float32)
    np.maximum.at(best, places, scores)
    added: Vector = weight * rarity * best[places]
    return added


def clause_gains(size: int, nearest: Sequence[int], gain: float = CLAUSE_GAIN) -> Vector:
    """Return the gains of the tools that are nearest to the clauses of a request, in deviations.

    Args:
        size: Number of tools that are ranked.
        nearest: Index of the tool nearest to each clause. A tool gains once, however many clauses
            it serves.
        gain: Gain of one tool.

    Returns:
        Shape (size,); zeros for a request without clauses.
    """
    gains = np.zeros(size, dtype=np.float32)
    gains[list(nearest)] = gain
    return gains


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
