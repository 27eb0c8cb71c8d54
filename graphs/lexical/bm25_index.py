"""A BM25F index, built whole from token counts; immutable and vectorized.

After Robertson, Zaragoza and Taylor, *Simple BM25 extension to multiple weighted fields* (2004):
fields are summed before saturation, each with its own length normalization. It compares with a
quantile, and discounts by the square far beyond it, so that heaped words earn little. All that does
not depend on the query is computed at the build; a query costs its words' postings.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any, TypeAlias

import numpy as np

from graphs import parameters
from graphs.lexical.analysis import (
    DocumentTokens,
    Fields,
    Token,
    Vocabulary,
    concatenate_numbers,
    spelt_words,
    stable_order,
    stem,
    tokens,
)
from graphs.lexical.query import (
    AnalyzedQuery,
    DocumentMatches,
    Expansion,
    Hits,
    QueryTerm,
    TrigramIndex,
)

Query: TypeAlias = str | Sequence[Token] | AnalyzedQuery
"""A text, its tokens, or what `BM25Index.analyze` has made of either."""
_ENTRY_BYTES = 2 * np.dtype(np.int32).itemsize
_Matched: TypeAlias = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Documents, each once; what a word adds to the score and to the coverage of each."""


@dataclass(frozen=True, kw_only=True, eq=False)
class BM25Index:
    """For each term, the documents that hold it and what it is worth there."""

    size: int
    """Number of documents."""
    fields: tuple[str, ...]
    """The names of the fields, in the order of their numbers."""
    languages: tuple[str, ...]
    """The languages of the texts; a query is read in each of them."""
    names: Sequence[str]
    """The terms, by row."""
    words: Sequence[str]
    """The words as documents spell them; one stands there once for each term that it has."""
    word_terms: np.ndarray
    """Row of the term of each of those words, int32."""
    idf: np.ndarray
    """Inverse document frequency of each term, float32, > 0."""
    offsets: np.ndarray
    """Where the postings of a term begin and end in `positions` and `impacts`, int64."""
    positions: np.ndarray
    """Documents, ascending within a term, int32."""
    impacts: np.ndarray
    """What the term adds to the document's score, float32."""
    entry_offsets: np.ndarray
    """Where a posting begins and ends in `entry_fields`, int32 if that counts so far."""
    entry_fields: np.ndarray
    """The fields of a document that hold a term, ascending, uint8."""
    lengths: np.ndarray
    """How many terms each document has in each field, int32, shape (documents, fields)."""
    _resolved: dict[Token, tuple[QueryTerm, ...]] = field(
        default_factory=dict, init=False, repr=False
    )

    @classmethod
    def build(cls, documents: Iterable[Fields], *, weights: Mapping[str, float]) -> BM25Index:
        """Index *documents*.

        Args:
            documents: The position in the sequence is the document's position in every array.
            weights: Weight of each field, > 0; a field that is not named here is not indexed.
        """
        vocabulary = Vocabulary(weights)
        return cls.compile(list(map(vocabulary.tokenize, documents)), vocabulary)

    @classmethod
    def compile(cls, counted: Sequence[DocumentTokens], vocabulary: Vocabulary) -> BM25Index:
        """Index documents that are tokenized already.

        Args:
            counted: The documents.
            vocabulary: Numbers their terms and words.
        """
        weights = np.array(list(vocabulary.weights.values()))
        entries = concatenate_numbers([each.entries for each in counted], 2)
        sizes = np.array([len(each.entries) for each in counted], np.intp) // _ENTRY_BYTES
        positions = np.repeat(np.arange(len(counted), dtype=np.int32), sizes)
        # Entries stand by document and field; a stable sort by term keeps that order.
        order = stable_order(entries[:, 0])
        terms, packed = (column[order] for column in entries.T)
        positions = positions[order]
        counts, numbers = np.divmod(packed, np.int32(len(weights)))
        lengths = _lengths(positions, numbers, counts, (len(counted), len(weights)))
        ratios = lengths / _usual_lengths(lengths)
        shares = counts * _normalized(ratios, weights)[positions, numbers]
        changes = (np.diff(terms, prepend=-1) != 0) | (np.diff(positions, prepend=-1) != 0)
        starts = np.flatnonzero(changes)
        totals = np.add.reduceat(shares, starts) if starts.size else shares
        held = np.bincount(terms[starts], minlength=len(vocabulary.terms))
        used, terms_by_number = np.flatnonzero(held), list(vocabulary.terms)
        words, word_terms = spelt_words(counted, vocabulary, used)
        df = held[used]
        idf = np.log1p((len(counted) - df + 0.5) / (df + 0.5)).astype(np.float32)
        impacts = np.repeat(idf, df) * (totals * (parameters.K1 + 1) / (parameters.K1 + totals))
        return cls(
            size=len(counted),
            fields=tuple(vocabulary.weights),
            languages=tuple(sorted({code for one in counted for code in one.languages})),
            names=[terms_by_number[number] for number in used.tolist()],
            words=words,
            word_terms=word_terms,
            idf=idf,
            offsets=np.concatenate([np.zeros(1, np.int64), np.cumsum(df)]),
            positions=positions[starts],
            impacts=impacts.astype(np.float32),
            entry_offsets=np.append(starts, len(shares)).astype(_counting(len(shares))),
            entry_fields=numbers.astype(np.uint8),
            lengths=lengths,
        )

    @cached_property
    def terms(self) -> Mapping[str, int]:
        """Row of each term."""
        return {term: row for row, term in enumerate(self.names)}

    @cached_property
    def word_rows(self) -> Mapping[str, Sequence[int]]:
        """Rows of the terms of each word, by the names of the terms."""
        rows: dict[str, list[int]] = {}
        for word, row in zip(self.words, self.word_terms.tolist(), strict=True):
            rows.setdefault(word, []).append(row)
        for same in rows.values():
            same.sort(key=self.names.__getitem__)
        return rows

    @cached_property
    def spelling(self) -> TrigramIndex:
        """Suggestions for misspelt words; made when the first unknown word asks."""
        return TrigramIndex(list(self.word_rows))

    def match(self, query: Query) -> Hits:
        """Score every document for *query*.

        Returns:
            Zeros everywhere for an empty query.
        """
        analyzed = self.analyze(query)
        scores = np.zeros(self.size, dtype=np.float32)
        coverage = np.zeros(self.size, dtype=np.float32)
        for term in analyzed.terms:
            if term.expansions:
                positions, impacts, shares = self._matched(term, term.weight / analyzed.weight)
                scores[positions] += impacts
                coverage[positions] += shares
        coverage = np.minimum(coverage, 1.0, out=coverage)
        return Hits(terms=analyzed.terms, scores=scores, coverage=coverage)

    def analyze(self, query: Query) -> AnalyzedQuery:
        """Resolve the first 1,024 different words of *query* without scoring a document."""
        if isinstance(query, AnalyzedQuery):
            return query
        read = tokens(query) if isinstance(query, str) else query
        distinct = {token.parts: token for token in read}
        looked_up = islice(distinct.values(), parameters.MAX_QUERY_WORDS)
        terms = [term for token in looked_up for term in self._resolve(token)]
        corrections = sum(term.is_spelling_correction for term in terms)
        if corrections > parameters.MAX_CORRECTIONS:
            terms = [term.discounted(parameters.MAX_CORRECTIONS / corrections) for term in terms]
        return AnalyzedQuery(terms=tuple(terms))

    def document_matches(self, query: Query, positions: Sequence[int]) -> DocumentMatches:
        """Return what the documents at *positions* match of *query*."""
        hits = query if isinstance(query, Hits) else self.match(query)
        words: list[dict[str, None]] = [{} for _ in positions]
        for term in hits.terms:
            for row in {row for rows, _ in term.expansions for row in rows}:
                for number in self._holds(row, positions).nonzero()[0].tolist():
                    words[number][term.word] = None
        wanted = list(positions)
        return DocumentMatches(
            scores=hits.scores[wanted].tolist(),
            coverage=hits.coverage[wanted].tolist(),
            words=[tuple(matched) for matched in words],
        )

    def fields_containing(self, term: QueryTerm, whole: str = "") -> tuple[np.ndarray, np.ndarray]:
        """Return in which fields each document holds one word of a query.

        Args:
            term: The word; of a near spelling it is said where that stands.
            whole: A field, to be asked whether the word is all that stands in it.

        Returns:
            A bit for each field by its number, uint64, and whether the word is the whole field,
            bool; shape (documents,) each. An identifier stands where all its parts do.
        """
        bits = np.zeros(self.size, dtype=np.uint64)
        is_whole = np.zeros(self.size, dtype=np.bool_)
        for rows, _ in term.expansions:
            common = np.bitwise_and.reduce([self._field_bits(row) for row in rows])
            bits |= common
            if whole in self.fields:
                number = self.fields.index(whole)
                alone = self.lengths[:, number] == len(rows)
                is_whole |= alone & (common >> np.uint64(number) & np.uint64(1)).astype(np.bool_)
        return bits, is_whole

    def occurs_in(self, row: int, mask: np.ndarray) -> bool:
        """Return whether a document of *mask* holds the term of *row*."""
        return bool(mask[self.positions[self.offsets[row] : self.offsets[row + 1]]].any())

    def _field_bits(self, row: int) -> np.ndarray:
        first, last = self.offsets[row : row + 2].tolist()
        if first == last:
            return np.zeros(self.size, dtype=np.uint64)
        starts = self.entry_offsets[first:last]
        entries = slice(int(starts[0]), int(self.entry_offsets[last]))
        flags = np.uint64(1) << self.entry_fields[entries].astype(np.uint64)
        bits = np.zeros(self.size, dtype=np.uint64)
        bits[self.positions[first:last]] = np.bitwise_or.reduceat(flags, starts - starts[0])
        return bits

    def _holds(self, row: int, positions: Sequence[int]) -> np.ndarray:
        """Return whether each of the documents holds the term of *row*."""
        documents = self.positions[self.offsets[row] : self.offsets[row + 1]]
        if not documents.size:
            return np.zeros(len(positions), dtype=np.bool_)
        nearest = documents.take(documents.searchsorted(positions), mode="clip")
        held: np.ndarray = nearest == positions
        return held

    def _resolve(self, token: Token) -> tuple[QueryTerm, ...]:
        resolved = self._resolved.get(token)
        if resolved is None:
            if len(self._resolved) >= parameters.MAX_REMEMBERED_WORDS:
                self._resolved.clear()
            resolved = self._resolved[token] = tuple(map(self._query_term, self._units(token)))
        return resolved

    def _units(self, token: Token) -> Iterator[Token]:
        """Yield *token* itself, or its parts where only they may be known."""
        if len(token.parts) == 1 or self._wholes(token):
            yield token
            return
        for part, spelt in zip(token.parts, token.spelt, strict=True):
            yield Token(surface=spelt, parts=(part,), spelt=(spelt,))

    def _query_term(self, token: Token) -> QueryTerm:
        whole_share = 1.0 if len(token.parts) > 1 else parameters.STEM_OF_NUMBERED_SHARE
        expansions: list[Expansion] = [((whole,), whole_share) for whole in self._wholes(token)]
        forms = dict.fromkeys([token.parts, *self._foreign_stems(token.spelt)])
        indexed = (form for form in forms if all(part in self.terms for part in form))
        expansions += ((tuple(self.terms[part] for part in form), 1.0) for form in indexed)
        if not expansions:
            return self._corrected(token)
        weight = max(float(self.idf[list(rows)].sum()) for rows, _ in expansions)
        return QueryTerm(word=token.surface, expansions=tuple(expansions), weight=weight)

    def _wholes(self, token: Token) -> list[int]:
        forms = list(token.wholes)
        if len(token.spelt) > 1:
            forms += [form for (form,) in self._foreign_stems(("".join(token.spelt),))]
        return [self.terms[form] for form in dict.fromkeys(forms) if form in self.terms]

    def _foreign_stems(self, spelt: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        """Yield the terms of *spelt* in each language that a text says it is in."""
        for language in self.languages:
            if language:
                yield tuple(stem(word, language) for word in spelt)

    def _corrected(self, token: Token) -> QueryTerm:
        (word,) = token.spelt
        near: dict[tuple[int, ...], float] = {}
        if len(word) >= parameters.MIN_CORRECTED_LENGTH:
            for suggested, share in self.spelling.suggest(word):
                for row in self.word_rows[suggested]:
                    near.setdefault((row,), share)
            if halves := self._halves(word):
                near.setdefault(halves, parameters.SPLIT_SHARE)
        unknown = float(np.log1p((self.size + 0.5) / 0.5))
        return QueryTerm(
            word=token.surface,
            expansions=tuple(near.items()),
            weight=max((float(self.idf[list(rows)].sum()) for rows in near), default=unknown),
            is_spelling_correction=True,
        )

    def _halves(self, word: str) -> tuple[int, int] | None:
        """Return the terms of two known words, the most even ones, that *word* is without its
        space.
        """
        if len(word) > parameters.MAX_WORD_LENGTH:
            return None
        middle = len(word) / 2
        cuts = range(parameters.MIN_HALF, len(word) - parameters.MIN_HALF + 1)
        for cut in sorted(cuts, key=lambda cut: abs(cut - middle)):
            left, right = self.word_rows.get(word[:cut]), self.word_rows.get(word[cut:])
            if left and right:
                return left[0], right[0]
        return None

    def _matched(self, term: QueryTerm, weight: float) -> _Matched:
        """Return what *term* matches: for each document the best of several expansions."""
        found = [self._expanded(rows, share, weight) for rows, share in term.expansions]
        if len(found) == 1:
            return found[0]
        everywhere = np.concatenate([one[0] for one in found])
        positions, inverse = np.unique(everywhere, return_inverse=True)
        impacts = np.zeros(len(positions), dtype=np.float32)
        shares = np.zeros(len(positions), dtype=np.float32)
        np.maximum.at(impacts, inverse, np.concatenate([one[1] for one in found], dtype=np.float32))
        np.maximum.at(shares, inverse, np.concatenate([one[2] for one in found], dtype=np.float32))
        return positions, impacts, shares

    def _expanded(self, rows: tuple[int, ...], share: float, weight: float) -> _Matched:
        slices = [slice(*self.offsets[row : row + 2].tolist()) for row in rows]
        if len(slices) == 1:
            positions, impacts = self.positions[slices[0]], self.impacts[slices[0]]
            return positions, impacts * np.float32(share), np.full(len(positions), share * weight)
        documents = np.concatenate([self.positions[postings] for postings in slices])
        positions, inverse = np.unique(documents, return_inverse=True)
        impacts = np.bincount(
            inverse, np.concatenate([self.impacts[postings] for postings in slices])
        )
        return positions, impacts * share, np.bincount(inverse) * (share * weight / len(rows))


def _normalized(ratios: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return what a term counts in each field of each document, before saturation.

    Args:
        ratios: The length of each field beside the usual one, shape (documents, fields).
        weights: Of the fields.
    """
    ratios = ratios * np.maximum(ratios / parameters.LONG_FIELD, 1)
    counts: np.ndarray = weights / (1 - parameters.B + parameters.B * ratios)
    return counts


def _counting(count: int) -> type[np.signedinteger[Any]]:
    """Return the smaller of the two types that can count so far."""
    return np.int32 if count <= np.iinfo(np.int32).max else np.int64


def _lengths(
    positions: np.ndarray, numbers: np.ndarray, counts: np.ndarray, shape: tuple[int, int]
) -> np.ndarray:
    """Return how many terms each document has in each field, int32."""
    places = positions.astype(np.int64) * shape[1] + numbers
    sums = np.bincount(places, weights=counts, minlength=shape[0] * shape[1])
    return sums.astype(np.int32).reshape(shape)


def _usual_lengths(lengths: np.ndarray) -> np.ndarray:
    """Return the usual length of each field where it is not empty; few long ones do not move it."""
    columns = [column[column > 0] for column in lengths.T]
    return np.array(
        [np.quantile(each, parameters.USUAL_LENGTH) if each.size else 1 for each in columns]
    )
