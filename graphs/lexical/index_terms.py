"""The words of an index, and its numbers as arrays, from the tokens of documents. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from graphs.lexical.analysis import DocumentTokens, Vocabulary


def spelt_words(
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
