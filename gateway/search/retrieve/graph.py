"""Query text -> scores by the graph's own text search. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gateway.index.eligibility import Mask
from gateway.index.tool_graph import ToolGraph
from gateway.search.query import Query
from graphs.text_search import score_documents, top_documents


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GraphHits:
    """What the graph matches of one query, by position, best first; empty if it was not asked."""

    scores: Mapping[int, float] = field(default_factory=dict)
    """> 0; comparable within one search only."""
    coverage: Mapping[int, float] = field(default_factory=dict)
    """Share of the query's words that the entity's node holds, by rarity, 0 to 1."""


def search_graph(graph: ToolGraph, query: Query, mask: Mask, *, limit: int) -> GraphHits:
    """Return the best *limit* of the eligible entities for *query*."""
    hits = top_documents(
        graph.index,
        query.tokens(query.graph_text),
        limit=limit,
        allowed=graph.allowed(mask),
    )
    positions = graph.row_positions[hits.rows].tolist()
    return GraphHits(
        scores=dict(zip(positions, hits.scores, strict=True)),
        coverage=dict(zip(positions, hits.coverage, strict=True)),
    )


def score_by_graph(graph: ToolGraph, query: Query, positions: Sequence[int]) -> GraphHits:
    """Score the entities at *positions* alone; some may have no document."""
    found = ((graph.index.rows.get(graph.nodes[position]), position) for position in positions)
    entity_of_row = {row: position for row, position in found if row is not None}
    scores, coverage = score_documents(
        graph.index, query.tokens(query.graph_text), list(entity_of_row)
    )
    columns = zip(scores, entity_of_row, entity_of_row.values(), coverage, strict=True)
    # Rows stand by label, which decides between equal scores.
    hits = sorted(
        (-score, row, position, share) for score, row, position, share in columns if score
    )
    return GraphHits(
        scores={position: -score for score, _, position, _ in hits},
        coverage={position: share for _, _, position, share in hits},
    )
