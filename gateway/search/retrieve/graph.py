"""Query text -> scores by the graph's own text search. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gateway.index.eligibility import Mask
from gateway.search.index.toolgraph import ToolGraph
from gateway.search.query import Query
from graphs.text_search import among, best


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GraphHits:
    """What the graph matches of one query, by position, best first; empty if it was not asked."""

    scores: Mapping[int, float] = field(default_factory=dict)
    """> 0; comparable within one search only."""
    coverage: Mapping[int, float] = field(default_factory=dict)
    """Share of the query's words that the entity's node holds, by rarity, 0 to 1."""


def search_graph(graph: ToolGraph, query: Query, mask: Mask, *, limit: int) -> GraphHits:
    """Return the best *limit* of the eligible entities for *query*."""
    hits = best(
        graph.index,
        query.tokens(query.graph_text),
        limit=limit,
        allowed=graph.allowed(mask),
    )
    positions = graph.owners[hits.places].tolist()
    return GraphHits(
        scores=dict(zip(positions, hits.scores, strict=True)),
        coverage=dict(zip(positions, hits.coverage, strict=True)),
    )


def score_by_graph(graph: ToolGraph, query: Query, positions: Sequence[int]) -> GraphHits:
    """Score the entities at *positions* alone; some may have no node."""
    index = graph.index
    owners = zip(graph.places[positions].tolist(), positions, strict=True)
    entity_of_node = {node: position for node, position in owners if node >= 0}
    nodes = list(entity_of_node)
    scores, coverage = among(index, query.tokens(query.graph_text), nodes)
    ranks = index.ranks[nodes].tolist()
    rows = zip(scores, ranks, entity_of_node.values(), coverage, strict=True)
    hits = sorted((-score, rank, position, share) for score, rank, position, share in rows if score)
    return GraphHits(
        scores={position: -score for score, _, position, _ in hits},
        coverage={position: share for _, _, position, share in hits},
    )
