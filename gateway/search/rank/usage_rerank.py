"""Past calls -> a changed ranking: near ties are swapped, or associations re-score it. Pure.

Usage moves only the entities that may be listed and a few behind them. Entities that the query
calls by name stay in front.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from gateway.index.snapshot import Snapshot
from gateway.search.rank.fusion import RankedList
from gateway.search.ranking import Ranking
from gateway.usage.history import UsageSignals
from gateway.usage.rerank import (
    POOL_FACTOR,
    Associations,
    AssociativeCandidate,
    rank_by_association,
    rerank,
)


def rerank_by_usage(
    snapshot: Snapshot, ranking: Ranking, usage: UsageSignals, limit: int
) -> RankedList:
    """Return the order of *ranking* as past calls, and what searches returned, move it.

    Args:
        snapshot: The index.
        ranking: One query, ranked.
        usage: What the call log says.
        limit: How many matches are wanted.
    """
    ranked, head = ranking.ranked, POOL_FACTOR * limit
    positions = ranked.positions[:head].tolist()
    first = sum(1 for _ in takewhile(ranking.named.__contains__, positions))
    behind = positions[first:]
    scores = ranked.scores[first:head].tolist()
    order = list(range(len(behind)))
    if usage.associations is not None:
        order = _rank_by_association(snapshot, ranking, behind, scores, usage.associations)
    elif usage.multipliers:
        ids = [snapshot.entities[position].id for position in behind]
        order = rerank(ids, scores, usage.multipliers)
    indices = [*range(first), *(first + index for index in order)]
    return ranked.at([*indices, *range(len(positions), len(ranked.positions))])


def _rank_by_association(
    snapshot: Snapshot,
    ranking: Ranking,
    positions: Sequence[int],
    scores: Sequence[float],
    seen: Associations,
) -> list[int]:
    """Rank the entities at *positions* by *scores* and associations.

    Returns:
        Their indices, best first.
    """
    cosines: Sequence[float | None] = [None] * len(positions)
    if ranking.candidates is not None:
        cosines = ranking.candidates.cosines(positions)
    candidates = [
        AssociativeCandidate(
            id=snapshot.entities[position].id,
            rank_score=score,
            distance=None if cosine is None else 1 - cosine,
            degree=_degree(snapshot, position),
        )
        for position, score, cosine in zip(positions, scores, cosines, strict=True)
    ]
    indices = {candidate.id: index for index, candidate in enumerate(candidates)}
    return [indices[entity] for _, entity in rank_by_association(candidates, seen)]


def _degree(snapshot: Snapshot, position: int) -> int:
    """Return how many edges the entity at *position* has."""
    graph = snapshot.graph
    return graph.index.degree(graph.nodes[position]) if graph else 0
