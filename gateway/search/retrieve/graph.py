"""Query text -> scores by the words of the graph's nodes. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from gateway.index.eligibility import Mask, Positions
from gateway.index.tool_graph import ToolGraph
from gateway.runtime.vectors import top
from gateway.search.query import Query
from graphs.lexical.explain import Hits


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GraphHits:
    """What the graph matches of one query, by position, best first; empty if it was not asked."""

    scores: Mapping[int, float] = field(default_factory=dict)
    """> 0; comparable within one search only."""
    coverage: Mapping[int, float] = field(default_factory=dict)
    """Share of the query's words that the entity's node holds, by rarity, 0 to 1."""


def search_graph(graph: ToolGraph, query: Query, mask: Mask, *, limit: int) -> GraphHits:
    """Return the best *limit* of the eligible entities for *query*."""
    hits = graph.index.texts.match(query.tokens(query.graph_text))
    eligible = np.where(mask, hits.scores, np.float32(0))
    best = top(eligible, limit)
    return _graph_hits(hits, best[eligible[best] > 0])


def score_by_graph(graph: ToolGraph, query: Query, positions: Sequence[int]) -> GraphHits:
    """Score the entities at *positions* alone."""
    hits = graph.index.texts.match(query.tokens(query.graph_text))
    asked = np.asarray(positions, dtype=np.intp)
    return _graph_hits(hits, asked[(-hits.scores[asked]).argsort(kind="stable")])


def _graph_hits(hits: Hits, ranked: Positions) -> GraphHits:
    scores, shares = hits.scores[ranked].tolist(), hits.coverage[ranked].tolist()
    found = [row for row in zip(ranked.tolist(), scores, shares, strict=True) if row[1] > 0]
    return GraphHits(
        scores={position: score for position, score, _ in found},
        coverage={position: share for position, _, share in found},
    )
