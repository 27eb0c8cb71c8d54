"""The terms of an index, and the words that spell them, from the tokens of documents. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from graphs.lexical.analysis import DocumentTokens, Vocabulary
from graphs.lexical.corpus import CorpusStatistics


class IndexTerms(NamedTuple):
    """The terms of an index, and what is known of all documents."""

    names: list[str]
    """The terms, by row."""
    df: np.ndarray
    """In how many documents each stands."""
    words: list[str]
    """The words as documents spell them."""
    word_terms: np.ndarray
    """Row of the term of each word."""
    documents: int
    """How many documents there are."""
    languages: frozenset[str]
    """Those of their texts."""

    @classmethod
    def of(
        cls,
        counted: Sequence[DocumentTokens],
        vocabulary: Vocabulary,
        held: np.ndarray,
        whole: CorpusStatistics | None,
    ) -> IndexTerms:
        """Return the terms, those that *counted* hold first.

        Args:
            counted: The documents of the index.
            vocabulary: Numbers their terms and words.
            held: How many of them hold each term, by its number in *vocabulary*.
            whole: Of all documents, where these are a part; None if they are all.
        """
        used, every = np.flatnonzero(held), list(vocabulary.terms)
        names = [every[term] for term in used.tolist()]
        if whole is not None:
            return cls(*whole.with_all_terms(names), whole.documents, whole.languages)
        words, word_terms = _spelt_words(counted, vocabulary, used)
        languages = frozenset(code for one in counted for code in one.languages)
        return cls(names, held[used], words, word_terms, len(counted), languages)


def _spelt_words(
    counted: Sequence[DocumentTokens], vocabulary: Vocabulary, used: np.ndarray
) -> tuple[list[str], np.ndarray]:
    """Return the words of the documents as they are spelt, and the row of the term of each."""
    numbers = concatenate_numbers([each.words for each in counted], 1)[:, 0]
    uses = np.bincount(numbers, minlength=len(vocabulary.words))
    spellings = list(vocabulary.words)
    pairs = [spellings[number] for number in np.flatnonzero(uses).tolist()]
    terms = np.fromiter((term for _, term in pairs), dtype=np.int32, count=len(pairs))
    return [word for word, _ in pairs], used.searchsorted(terms).astype(np.int32)


def concatenate_numbers(parts: Iterable[bytes], width: int) -> np.ndarray:
    """Return the int32 numbers of all *parts*, shape (n, width)."""
    return np.frombuffer(b"".join(parts), np.int32).reshape(-1, width)
