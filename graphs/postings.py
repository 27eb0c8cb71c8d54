"""An inverted index with BM25F scores, immutable and vectorised.

* Everything that does not depend on the question is computed when the index is built.
* A question costs its words' postings, never a step of Python a document.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from graphs.bm25 import Table
from graphs.spelling import Spelling
from graphs.text import Token, tokens

_SHORTEST_TO_MEND = 4
_WHOLE_OF_NUMBERED = 0.7
_WayOf: TypeAlias = tuple[tuple[int, ...], float]


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
    ways: tuple[_WayOf, ...]
    """Ways to match it, the best of which counts: rows of terms, and the share they earn."""
    weight: float
    """The rarity of the word, > 0."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Hits:
    """All that one pass over the index tells about a question."""

    scores: np.ndarray
    """BM25F score of each document, float32, 0 where nothing matches."""
    coverage: np.ndarray
    """Share of the question's words that each document matches, by rarity, float32 in [0, 1]."""
    words: tuple[str, ...]
    """The words of the question that count, as they were asked."""
    unmatched: tuple[str, ...]
    """Those of them that no document holds, not even in a near spelling."""
    asked: tuple[Asked, ...]
    """How each word was resolved; `Postings.explain` works from it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Postings:
    """The index: for each term, the documents that hold it and what it is worth there."""

    size: int
    """How many documents are indexed."""
    fields: tuple[str, ...]
    """The names of the fields, in the order of their numbers."""
    terms: Mapping[str, int]
    """Row of each term."""
    names: tuple[str, ...]
    """The term of each row."""
    rarity: np.ndarray
    """Inverse document frequency of each term, float32, > 0."""
    offsets: np.ndarray
    """Where the row of a term begins and ends in the arrays below, int64."""
    positions: np.ndarray
    """Documents, ascending within a row, int32."""
    impacts: np.ndarray
    """What the term adds to the document's score, float32."""
    sources: np.ndarray
    """Number of the field that weighs most, uint8."""
    spelling: Spelling
    """Near spellings of the words as they stand in the documents."""
    meanings: tuple[int, ...]
    """Row of the term of each of those words."""

    @classmethod
    def build(
        cls,
        documents: Sequence[Mapping[str, str]],
        *,
        weights: Mapping[str, float],
        k1: float = 1.2,
        b: float = 0.75,
    ) -> Postings:
        """Index *documents*, each a mapping of field to text.

        Args:
            documents: The position in the sequence is the document's position in every array.
            weights: Weight of each field, > 0; a field that is not named here is not indexed.
            k1: How soon repetitions stop to count, >= 0.
            b: How much a long field discounts its words, in [0, 1].
        """
        fields = tuple(weights)
        terms: dict[str, int] = {}
        spelt: dict[str, str] = {}
        rows: list[int] = []
        lengths = np.zeros((len(documents), len(fields)), dtype=np.int64)
        for position, document in enumerate(documents):
            for number, field in enumerate(fields):
                before = len(rows)
                for token in tokens(document.get(field, "")):
                    known = (*token.parts, *token.wholes)
                    rows += [terms.setdefault(term, len(terms)) for term in known]
                    spelt.update(zip(token.spelt, token.parts, strict=True))
                lengths[position, number] = len(rows) - before
        table = Table(rows=np.asarray(rows, dtype=np.int64), lengths=lengths, k1=k1, b=b)
        row, position_of, impact, source = table.weigh(np.asarray(list(weights.values())))
        df = np.bincount(row, minlength=len(terms))
        rarity = np.log1p((len(documents) - df + 0.5) / (df + 0.5)).astype(np.float32)
        return cls(
            size=len(documents),
            fields=fields,
            terms=terms,
            rarity=rarity,
            offsets=np.concatenate([[0], np.cumsum(df)]),
            positions=position_of.astype(np.int32),
            impacts=(impact * rarity[row]).astype(np.float32),
            sources=source.astype(np.uint8),
            names=tuple(terms),
            meanings=tuple(terms[term] for term in spelt.values()),
            spelling=Spelling.build(tuple(spelt)),
        )

    def match(self, query: str | Sequence[str]) -> Hits:
        """Score every document for *query* in one pass.

        Args:
            query: A text, or terms that `graphs.text.words` has made of one.

        Returns:
            Zeros everywhere for an empty query.
        """
        asked = self._asked(query)
        scores = np.zeros(self.size, dtype=np.float32)
        coverage = np.zeros(self.size, dtype=np.float32)
        total = sum(word.weight for word in asked) or 1.0
        for word in asked:
            self._add(word, word.weight / total, scores, coverage)
        return Hits(
            scores=scores,
            coverage=np.minimum(coverage, 1.0, out=coverage),
            words=tuple(dict.fromkeys(word.word for word in asked)),
            unmatched=_unmatched(asked),
            asked=tuple(asked),
        )

    def scores(self, query: str | Sequence[str]) -> np.ndarray:
        """Give the score of each document, float32, >= 0; see `match`."""
        return self.match(query).scores

    def coverage(self, query: str | Sequence[str]) -> np.ndarray:
        """Give the share of *query* that each document matches, float32 in [0, 1]."""
        return self.match(query).coverage

    def unmatched(self, query: str | Sequence[str]) -> tuple[str, ...]:
        """Give the words of *query* that no document holds, as they were asked."""
        return _unmatched(self._asked(query))

    def explain(self, query: str | Sequence[str] | Hits, position: int) -> tuple[WordMatch, ...]:
        """Tell which words of *query* the document at *position* matches, and where.

        Args:
            query: A text, terms, or the hits of one, which saves resolving it again.
            position: A document; one that matches nothing gives an empty tuple.
        """
        resolved = query.asked if isinstance(query, Hits) else self._asked(query)
        return tuple(
            WordMatch(
                word=asked.word,
                term=self.names[term],
                field=self.fields[self.sources[at]],
                weight=float(self.impacts[at] * share),
            )
            for asked in resolved
            for ids, share in asked.ways
            for term in ids
            if (at := self._posting(term, position)) is not None
        )

    def _posting(self, term: int, position: int) -> int | None:
        start, end = self.offsets[term], self.offsets[term + 1]
        at = int(start + np.searchsorted(self.positions[start:end], position))
        return at if at < end and self.positions[at] == position else None

    def _asked(self, query: str | Sequence[str]) -> list[Asked]:
        if isinstance(query, str):
            found = {token.parts: token for token in tokens(query)}
            return [asked for token in found.values() for asked in self._resolve(token)]
        plain = (Token(surface=term, parts=(term,), spelt=(term,)) for term in dict.fromkeys(query))
        return [asked for token in plain for asked in self._resolve(token)]

    def _resolve(self, token: Token) -> Iterator[Asked]:
        parts = tuple(self.terms[part] for part in token.parts if part in self.terms)
        wholes = [self.terms[whole] for whole in token.wholes if whole in self.terms]
        several = len(token.parts) > 1
        if several and not wholes:
            for part, spelt in zip(token.parts, token.spelt, strict=True):
                yield from self._resolve(Token(surface=spelt, parts=(part,), spelt=(spelt,)))
            return
        whole_share = 1.0 if several else _WHOLE_OF_NUMBERED
        ways: list[_WayOf] = [((whole,), whole_share) for whole in wholes]
        if len(parts) == len(token.parts):
            ways.append((parts, 1.0))
        if not ways:
            yield self._mended(token)
            return
        weight = max(float(self.rarity[list(ids)].sum()) for ids, _ in ways)
        yield Asked(word=token.surface, ways=tuple(ways), weight=weight)

    def _mended(self, token: Token) -> Asked:
        (word,) = token.spelt
        near: dict[int, float] = {}
        for spelling, like in self.spelling.near(word) if len(word) >= _SHORTEST_TO_MEND else ():
            near.setdefault(self.meanings[spelling], like)
        if not near:
            unknown = float(np.log1p((self.size + 0.5) / 0.5))
            return Asked(word=token.surface, ways=(), weight=unknown)
        weight = max(float(self.rarity[term]) for term in near)
        ways = tuple(((term,), like) for term, like in near.items())
        return Asked(word=token.surface, ways=ways, weight=weight)

    def _add(self, asked: Asked, weight: float, scores: np.ndarray, coverage: np.ndarray) -> None:
        if len(asked.ways) == 1 and len(asked.ways[0][0]) == 1:
            (term,), share = asked.ways[0]
            row = slice(self.offsets[term], self.offsets[term + 1])
            scores[self.positions[row]] += self.impacts[row] * np.float32(share)
            coverage[self.positions[row]] += np.float32(weight * share)
            return
        score = np.zeros_like(scores)
        covered = np.zeros_like(coverage)
        for ids, share in asked.ways:
            way, part = self._way(ids, share)
            np.maximum(score, way, out=score)
            np.maximum(covered, part, out=covered)
        scores += score
        coverage += covered * np.float32(weight)

    def _way(self, ids: tuple[int, ...], share: float) -> tuple[np.ndarray, np.ndarray]:
        score = np.zeros(self.size, dtype=np.float32)
        part = np.zeros(self.size, dtype=np.float32)
        for term in ids:
            row = slice(self.offsets[term], self.offsets[term + 1])
            score[self.positions[row]] += self.impacts[row] * np.float32(share)
            part[self.positions[row]] += np.float32(share / len(ids))
        return score, part


def _unmatched(asked: Sequence[Asked]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word.word for word in asked if not word.ways))
