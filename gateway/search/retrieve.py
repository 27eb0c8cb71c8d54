"""Query -> evidence: vectors, words, the graph's words, and exact names. Pure.

Each looks at the eligible entities alone, or scores all and leaves the choice to the ranking.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gateway.index.candidates import Candidates, CatalogVectors, VectorQuery
from gateway.index.eligibility import Mask, Positions
from gateway.index.snapshot import Snapshot
from gateway.index.tool_graph import ToolGraph
from gateway.options import SearchOptions
from gateway.runtime.vectors import Vector
from gateway.search.query import Query
from gateway.search.rank.fusion import RankedList
from gateway.search.rank.parameters import REWRITE_SHARE, SMALL_CATALOG
from gateway.search.state import SearchState
from graphs.lexical.bm25_index import BM25Index
from graphs.lexical.query import AnalyzedQuery, Hits

_IDENTIFIER = re.compile(r"[^\s\"'`(),;:!?]+")
_NOT_PLAIN = re.compile(r"[_\-./]|[a-z0-9][A-Z]")


def compare_vectors(
    index: CatalogVectors, lexical: BM25Index, query: Query, *, mask: Mask
) -> Query:
    """Weigh a rewrite that contradicts in words by its vector.

    It does not contradict if it is nearer to the query than any entity. Else its vector counts by
    its share; or whole, if the query is foreign and less near to the entities than the rewrite is,
    as where the model does not know the query's language.
    """
    *_, original, english = query.vectors.texts
    alone = [
        VectorQuery(texts=text[None], clauses=query.vectors.clauses[:0])
        for text in (original, english)
    ]
    nearest = [index.search(text, mask=mask, count=1).cosines for text in alone]
    best, rewritten = (float(cosines.max(initial=-1.0)) for cosines in nearest)
    if float(np.dot(original, english)) >= best:
        return replace(query, contradicts=False)
    readings = [lexical.analyze(query.tokens(text)) for text in query.texts[-2:]]
    if rewritten > best and _is_foreign(*readings):
        return query
    mean = original + np.float32(REWRITE_SHARE) * (english - original)
    texts = np.stack([*query.vectors.texts[:-1], mean])
    return replace(query, vectors=replace(query.vectors, texts=texts))


def _is_foreign(original: AnalyzedQuery, english: AnalyzedQuery) -> bool:
    """Return whether the catalog knows hardly a word of a query, but words of its rewrite."""
    return original.known_share < REWRITE_SHARE * english.known_share


def supplement_window(
    state: SearchState, ranked: RankedList, candidates: Candidates | None
) -> frozenset[int]:
    """Return the positions of *ranked* that supplements may come from."""
    limit, options = state.request.limit, state.options
    if candidates is not None:
        return candidate_window(candidates, limit, options)
    eligible = int(np.count_nonzero(state.mask))
    return window_of(ranked.positions, ranked.scores, limit, options, eligible=eligible)


def candidate_window(candidates: Candidates, limit: int, options: SearchOptions) -> frozenset[int]:
    """Return the positions that the supplements of *limit* matches may come from."""
    return window_of(
        candidates.pool,
        candidates.strengths,
        limit,
        options,
        eligible=candidates.eligible,
        mean=candidates.moments.strengths.mean,
    )


def window_of(
    positions: Positions,
    scores: Vector,
    limit: int,
    options: SearchOptions,
    *,
    eligible: int,
    mean: float = 0.0,
) -> frozenset[int]:
    """Return the head of a ranking that supplements may come from, bounded by rank and score.

    Args:
        positions: Best first.
        scores: What they were ranked by.
        limit: How many matches are wanted.
        options: Size and margin of the window.
        eligible: How many entities were ranked: among few, relatives of a match lie far from the
            best, and the margin counts in proportion.
        mean: The score from which the margin counts.
    """
    head = scores[: options.window(limit)]
    if head.size == 0:
        return frozenset()
    margin = options.window_margin * min(1.0, eligible / SMALL_CATALOG)
    floor = mean + margin * (float(head[0]) - mean)
    return frozenset(positions[: len(head)][head >= floor].tolist())


def read_words(index: BM25Index, query: Query) -> AnalyzedQuery:
    """Resolve the words of *query* without scoring anything, if it has one form."""
    texts = query.confidence_texts
    if len(texts) == 1:
        return index.analyze(query.tokens(texts[0]))
    return max(_match(index, query, texts), key=_max_coverage)


def score_lexical(index: BM25Index, query: Query) -> Hits:
    """Score every entity by the words of *query*.

    Returns:
        The form of the query that the catalog matches most of, by which confidence is measured;
        its scores are the best over all forms.
    """
    forms = _match(index, query, query.confidence_texts)
    with_context = _match(index, query, query.texts) if query.context else []
    scores = np.maximum.reduce([form.scores for form in (*forms, *with_context)])
    return replace(max(forms, key=_max_coverage), scores=scores)


def score_clauses(index: BM25Index, query: Query) -> list[Vector]:
    """Return each entity's best score over the clauses of *query*; no array for a short query."""
    clauses = [index.match(query.tokens(text)).scores for text in query.clauses]
    return [np.maximum.reduce(clauses)] if clauses else []


def _match(index: BM25Index, query: Query, texts: Sequence[str]) -> list[Hits]:
    """Match each of *texts*, forms of *query* of which the English one is the last."""
    hits = [index.match(query.tokens(text)) for text in texts]
    if query.contradicts:
        hits[-1] = _mean(hits[-2], hits[-1])
    return hits


def _mean(original: Hits, english: Hits) -> Hits:
    """Let a rewrite that contradicts count by its share; alone if the query is foreign."""
    if _is_foreign(original, english):
        return english
    share = np.float32(REWRITE_SHARE)
    # The scores of a long query and of a short one do not compare.
    scale = original.scores.max(initial=0.0) / (english.scores.max(initial=0.0) or 1.0)
    scores = original.scores + share * np.maximum(scale * english.scores - original.scores, 0)
    coverage = original.coverage + share * np.maximum(english.coverage - original.coverage, 0)
    return replace(original, scores=scores, coverage=coverage)


def _max_coverage(hits: Hits) -> float:
    return float(hits.coverage.max(initial=0.0))


def score_graph(graph: ToolGraph, query: Query) -> Hits:
    """Score the node of every entity by the words of *query*."""
    texts = query.texts[-2:] if query.contradicts else (query.graph_text,)
    return _match(graph.index.texts, query, texts)[-1]


def graph_coverage(hits: Hits, positions: Positions) -> dict[int, float]:
    """Return which share of the query's words the nodes at *positions* hold, by rarity, best first.

    Nodes that hold none are left out.
    """
    order = positions[(-hits.scores[positions]).argsort(kind="stable")]
    order = order[hits.scores[order] > 0]
    return dict(zip(order.tolist(), hits.coverage[order].tolist(), strict=True))


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
