"""Documents as token counts, numbered by one vocabulary."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from graphs.lexical.analysis import tokens

Phrase: TypeAlias = tuple[str, str]
"""A text and its BCP 47 language; empty if unknown."""
Fields: TypeAlias = Mapping[str, str | tuple[Phrase, ...]]
"""The texts of one document by field."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DocumentTokens:
    """One document, tokenized and counted; its numbers are those of one `Vocabulary`."""

    entries: np.ndarray
    """Term, field and count of each, ascending by field, int32, shape (entries, 3)."""
    lengths: np.ndarray
    """How many terms each field has, int32, shape (fields,)."""
    words: np.ndarray
    """Numbers of its words as they are spelt, int32."""
    languages: frozenset[str]


class Vocabulary:
    """The terms and words of many documents, each with a number. Not for two threads.

    Args:
        fields: The names of the fields that count, in the order of their numbers.
    """

    def __init__(self, fields: Iterable[str]) -> None:
        self.fields = tuple(fields)
        self.terms: dict[str, int] = {}
        """Number of each term."""
        self.words: dict[tuple[str, int], int] = {}
        """Number of each word as it is spelt, with the number of its term."""

    def tokenize(self, document: Fields) -> DocumentTokens:
        """Tokenize and count *document*."""
        entries: list[tuple[int, int, int]] = []
        lengths: list[int] = []
        words: dict[int, None] = {}
        languages: set[str] = set()
        for number, name in enumerate(self.fields):
            counts: dict[int, int] = {}
            for text, language in _phrases(document.get(name, "")):
                languages.add(language)
                for token in tokens(text, language=language):
                    parts = [self._term(part) for part in token.parts]
                    for term in (*parts, *map(self._term, token.wholes)):
                        counts[term] = counts.get(term, 0) + 1
                    for pair in zip(token.spelt, parts, strict=True):
                        words[self.words.setdefault(pair, len(self.words))] = None
            lengths.append(sum(counts.values()))
            entries += ((term, number, count) for term, count in counts.items())
        return DocumentTokens(
            entries=np.array(entries, dtype=np.int32).reshape(-1, 3),
            lengths=np.array(lengths, dtype=np.int32),
            words=np.fromiter(words, dtype=np.int32, count=len(words)),
            languages=frozenset(languages),
        )

    def _term(self, term: str) -> int:
        return self.terms.setdefault(term, len(self.terms))


def _phrases(value: str | tuple[Phrase, ...]) -> tuple[Phrase, ...]:
    """Return the phrases of a field; a bare text has no language."""
    if not isinstance(value, str):
        return value
    return ((value, ""),) if value else ()
