"""How past use changes a ranking: near ties are swapped, or associations re-score it. Pure.

Use has a say only among those that may be shown and a few behind them. Entities that the query
calls by name stay in front.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from gateway.index.snapshot import Snapshot
from gateway.search.evidence import Ranking
from gateway.search.fusion import Order
from gateway.search.usage import compat
from gateway.search.usage.bounded import reranked
from gateway.search.usage.compat import Access, Candidate
from gateway.search.usage.signals import Exposure, Signals

_ROLES = ("related", "next_step", "prerequisite", "member", "consumes", "produces")


def used(snapshot: Snapshot, ranking: Ranking, use: Signals, *, limit: int) -> Order:
    """Give the order of *ranking* with what past use says.

    Args:
        snapshot: The index.
        ranking: One query, ranked.
        use: What calls say, and what searches returned.
        limit: How many matches are wanted.
    """
    order, head = ranking.order, compat.EXPANSION * limit
    spots = order.positions[:head].tolist()
    first = sum(1 for _ in takewhile(ranking.named.__contains__, spots))
    places = list(range(len(spots) - first))
    if use.exposure is not None:
        places = _remembered(snapshot, ranking, spots[first:], first, use.exposure)
    elif use.liked:
        ids = [snapshot.entities[spot].id for spot in spots[first:]]
        places = reranked(ids, order.scores[first:head].tolist(), use.liked)
    every = [*range(first), *(first + place for place in places)]
    every += range(len(spots), len(order.positions))
    return order.at(every)


def _remembered(
    snapshot: Snapshot, ranking: Ranking, spots: Sequence[int], first: int, exposure: Exposure
) -> list[int]:
    """Rank the entities at *spots*, which begin at place *first*, by association.

    Returns:
        Their places, best first.
    """
    cosines: Sequence[float | None] = [None] * len(spots)
    if ranking.found is not None:
        cosines = ranking.found.cosines(spots)
    ids = [snapshot.entities[spot].id for spot in spots]
    scores = ranking.order.scores[first : first + len(spots)].tolist()
    candidates = [
        Candidate(
            id=each,
            rank_score=score,
            distance=None if cosine is None else 1 - cosine,
            access=_access(snapshot, each, spot, exposure),
        )
        for each, spot, score, cosine in zip(ids, spots, scores, cosines, strict=True)
    ]
    places = dict(zip(ids, range(len(ids)), strict=True))
    found = compat.rank(candidates, exposure.pairs, now_s=exposure.now_s, limit=len(ids))
    return [places[each.id] for each in found]


def _access(snapshot: Snapshot, entity: str, spot: int, exposure: Exposure) -> Access:
    """Say how often an entity was returned, and how many edges of the graph it has."""
    seen = exposure.accesses.get(entity, _NEVER)
    return Access(
        count=seen.count, days=seen.days, last_s=seen.last_s, degree=_degree(snapshot, spot)
    )


def _degree(snapshot: Snapshot, spot: int) -> int:
    graph = snapshot.graph
    if graph is None:
        return 0
    node = graph.index.positions[graph.nodes[spot]]
    count = graph.index.adjacency.count
    return sum(count(node, role, way) for role in _ROLES for way in ("out", "in"))


_NEVER = Access()
