"""How past calls move a ranking: only what is about equally good without them. Pure."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile

import numpy as np

from gateway.search.rank.fusion import RankedList
from gateway.types import Entity

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
