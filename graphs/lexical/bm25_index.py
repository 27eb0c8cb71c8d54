"""An inverted index with BM25F scores, immutable and vectorised.

* Everything that does not depend on the question is computed when the index is built.
* A question costs its words' postings, never a step of Python a document.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as made
from itertools import islice
from typing import TypeAlias

import numpy as np

from graphs.lexical.analysis import Token, stem, tokens
from graphs.lexical.bm25 import Scale
from graphs.lexical.explain import Asked, Held, Hits, Reading, WayOf, WordMatch
from graphs.lexical.few import Rows
from graphs.lexical.inverted import Inverted
from graphs.lexical.lexicon import Fields, Lexicon
from graphs.lexical.trigrams import Spelling

_SHORTEST_TO_MEND = 4
_LIKELY_TYPOS = 12
"""More unknown words than this in one question are not all typos."""
_TWO_WORDS = 0.8
"""How surely a word is two known ones without the space between them."""
_WHOLE_OF_NUMBERED = 0.7
_MOST_WORDS = 1024
"""More words of one question than this are not looked up; no request that a person writes has them,
but 600 letters of a script without spaces do, each of which begins a word."""
_REMEMBERED = 8192
"""How many words are remembered, resolved; real questions use the same ones again and again."""
Question: TypeAlias = str | Sequence[str | Token]
"""A text, its terms, or its tokens, which need no second reading."""
_Met: TypeAlias = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Documents, each once; what a word adds to the score and to the coverage of each."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Postings:
    """The index: for each term, the documents that hold it and what it is worth there."""

    inverted: Inverted
    """What stands where, as the next change needs it."""
    size: int
    """How many documents are indexed."""
    fields: tuple[str, ...]
    """The names of the fields, in the order of their numbers."""
    languages: tuple[str, ...]
    """The languages of the texts; a question is read in each of them."""
    terms: Mapping[str, int]
    """Row of each term."""
    names: Sequence[str]
    """The term of each row; also of rows that hold nobody any more."""
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
    meanings: np.ndarray
    """Row of the term of each of those words, int32."""
    resolved: dict[Token, tuple[Asked, ...]] = made(default_factory=dict, repr=False)
    """The words that were asked so far, not too many of them."""
    numbered: list[Rows] = made(default_factory=list, repr=False)
    """What `few` gives, once it was asked for."""

    @classmethod
    def build(
        cls,
        documents: Sequence[Fields],
        *,
        weights: Mapping[str, float],
        k1: float = 1.2,
        b: float = 0.75,
        lexicon: Lexicon | None = None,
    ) -> Postings:
        """Index *documents*, each a mapping of field to text.

        Args:
            documents: The position in the sequence is the document's position in every array.
                A field is a text, or texts with their languages.
            weights: Weight of each field, > 0; a field that is not named here is not indexed.
            k1: How soon repetitions stop to count, >= 0.
            b: How much a long field discounts its words, in [0, 1].
            lexicon: Remembers the texts that were read, for the next build.
        """
        lexicon = lexicon or Lexicon()
        lexicon.turn()
        scale = Scale(fields=tuple(weights), weights=tuple(weights.values()), k1=k1, b=b)
        return cls.of(Inverted.build(documents, scale, lexicon))

    @classmethod
    def of(cls, inverted: Inverted) -> Postings:
        """Weigh *inverted*: what a word adds depends on how rare it is among all documents."""
        df = inverted.df
        rarity = np.log1p((inverted.size - df + 0.5) / (df + 0.5)).astype(np.float32)
        impacts = np.repeat(rarity, df)
        impacts *= inverted.saturated
        return cls(
            inverted=inverted,
            size=inverted.size,
            fields=inverted.scale.fields,
            languages=tuple(sorted(inverted.languages)),
            terms=inverted.terms,
            names=inverted.names,
            rarity=rarity,
            offsets=inverted.offsets,
            positions=inverted.positions,
            impacts=impacts,
            sources=inverted.sources,
            spelling=inverted.spelling,
            meanings=inverted.meanings,
        )

    def changed(self, gone: Mapping[int, Fields], new: Mapping[int, Fields]) -> Postings:
        """Give the index without some documents and with others.

        Args:
            gone: What left, by its position until now, with the texts that it had.
            new: What came, by its position from now on. The others keep their order.
        """
        return self.of(self.inverted.changed(gone, new)) if gone or new else self

    def match(self, query: Question | Reading) -> Hits:
        """Score every document for *query* in one pass.

        Args:
            query: A text, its tokens, terms that `words` has made of it, or what
                `read` has.

        Returns:
            Zeros everywhere for an empty query.
        """
        read = query if isinstance(query, Reading) else self.read(query)
        total = read.weight
        met = [self._met(word, word.weight / total) for word in read.asked if word.ways]
        columns = zip(zip(_NOTHING, *met, strict=True), _SUMMED, strict=True)
        # As counting takes them, so that it copies nothing.
        positions, scores, shares = (np.concatenate(each, dtype=kind) for each, kind in columns)
        coverage = self._summed(positions, shares)
        return Hits(
            scores=self._summed(positions, scores),
            coverage=np.minimum(coverage, 1.0, out=coverage),
            words=read.words,
            unmatched=read.unmatched,
            asked=read.asked,
            touched=len(positions),
        )

    def read(self, query: Question) -> Reading:
        """Resolve the first 1,024 different words of *query* without looking at a document."""
        asked = tuple(self._asked(query))
        words = tuple(dict.fromkeys([word.word for word in asked]))
        return Reading(words=words, unmatched=_unmatched(asked), asked=asked)

    def scores(self, query: Question) -> np.ndarray:
        """Give the score of each document, float32, >= 0; see `match`."""
        return self.match(query).scores

    def coverage(self, query: Question) -> np.ndarray:
        """Give the share of *query* that each document matches, float32 in [0, 1]."""
        return self.match(query).coverage

    def unmatched(self, query: Question) -> tuple[str, ...]:
        """Give the words of *query* that no document holds, as they were asked."""
        return _unmatched(self._asked(query))

    def explain(self, query: Question | Reading, position: int) -> tuple[WordMatch, ...]:
        """Tell which words of *query* the document at *position* matches, and where.

        Args:
            query: A text, terms, or the hits of one, which saves resolving it again.
            position: A document; one that matches nothing gives an empty tuple.
        """
        resolved = query.asked if isinstance(query, Reading) else self._asked(query)
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

    def standing(self, asked: Asked, whole: str = "") -> tuple[np.ndarray, np.ndarray]:
        """Say in which fields each document holds one word of a question; see `read`.

        Args:
            asked: The word; of a near spelling it is said where that stands.
            whole: A field, to be asked whether the word is all that stands in it.

        Returns:
            A bit for each field by its number, uint64, and whether the word is the whole field,
            bool; shape (documents,) each. An identifier stands where all its parts do.
        """
        bits = np.zeros(self.size, dtype=np.uint64)
        all_of_it = np.zeros(self.size, dtype=np.bool_)
        column = self.fields.index(whole) if whole in self.fields else None
        for ids, _ in asked.ways:
            parts = [self.inverted.fields_of(term) for term in ids]
            held = np.bitwise_and.reduce(parts)
            bits |= held
            if column is not None:
                alone = self.inverted.lengths[:, column] == len(ids)
                all_of_it |= alone & ((held >> np.uint64(column)) & np.uint64(1)).astype(np.bool_)
        return bits, all_of_it

    def scarcity(self, read: Reading, among: np.ndarray | None = None) -> tuple[float, float]:
        """Tell of the words of a question that nobody holds, and of those that somebody does.

        Args:
            read: The question; one without words has 0 of both.
            among: A mask over all documents: of whom it is asked. None asks of all.

        Returns:
            The share of the words that nobody holds, by rarity, and how rare the rarest of the
            others is, as a share of how rare such a word is; 0 to 1 each.
        """
        held = [word.weight for word in read.asked if self._anywhere(word, among)]
        unknown = 1.0 - sum(held) / read.weight if read.asked else 0.0
        return unknown, max(held, default=0.0) / self._rarest

    @property
    def _rarest(self) -> float:
        return float(np.log1p((self.size + 0.5) / 0.5))

    def _anywhere(self, word: Asked, among: np.ndarray | None) -> bool:
        if among is None:
            return bool(word.ways)
        return any(all(self.held_by(term, among) for term in ids) for ids, _ in word.ways)

    def held_by(self, row: int, among: np.ndarray) -> bool:
        """Say whether a document of *among*, a mask over all of them, holds the term of *row*."""
        return bool(among[self.positions[self.offsets[row] : self.offsets[row + 1]]].any())

    def _posting(self, term: int, position: int) -> int | None:
        # A handful of places: bisect beats the cost of a call into numpy.
        start, end = int(self.offsets[term]), int(self.offsets[term + 1])
        at = bisect_left(self.positions, position, start, end)
        return at if at < end and self.positions[at] == position else None

    def held(self, read: Reading, positions: Sequence[int]) -> Held:
        """Tell what each of *positions* holds of a question, without looking at anybody else.

        Says less than `explain`, and costs a look-up a word where that costs one a document too.
        """
        return self.few.held(read, positions)

    @property
    def few(self) -> Rows:
        """The postings as they are looked into for a few documents; numbered when first asked."""
        if not self.numbered:
            rows = Rows.of(
                offsets=self.offsets,
                positions=self.positions,
                impacts=self.impacts,
                size=self.size,
            )
            self.numbered.append(rows)
        return self.numbered[0]

    def _asked(self, query: Question) -> list[Asked]:
        said = tokens(query) if isinstance(query, str) else map(_token, query)
        found = {token.parts: token for token in said}
        looked_up = islice(found.values(), _MOST_WORDS)
        asked = [word for token in looked_up for word in self._resolve(token)]
        if len(asked) <= _LIKELY_TYPOS:
            return asked
        # A long request is full of words that nobody misspelt: each guess counts the less.
        guesses = sum(word.guessed for word in asked)
        if guesses <= _LIKELY_TYPOS:
            return asked
        return [_doubted(word, _LIKELY_TYPOS / guesses) if word.guessed else word for word in asked]

    def _resolve(self, token: Token) -> tuple[Asked, ...]:
        known = self.resolved.get(token)
        if known is None:
            if len(self.resolved) >= _REMEMBERED:
                self.resolved.clear()
            known = self.resolved[token] = tuple(map(self._word, self._units(token)))
        return known

    def _units(self, token: Token) -> Iterator[Token]:
        """Give *token* itself, or its parts where only they may be known."""
        if len(token.parts) == 1 or self._wholes(token):
            yield token
            return
        for part, spelt in zip(token.parts, token.spelt, strict=True):
            yield Token(surface=spelt, parts=(part,), spelt=(spelt,))

    def _word(self, token: Token) -> Asked:
        ways = self._ways(token)
        if not ways:
            return self._mended(token)
        weight = max(self._rarity(ids) for ids, _ in ways)
        return Asked(word=token.surface, ways=tuple(ways), weight=weight)

    def _ways(self, token: Token) -> list[WayOf]:
        """Give the ways to meet *token* as it is written; empty if nothing knows it."""
        whole_share = 1.0 if len(token.parts) > 1 else _WHOLE_OF_NUMBERED
        ways: list[WayOf] = [((whole,), whole_share) for whole in self._wholes(token)]
        forms = dict.fromkeys([token.parts, *self._abroad(token.spelt)])
        known = (form for form in forms if all(part in self.terms for part in form))
        ways += ((tuple(self.terms[part] for part in form), 1.0) for form in known)
        return ways

    def _wholes(self, token: Token) -> list[int]:
        forms = list(token.wholes)
        if len(token.spelt) > 1:
            forms += [each for (each,) in self._abroad(("".join(token.spelt),))]
        return [self.terms[form] for form in dict.fromkeys(forms) if form in self.terms]

    def _abroad(self, spelt: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        """Give the terms of *spelt* in each language that a text says it is in."""
        for language in self.languages:
            if language:
                yield tuple(stem(word, language) for word in spelt)

    def _rarity(self, ids: tuple[int, ...]) -> float:
        return float(self.rarity[list(ids)].sum())

    def _mended(self, token: Token) -> Asked:
        (word,) = token.spelt
        near: dict[tuple[int, ...], float] = {}
        if len(word) >= _SHORTEST_TO_MEND:
            for spelling, like in self.spelling.near(word):
                near.setdefault((int(self.meanings[spelling]),), like)
            if pair := self.spelling.split(word):
                near.setdefault(tuple(int(self.meanings[half]) for half in pair), _TWO_WORDS)
        return Asked(
            word=token.surface,
            ways=tuple(near.items()),
            weight=max(map(self._rarity, near), default=self._rarest),
            guessed=True,
        )

    def _met(self, asked: Asked, weight: float) -> _Met:
        """Give what *asked* meets: of several ways to each document, the best."""
        ways = [self._way(ids, share, weight) for ids, share in asked.ways]
        if len(ways) == 1:
            return ways[0]
        positions, scores, shares = (np.concatenate(column) for column in zip(*ways, strict=True))
        order = positions.argsort(kind="stable")
        positions = positions[order]
        new = np.ones(len(positions), dtype=np.bool_)
        np.not_equal(positions[1:], positions[:-1], out=new[1:])
        starts = np.flatnonzero(new)
        return (
            positions[starts],
            np.maximum.reduceat(scores[order], starts),
            np.maximum.reduceat(shares[order], starts),
        )

    def _way(self, ids: tuple[int, ...], share: float, weight: float) -> _Met:
        rows = [slice(self.offsets[term], self.offsets[term + 1]) for term in ids]
        if len(rows) == 1:
            positions, impacts = self.positions[rows[0]], self.impacts[rows[0]]
            shares = np.empty(len(positions))
            shares.fill(share * weight)
            return positions, impacts if share == 1.0 else impacts * share, shares
        found = np.concatenate([self.positions[row] for row in rows])
        positions, place = np.unique(found, return_inverse=True)
        impacts = np.bincount(place, np.concatenate([self.impacts[row] for row in rows]))
        return positions, impacts * share, np.bincount(place) * (share * weight / len(ids))

    def _summed(self, positions: np.ndarray, values: np.ndarray) -> np.ndarray:
        return np.bincount(positions, values, minlength=self.size).astype(np.float32)


def _token(said: str | Token) -> Token:
    return said if isinstance(said, Token) else Token(surface=said, parts=(said,), spelt=(said,))


def _doubted(word: Asked, share: float) -> Asked:
    return replace(word, ways=tuple((ids, like * share) for ids, like in word.ways))


_SUMMED = (np.intp, np.float64, np.float64)
_NOTHING: _Met = (np.zeros(0, np.int32), np.zeros(0, np.float32), np.zeros(0))


def _unmatched(asked: Sequence[Asked]) -> tuple[str, ...]:
    return tuple(dict.fromkeys([word.word for word in asked if not word.ways]))
