"""Query words -> scores over the one lexical index. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from gateway.runtime.vectors import Vector
from gateway.search.query import Query
from graphs.lexical.bm25_index import BM25Index
from graphs.lexical.explain import AnalyzedQuery, DocumentMatches, Hits


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
