"""Queries resolved against a text index: matches of their words, and corrections of misspelt words.

Candidates for a correction share character trigrams with the word. The edit distance selects among
them, or else the Jaro-Winkler similarity.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from graphs import parameters

Expansion: TypeAlias = tuple[tuple[int, ...], float]
"""Rows of index terms that a document must all contain, and the match's share of the word's
weight."""
_MARK = "$"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryTerm:
    """One word of a query, resolved against an index."""

    word: str
    expansions: tuple[Expansion, ...]
    """Alternative matches of the word; for each document, the best one counts."""
    weight: float
    """Inverse document frequency of the word, > 0."""
    is_spelling_correction: bool = False
    """True if the index does not contain the word. The expansions are then similar spellings."""

    def discounted(self, factor: float) -> QueryTerm:
        """Return this term. The shares of a spelling correction are multiplied by *factor*."""
        if not self.is_spelling_correction:
            return self
        return replace(self, expansions=tuple((rows, s * factor) for rows, s in self.expansions))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AnalyzedQuery:
    """A query whose words are looked up in an index, without scores of documents."""

    terms: tuple[QueryTerm, ...]

    @property
    def words(self) -> tuple[str, ...]:
        """Words of the query, as the query spells them."""
        return tuple(dict.fromkeys(term.word for term in self.terms))

    @property
    def unmatched(self) -> tuple[str, ...]:
        """Words of the query that no document contains, not even in a similar spelling."""
        return tuple(dict.fromkeys(term.word for term in self.terms if not term.expansions))

    @property
    def weight(self) -> float:
        """Sum of the inverse document frequencies of all words, > 0."""
        return sum(term.weight for term in self.terms) or 1.0

    @property
    def known_share(self) -> float:
        """Share of the query's words that documents contain in this spelling, by idf, 0 to 1."""
        spelt = (term for term in self.terms if term.expansions and not term.is_spelling_correction)
        return sum(term.weight for term in spelt) / self.weight


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Hits(AnalyzedQuery):
    """A query with the score of every document."""

    scores: np.ndarray
    """BM25F score of each document, float32; 0 without a match."""
    coverage: np.ndarray
    """Share of the query's words in each document, weighted by idf, float32 in [0, 1]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentMatches:
    """Matches of a query in selected documents, one item per document in each list."""

    scores: list[float]
    coverage: list[float]
    """Share of the query's words in each document, weighted by idf, in [0, 1]."""
    words: list[tuple[str, ...]]
    """Words that each document matches, as the query spells them."""


class TrigramIndex:
    """An immutable index of words by their character trigrams.

    The id of a word is its position in *words*. Words of more than 32 characters are never
    suggested.
    """

    def __init__(self, words: Sequence[str]) -> None:
        ids, grams = _trigrams(
            [word if len(word) <= parameters.MAX_WORD_LENGTH else "" for word in words]
        )
        order = np.argsort(grams, kind="stable")
        self._words = words
        self._members = ids[order]
        """Ids of the words that contain a trigram, grouped by trigram."""
        self._grams, starts = np.unique(grams[order], return_index=True)
        """Packed trigrams of all words, ascending and without duplicates."""
        self._offsets = np.append(starts, len(grams))
        """Start of each trigram's group in `_members`, and the end of the last."""

    def suggest(self, word: str) -> tuple[tuple[str, float], ...]:
        """Return indexed words of which *word* may be a misspelling.

        These are up to three pairs of a word and its share (how much a match of it counts), in (0,
        1], best first. Empty for words with digits or more than 32 characters.
        """
        has_digits = any(mark.isdigit() for mark in word)
        if len(word) > parameters.MAX_WORD_LENGTH or has_digits or not self._grams.size:
            return ()
        _, word_grams = _trigrams([word])
        rows = self._grams.searchsorted(word_grams)
        rows = rows[self._grams.take(rows, mode="clip") == word_grams]
        if not rows.size:
            return ()
        members = [self._members[self._offsets[row] : self._offsets[row + 1]] for row in rows]
        counts = np.bincount(np.concatenate(members), minlength=len(self._words))
        # One edit changes at most three trigrams, so similar words share at least a third.
        sharing = (counts >= max(1, len(word) // 3)).nonzero()[0]
        if len(sharing) > parameters.MAX_CANDIDATES:
            # Keep all words that share as many trigrams as the last one, so that their order does
            # not matter.
            shared = counts[sharing]
            last = np.partition(shared, -parameters.MAX_CANDIDATES)[-parameters.MAX_CANDIDATES]
            sharing = sharing[shared >= last]
        candidates = {number: self._words[number] for number in sharing.tolist()}
        shares = _similar_words(word, candidates).items()
        best = sorted(((self._words[number], share) for number, share in shares), key=_best_first)
        return tuple(best[: parameters.MAX_SUGGESTIONS])


def _best_first(suggestion: tuple[str, float]) -> tuple[float, str]:
    word, share = suggestion
    return -share, word


def _similar_words(word: str, candidates: dict[int, str]) -> dict[int, float]:
    from rapidfuzz import process  # noqa: PLC0415  (only a misspelt word needs it)
    from rapidfuzz.distance import OSA, JaroWinkler  # noqa: PLC0415  (only a misspelt word needs it)

    distance = 1 if len(word) <= 5 else 2
    edits = process.extract(
        word, candidates, scorer=OSA.distance, score_cutoff=distance, limit=None
    )
    if edits:
        return {number: parameters.DISTANCE_SHARES[int(edit)] for _, edit, number in edits}
    similarity = JaroWinkler.similarity
    similar = process.extract(
        word, candidates, scorer=similarity, score_cutoff=parameters.MIN_JARO_WINKLER, limit=None
    )
    return {number: parameters.JARO_WINKLER_SHARE for _, _, number in similar}


def _trigrams(words: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return two parallel arrays with one item per trigram: word position, and packed characters.

    Each word has a boundary mark at both ends.
    """
    marked = "".join(f"{_MARK}{word}{_MARK}" for word in words)
    points = np.frombuffer(marked.encode("utf-32-le", "surrogatepass"), dtype="<u4")
    lengths = np.fromiter(map(len, words), dtype=np.int64, count=len(words))
    starts = np.cumsum(lengths + 2) - (lengths + 2)
    ids = np.repeat(np.arange(len(words), dtype=np.int32), lengths)
    inside = np.arange(len(ids)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    positions = starts[ids] + inside
    wide = points.astype(np.int64)
    # A character needs 21 bits, so three fit into 64 bits.
    return ids, wide[positions] << 42 | wide[positions + 1] << 21 | wide[positions + 2]
