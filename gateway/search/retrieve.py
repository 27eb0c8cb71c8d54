"""Retrieval of evidence for a query: vectors, words, the graph's words and exact names. Pure."""

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
    """Reduce the weight of a contradicting rewrite, or find that it does not contradict.

    *query* and its rewrite have different words. The rewrite does not contradict if its vector is
    nearer to the query's than every entity's vector is. Otherwise its vector counts by
    `REWRITE_SHARE`. It counts in full if the catalog has few of the query's words and the rewrite
    is nearer to the entities, because the embedder may not know the language.
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
    return original.known_share < REWRITE_SHARE * english.known_share


def supplement_window(
    state: SearchState, ranked: RankedList, candidates: Candidates | None
) -> frozenset[int]:
    """Return the positions of the ranked entities that may become supplements."""
    limit, options = state.request.limit, state.options
    if candidates is not None:
        return candidate_window(candidates, limit, options)
    eligible = int(np.count_nonzero(state.mask))
    return window_of(ranked.positions, ranked.scores, limit, options, eligible=eligible)


def candidate_window(candidates: Candidates, limit: int, options: SearchOptions) -> frozenset[int]:
    """Return the positions of the candidates that may become supplements of *limit* matches."""
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
    """Return the positions at the head of a ranking, bounded by rank and by score.

    The score margin is measured from *mean*. It is smaller in a small catalog, because entities
    related to a match score far below it there. *limit* is the maximum number of matches.
    """
    head = scores[: options.window(limit)]
    if head.size == 0:
        return frozenset()
    margin = options.window_margin * min(1.0, eligible / SMALL_CATALOG)
    floor = mean + margin * (float(head[0]) - mean)
    return frozenset(positions[: len(head)][head >= floor].tolist())


def read_words(index: BM25Index, query: Query) -> AnalyzedQuery:
    """Analyze the form of *query* that the catalog matches best by words."""
    texts = query.confidence_texts
    if len(texts) == 1:
        return index.analyze(query.tokens(texts[0]))
    return max(_match_texts(index, query, texts), key=_max_coverage)


def score_lexical(index: BM25Index, query: Query) -> Hits:
    """Score every entity by the words of *query*.

    Returns:
        The hits of the form of the query that the catalog matches best, for confidence. The scores
        are each entity's best over all forms.
    """
    forms = _match_texts(index, query, query.confidence_texts)
    with_context = _match_texts(index, query, query.texts) if query.context else []
    scores = np.maximum.reduce([form.scores for form in (*forms, *with_context)])
    return replace(max(forms, key=_max_coverage), scores=scores)


def score_clauses(index: BM25Index, query: Query) -> list[Vector]:
    """Return, in a list, each entity's best score over the clauses; empty without clauses."""
    clauses = [index.match(query.tokens(text)).scores for text in query.clauses]
    return [np.maximum.reduce(clauses)] if clauses else []


def _match_texts(index: BM25Index, query: Query, texts: Sequence[str]) -> list[Hits]:
    """Match each text form of *query*. If the rewrite contradicts the query, it is the last one."""
    hits = [index.match(query.tokens(text)) for text in texts]
    if query.contradicts:
        hits[-1] = _blend_rewrite(hits[-2], hits[-1])
    return hits


def _blend_rewrite(original: Hits, english: Hits) -> Hits:
    """Return the scores of a query, raised where its contradicting rewrite has higher scores.

    They are raised by `REWRITE_SHARE` of the difference. If the catalog has few words of the query
    but words of the rewrite, return the scores of the rewrite instead.
    """
    if _is_foreign(original, english):
        return english
    share = np.float32(REWRITE_SHARE)
    # Scale the scores, because those of long and short texts are not comparable.
    scale = original.scores.max(initial=0.0) / (english.scores.max(initial=0.0) or 1.0)
    scores = original.scores + share * np.maximum(scale * english.scores - original.scores, 0)
    coverage = original.coverage + share * np.maximum(english.coverage - original.coverage, 0)
    return replace(original, scores=scores, coverage=coverage)


def _max_coverage(hits: Hits) -> float:
    return float(hits.coverage.max(initial=0.0))


def score_graph(graph: ToolGraph, query: Query) -> Hits:
    """Score the graph node of every entity by the words of *query*."""
    texts = query.texts[-2:] if query.contradicts else (query.graph_text,)
    return _match_texts(graph.index.texts, query, texts)[-1]


def graph_coverage(hits: Hits, positions: Positions) -> dict[int, float]:
    """Return the share of the query's words in each entity's node, keyed by position, best first.

    Words are weighted by rarity. Entities without any of the words are left out.
    """
    order = positions[(-hits.scores[positions]).argsort(kind="stable")]
    order = order[hits.scores[order] > 0]
    return dict(zip(order.tolist(), hits.coverage[order].tolist(), strict=True))


def find_named(snapshot: Snapshot, query: str, mask: Mask) -> list[int]:
    """Return the eligible entities whose exact name is in *query*, as positions in query order.

    The whole query may be a name. Within a longer query, only words that look like identifiers
    count, so that ``run`` in a sentence does not match a tool.
    """
    names = [query]
    if _NOT_PLAIN.search(query):
        bare = (word.strip(".-/") for word in _IDENTIFIER.findall(query))
        names += (word for word in bare if _NOT_PLAIN.search(word))
    positions = [index for name in names for index in snapshot.named(name)]
    return [position for position in dict.fromkeys(positions) if mask[position]]
