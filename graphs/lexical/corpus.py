"""What an index must know of all documents where it holds a part of them. Pure.

How rare a word is, and how long texts usually are, are properties of the whole. Indexes of the
parts that are compiled with the same statistics score each document as one index of all would, to
the last bit.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from graphs import parameters


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusStatistics:
    """Counts of documents. Those of parts add up to those of the whole, exactly."""

    documents: int
    """How many there are."""
    languages: frozenset[str]
    """Those of their texts."""
    terms: Mapping[str, int]
    """In how many documents each term stands, > 0."""
    spellings: Mapping[str, frozenset[str]]
    """The words as documents spell them, by term."""
    lengths: tuple[Mapping[int, int], ...]
    """How many documents have each length, > 0, by field: a length is a number of terms."""

    @classmethod
    def of(
        cls,
        lengths: np.ndarray,
        *,
        languages: Iterable[str],
        terms: Mapping[str, int],
        words: Iterable[tuple[str, str]],
    ) -> CorpusStatistics:
        """Count documents.

        Args:
            lengths: How many terms each has in each field, shape (documents, fields).
            languages: As the attribute.
            terms: As the attribute.
            words: Each word as it is spelt, with its term.
        """
        spellings: defaultdict[str, set[str]] = defaultdict(set)
        for word, term in words:
            spellings[term].add(word)
        return cls(
            documents=len(lengths),
            languages=frozenset(languages),
            terms=terms,
            spellings={term: frozenset(spelt) for term, spelt in spellings.items()},
            lengths=tuple(Counter(column[column > 0].tolist()) for column in lengths.T),
        )

    @classmethod
    def total(cls, parts: Iterable[CorpusStatistics]) -> CorpusStatistics:
        """Add up *parts*, of the same fields; without any there are no documents."""
        terms: Counter[str] = Counter()
        spellings: dict[str, frozenset[str]] = {}
        lengths: list[Counter[int]] = []
        languages: frozenset[str] = frozenset()
        documents = 0
        for part in parts:
            documents += part.documents
            languages |= part.languages
            terms.update(part.terms)
            for term, words in part.spellings.items():
                spellings[term] = spellings.get(term, frozenset()) | words
            lengths = lengths or [Counter() for _ in part.lengths]
            for sums, counts in zip(lengths, part.lengths, strict=True):
                sums.update(counts)
        return cls(
            documents=documents,
            languages=languages,
            terms=terms,
            spellings=spellings,
            lengths=tuple(lengths),
        )

    def with_all_terms(
        self, names: Sequence[str]
    ) -> tuple[list[str], np.ndarray, list[str], np.ndarray]:
        """Return all terms, with *names*, some of them, first.

        Returns:
            The terms; in how many documents each stands; the words as they are spelt; and the
            place of the term of each word among the terms.
        """
        names = [*names, *(self.terms.keys() - set(names))]
        df = np.fromiter((self.terms.get(name, 1) for name in names), np.int64, len(names))
        rows = {name: row for row, name in enumerate(names)}
        pairs = [(word, rows[term]) for term, words in self.spellings.items() for word in words]
        terms = np.fromiter((row for _, row in pairs), np.int32, len(pairs))
        return names, df, [word for word, _ in pairs], terms

    def usual_lengths(self) -> np.ndarray:
        """Return the usual length of each field where it is not empty, shape (fields,)."""
        columns = [
            np.repeat(
                np.fromiter(counts.keys(), np.int32, len(counts)),
                np.fromiter(counts.values(), np.intp, len(counts)),
            )
            for counts in self.lengths
        ]
        return usual_lengths(columns)


def usual_lengths(columns: Iterable[np.ndarray]) -> np.ndarray:
    """Return the usual length of each field; few long ones do not move it.

    Args:
        columns: For each field the lengths of the documents where it is not empty.
    """
    return np.array(
        [np.quantile(each, parameters.USUAL_LENGTH) if each.size else 1 for each in columns]
    )
