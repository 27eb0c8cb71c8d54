"""Query -> evidence: vectors, words, the graph's words, and exact names. Pure.

Each looks at the eligible entities alone, or scores all and leaves the choice to the ranking.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from gateway.index.eligibility import Mask, Positions
from gateway.index.snapshot import Snapshot
from gateway.index.tool_graph import ToolGraph
from gateway.index.vectors import ScanResult, VectorIndex, VectorQuery
from gateway.options import SearchOptions
from gateway.runtime.vectors import Vector, top
from gateway.search.query import Query
from graphs.lexical.bm25_index import BM25Index
from graphs.lexical.explain import AnalyzedQuery, DocumentMatches, Hits

_IDENTIFIER = re.compile(r"[^\s\"'`(),;:!?]+")
_NOT_PLAIN = re.compile(r"[_\-./]|[a-z0-9][A-Z]")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Candidates:
    """The entities nearest to one query."""

    index: VectorIndex
    vectors: VectorQuery
    """The query's."""
    scan: ScanResult
    window: frozenset[int]
    """Positions that supplements may come from: the head of the pool, bounded by rank and score."""

    @property
    def pool(self) -> Positions:
        """The positions of the nearest eligible entities, best first."""
        return self.scan.pool

    @property
    def strengths(self) -> Vector:
        """What the pool is ranked by: cosines, with those of a long request's best clause."""
        return self.scan.strengths

    def deviations(self, strengths: Vector) -> Vector:
        """Return *strengths* in deviations from the mean of all eligible entities."""
        moments = self.scan.moments
        if moments.spread <= 0:
            return np.zeros(len(strengths), dtype=np.float32)
        return np.asarray((strengths - moments.mean) / moments.spread, dtype=np.float32)

    def strengths_at(self, positions: Positions) -> Vector:
        """Return the exact strength at *positions*, in the pool or not, shape (len(positions),)."""
        return self._scores_at(positions)[1]

    def cosines(self, positions: Sequence[int]) -> list[float]:
        """Return the exact best cosine over the query's texts at *positions*, -1 to 1."""
        in_pool = zip(self.scan.pool.tolist(), self.scan.cosines.tolist(), strict=True)
        cosines = dict(in_pool) if self.scan.dense is None else {}
        if others := [position for position in positions if position not in cosines]:
            exact = self._scores_at(np.asarray(others, dtype=np.intp))[0].tolist()
            cosines.update(zip(others, exact, strict=True))
        return [cosines[position] for position in positions]

    def _scores_at(self, positions: Positions) -> tuple[Vector, Vector]:
        if self.scan.dense is None:
            return self.vectors.score(self.index.rows(positions))
        cosines, strengths = self.scan.dense
        return cosines[positions], strengths[positions]


def find_candidates(
    index: VectorIndex, vectors: VectorQuery, *, mask: Mask, limit: int, options: SearchOptions
) -> Candidates:
    """Rank the eligible entities of *index* by their cosines with a query.

    Args:
        index: The catalog's vectors.
        vectors: The query's.
        mask: Eligible entities, shape (n,).
        limit: How many matches are wanted.
        options: Sizes of pool and window.
    """
    scan = index.search(vectors, mask=mask, count=max(limit, options.pool(limit)))
    window = window_of(scan.pool, scan.strengths, limit, options, mean=scan.moments.mean)
    return Candidates(index=index, vectors=vectors, scan=scan, window=window)


def window_of(
    positions: Positions, scores: Vector, limit: int, options: SearchOptions, *, mean: float = 0.0
) -> frozenset[int]:
    """Return the head of a ranking that supplements may come from, bounded by rank and score.

    Args:
        positions: Best first.
        scores: What they were ranked by.
        limit: How many matches are wanted.
        options: Size and margin of the window.
        mean: The score from which the margin counts.
    """
    head = scores[: options.window(limit)]
    if head.size == 0:
        return frozenset()
    floor = mean + options.window_margin * (float(head[0]) - mean)
    return frozenset(positions[: len(head)][head >= floor].tolist())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LexicalMatch:
    """How one query reads in the catalog's words, over all its forms."""

    index: BM25Index
    best: AnalyzedQuery
    """The form of the query that the catalog matches most of. Confidence is measured by it, and
    explanations quote it."""

    def explain(self, positions: Sequence[int]) -> DocumentMatches:
        """Return what the entities at *positions* hold of that form."""
        return self.index.document_matches(self.best, positions)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LexicalScores:
    """The scores of every entity, shape (n,) each."""

    scores: Vector
    """BM25F, the best over the forms of the query, >= 0."""
    coverage: Vector
    """Share of the query's words that each entity holds, by rarity, 0 to 1."""
    clauses: Vector | None = None
    """BM25F of the clause that matches each entity best, >= 0; None for a short request."""


def match_terms(index: BM25Index, query: Query) -> LexicalMatch:
    """Resolve *query* in the words of *index*, without looking at entities for a single form."""
    texts = query.confidence_texts
    if len(texts) == 1:
        return LexicalMatch(index=index, best=index.analyze(query.tokens(texts[0])))
    forms = [index.match(query.tokens(text)) for text in texts]
    return LexicalMatch(index=index, best=max(forms, key=_max_coverage))


def score_lexical(index: BM25Index, query: Query) -> tuple[LexicalScores, LexicalMatch]:
    """Score every entity by the words of *query*."""
    texts = dict.fromkeys((*query.confidence_texts, *query.texts))
    hits = {text: index.match(query.tokens(text)) for text in texts}
    best = max((hits[text] for text in query.confidence_texts), key=_max_coverage)
    clauses = [index.match(query.tokens(text)).scores for text in query.clauses]
    scores = LexicalScores(
        scores=_maximum(form.scores for form in hits.values()),
        coverage=best.coverage,
        clauses=_maximum(clauses) if clauses else None,
    )
    return scores, LexicalMatch(index=index, best=best)


def _max_coverage(hits: Hits) -> float:
    return float(hits.coverage.max(initial=0.0))


def _maximum(scores: Iterable[Vector]) -> Vector:
    rows = list(scores)
    return rows[0] if len(rows) == 1 else np.maximum.reduce(rows)


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


def find_named(snapshot: Snapshot, query: str, mask: Mask) -> list[int]:
    """Return the positions of the eligible entities that *query* calls by name, in its order.

    The whole query may be a name, whatever stands for its spaces. Within a longer query only words
    that look like identifiers count, so that ``run`` in a sentence names nothing.
    """
    names = [query]
    if _NOT_PLAIN.search(query):
        bare = (word.strip(".-/") for word in _IDENTIFIER.findall(query))
        names += (word for word in bare if _NOT_PLAIN.search(word))
    positions = [at for name in names for at in snapshot.named(name)]
    return [position for position in dict.fromkeys(positions) if mask[position]]
