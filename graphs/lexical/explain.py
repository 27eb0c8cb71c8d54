"""What a question meets in an index, before and after its documents are looked at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

WayOf: TypeAlias = tuple[tuple[int, ...], float]
"""Rows of terms, and the share that meeting all of them earns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WordMatch:
    """One word of a question and what it met in a document."""

    word: str
    """The word as it was asked."""
    term: str
    """The term of the index that it met; another one where the word was misspelt."""
    field: str
    """The field that weighs most among those that hold the term."""
    weight: float
    """What the match adds to the document's score, > 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One asked word, resolved against an index."""

    word: str
    """The word as it was asked."""
    ways: tuple[WayOf, ...]
    """Ways to match it, the best of which counts: rows of terms, and the share they earn."""
    weight: float
    """The rarity of the word, > 0."""
    guessed: bool = False
    """Whether nothing knows the word as it was asked; the ways are near spellings, if any."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reading:
    """A question, resolved against an index; no document has been looked at yet."""

    words: tuple[str, ...]
    """The words of the question that count, as they were asked."""
    unmatched: tuple[str, ...]
    """Those of them that no document holds, not even in a near spelling."""
    asked: tuple[Asked, ...]
    """How each word was resolved; `Postings.explain` works from it."""

    @property
    def weight(self) -> float:
        """The rarity of all its words together, > 0."""
        return sum(word.weight for word in self.asked) or 1.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Hits(Reading):
    """All that one pass over the index tells about a question."""

    scores: np.ndarray
    """BM25F score of each document, float32, 0 where nothing matches."""
    coverage: np.ndarray
    """Share of the question's words that each document matches, by rarity, float32 in [0, 1]."""
    touched: int
    """How many times a document was looked at: once for each of the words that it holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What a few documents hold of a question, one entry a document."""

    scores: list[float]
    """BM25F scores: what `Hits.scores` says of them."""
    coverage: list[float]
    """Share of the question's words, by rarity, in [0, 1]: what `Hits.coverage` says of them."""
    words: list[tuple[str, ...]]
    """The words of the question, as they were asked."""
