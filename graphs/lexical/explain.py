"""What a query matches in an index, before and after documents are scored."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

Expansion: TypeAlias = tuple[tuple[int, ...], float]
"""Rows of index terms, and the share of the word that a match of all of them earns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryTerm:
    """One word of a query, resolved against an index."""

    word: str
    """The word as the query spells it."""
    expansions: tuple[Expansion, ...]
    """Ways to match it; the best one counts. Empty if no document can match."""
    weight: float
    """Inverse document frequency of the word, > 0."""
    is_spelling_correction: bool = False
    """Whether the index does not know the word; its expansions are near spellings, if any."""

    def discounted(self, factor: float) -> QueryTerm:
        """Return the term with the shares of a spelling correction times *factor*."""
        if not self.is_spelling_correction:
            return self
        return replace(self, expansions=tuple((rows, s * factor) for rows, s in self.expansions))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AnalyzedQuery:
    """A query, resolved against an index; no document has been scored yet."""

    words: tuple[str, ...]
    """The words of the query that count, as the query spells them."""
    unmatched: tuple[str, ...]
    """Those of them that no document holds, not even in a near spelling."""
    terms: tuple[QueryTerm, ...]
    """How each word was resolved."""

    @property
    def weight(self) -> float:
        """The inverse document frequencies of all words together, > 0."""
        return sum(term.weight for term in self.terms) or 1.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Hits(AnalyzedQuery):
    """A query with the score of every document."""

    scores: np.ndarray
    """BM25F score of each document, float32; 0 where nothing matches."""
    coverage: np.ndarray
    """Share of the query's words that each document matches, by idf, float32 in [0, 1]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentMatches:
    """What a few documents match of a query, one entry a document."""

    scores: list[float]
    """BM25F scores."""
    coverage: list[float]
    """Share of the query's words, by idf, in [0, 1]."""
    words: list[tuple[str, ...]]
    """The matched words, as the query spells them."""
