"""BM25F index of the words of documents, built from token counts; immutable and vectorized.

After Robertson, Zaragoza and Taylor, *Simple BM25 extension to multiple weighted fields* (2004),
with length normalization per field. Lengths are compared with a quantile instead of the mean. The
counts in far longer fields are discounted by the square, so that keyword stuffing gains little.
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
"""A text, its tokens, or the result of `BM25Index.analyze`."""
_ENTRY_BYTES = 2 * np.dtype(np.int32).itemsize
_TermMatches: TypeAlias = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Matches of one word: documents, and the word's share of each document's score and coverage."""


@dataclass(frozen=True, kw_only=True, eq=False)
class BM25Index:
    """The documents that contain each term, and the term's weight in each document."""

    size: int
    fields: tuple[str, ...]
    """Names of the indexed fields, in the order that other arrays use."""
    languages: tuple[str, ...]
    """Languages of the indexed texts. A query is stemmed in each of them."""
    names: Sequence[str]
    """All terms. The position of a term is its row in the other arrays."""
    words: Sequence[str]
    """Words as the documents spell them. A word occurs once for each of its terms."""
    word_terms: np.ndarray
    """Row of the term of each word in `words`, int32."""
    idf: np.ndarray
    """Inverse document frequency of each term, float32, > 0."""
    offsets: np.ndarray
    """Start of each term's postings in `positions` and `impacts`, and the end of the last;
    int64."""
    positions: np.ndarray
    """Positions of the documents that contain a term, ascending within a term, int32."""
    impacts: np.ndarray
    """Score that the term of each posting adds to its document, float32."""
    entry_offsets: np.ndarray
    """Start of each posting's fields in `entry_fields`, and the end of the last; int32 or int64."""
    entry_fields: np.ndarray
    """Fields in which the document of a posting contains the term, ascending positions, uint8."""
    lengths: np.ndarray
    """Number of terms of each document in each field, int32, shape (documents, fields)."""
    _resolved: dict[Token, tuple[QueryTerm, ...]] = field(
        default_factory=dict, init=False, repr=False
    )

    @classmethod
    def build(cls, documents: Iterable[Fields], *, weights: Mapping[str, float]) -> BM25Index:
        """Index *documents*.

        *weights* are the weight of each indexed field, > 0. Other fields are not indexed.
        """
        vocabulary = Vocabulary(weights)
        return cls.compile(list(map(vocabulary.tokenize, documents)), vocabulary)

    @classmethod
    def compile(cls, counted: Sequence[DocumentTokens], vocabulary: Vocabulary) -> BM25Index:
        """Index documents that *vocabulary* tokenized."""
        weights = np.array(list(vocabulary.weights.values()))
        entries = concatenate_numbers([document.entries for document in counted], 2)
        sizes = np.array([len(document.entries) for document in counted], np.intp) // _ENTRY_BYTES
        positions = np.repeat(np.arange(len(counted), dtype=np.int32), sizes)
        # Entries are sorted by document and field; a stable sort by term keeps that order.
        order = stable_order(entries[:, 0])
        terms, packed = (column[order] for column in entries.T)
        positions = positions[order]
        counts, numbers = np.divmod(packed, np.int32(len(weights)))
        lengths = _lengths(positions, numbers, counts, (len(counted), len(weights)))
        ratios = lengths / _usual_lengths(lengths)
        shares = counts * _field_weights(ratios, weights)[positions, numbers]
        changes = (np.diff(terms, prepend=-1) != 0) | (np.diff(positions, prepend=-1) != 0)
        starts = np.flatnonzero(changes)
        totals = np.add.reduceat(shares, starts) if starts.size else shares
        frequencies = np.bincount(terms[starts], minlength=len(vocabulary.terms))
        used, terms_by_number = np.flatnonzero(frequencies), list(vocabulary.terms)
        words, word_terms = spelt_words(counted, vocabulary, used)
        df = frequencies[used]
        idf = np.log1p((len(counted) - df + 0.5) / (df + 0.5)).astype(np.float32)
        impacts = np.repeat(idf, df) * (totals * (parameters.K1 + 1) / (parameters.K1 + totals))
        return cls(
            size=len(counted),
            fields=tuple(vocabulary.weights),
            languages=tuple(sorted({code for item in counted for code in item.languages})),
            names=[terms_by_number[number] for number in used.tolist()],
            words=words,
            word_terms=word_terms,
            idf=idf,
            offsets=np.concatenate([np.zeros(1, np.int64), np.cumsum(df)]),
            positions=positions[starts],
            impacts=impacts.astype(np.float32),
            entry_offsets=np.append(starts, len(shares)).astype(_integer_type(len(shares))),
            entry_fields=numbers.astype(np.uint8),
            lengths=lengths,
        )

    @cached_property
    def terms(self) -> Mapping[str, int]:
        """Row of each term, keyed by term."""
        return {term: row for row, term in enumerate(self.names)}

    @cached_property
    def word_rows(self) -> Mapping[str, Sequence[int]]:
        """Rows of the terms of each word as written, keyed by word and sorted by term."""
        rows: dict[str, list[int]] = {}
        for word, row in zip(self.words, self.word_terms.tolist(), strict=True):
            rows.setdefault(word, []).append(row)
        for same in rows.values():
            same.sort(key=self.names.__getitem__)
        return rows

    @cached_property
    def spelling(self) -> TrigramIndex:
        """Index for spelling corrections, built when the first unknown word occurs."""
        return TrigramIndex(list(self.word_rows))

    def match(self, query: Query) -> Hits:
        """Score every document for *query*. All scores are 0 for an empty query."""
        analyzed = self.analyze(query)
        scores = np.zeros(self.size, dtype=np.float32)
        coverage = np.zeros(self.size, dtype=np.float32)
        for term in analyzed.terms:
            if term.expansions:
                positions, impacts, shares = self._match_term(term, term.weight / analyzed.weight)
                scores[positions] += impacts
                coverage[positions] += shares
        coverage = np.minimum(coverage, 1.0, out=coverage)
        return Hits(terms=analyzed.terms, scores=scores, coverage=coverage)

    def analyze(self, query: Query) -> AnalyzedQuery:
        """Resolve the first 1,024 distinct words of *query* without scoring documents."""
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
        """Return scores and matched words of *query* for the documents at *positions*."""
        hits = query if isinstance(query, Hits) else self.match(query)
        words: list[dict[str, None]] = [{} for _ in positions]
        for term in hits.terms:
            for row in {row for rows, _ in term.expansions for row in rows}:
                for number in self._contains(row, positions).nonzero()[0].tolist():
                    words[number][term.word] = None
        selected = list(positions)
        return DocumentMatches(
            scores=hits.scores[selected].tolist(),
            coverage=hits.coverage[selected].tolist(),
            words=[tuple(matched) for matched in words],
        )

    def fields_containing(self, term: QueryTerm, whole: str = "") -> tuple[np.ndarray, np.ndarray]:
        """Return the fields of each document that contain one word of a query, or its corrections.

        Returns:
            Two arrays with one item per document: a bit for each field that contains all parts of
            the word, uint64; and True if the field *whole*, if given, contains only the word.
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
        """Return whether any document in *mask* contains the term at *row*."""
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

    def _contains(self, row: int, positions: Sequence[int]) -> np.ndarray:
        documents = self.positions[self.offsets[row] : self.offsets[row + 1]]
        if not documents.size:
            return np.zeros(len(positions), dtype=np.bool_)
        nearest = documents.take(documents.searchsorted(positions), mode="clip")
        is_contained: np.ndarray = nearest == positions
        return is_contained

    def _resolve(self, token: Token) -> tuple[QueryTerm, ...]:
        resolved = self._resolved.get(token)
        if resolved is None:
            if len(self._resolved) >= parameters.MAX_REMEMBERED_WORDS:
                self._resolved.clear()
            resolved = self._resolved[token] = tuple(map(self._query_term, self._units(token)))
        return resolved

    def _units(self, token: Token) -> Iterator[Token]:
        """Yield *token* if it has one part or is indexed as a whole, else a token for each part."""
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
            return self._corrected_term(token)
        weight = max(float(self.idf[list(rows)].sum()) for rows, _ in expansions)
        return QueryTerm(word=token.surface, expansions=tuple(expansions), weight=weight)

    def _wholes(self, token: Token) -> list[int]:
        forms = list(token.wholes)
        if len(token.spelt) > 1:
            forms += [form for (form,) in self._foreign_stems(("".join(token.spelt),))]
        return [self.terms[form] for form in dict.fromkeys(forms) if form in self.terms]

    def _foreign_stems(self, spelt: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        for language in self.languages:
            if language:
                yield tuple(stem(word, language) for word in spelt)

    def _corrected_term(self, token: Token) -> QueryTerm:
        (word,) = token.spelt
        similar: dict[tuple[int, ...], float] = {}
        if len(word) >= parameters.MIN_CORRECTED_LENGTH:
            for suggested, share in self.spelling.suggest(word):
                for row in self.word_rows[suggested]:
                    similar.setdefault((row,), share)
            if halves := self._split_in_two(word):
                similar.setdefault(halves, parameters.SPLIT_SHARE)
        unknown = float(np.log1p((self.size + 0.5) / 0.5))
        return QueryTerm(
            word=token.surface,
            expansions=tuple(similar.items()),
            weight=max((float(self.idf[list(rows)].sum()) for rows in similar), default=unknown),
            is_spelling_correction=True,
        )

    def _split_in_two(self, word: str) -> tuple[int, int] | None:
        """Return the rows of the two indexed words of which *word* consists, if any.

        Of several cuts, the one nearest to the middle is used.
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

    def _match_term(self, term: QueryTerm, weight: float) -> _TermMatches:
        """Return the documents that match *term*. The best expansion counts for each document."""
        matches = [self._match_rows(rows, share, weight) for rows, share in term.expansions]
        if len(matches) == 1:
            return matches[0]
        everywhere = np.concatenate([match[0] for match in matches])
        positions, inverse = np.unique(everywhere, return_inverse=True)
        impacts = np.zeros(len(positions), dtype=np.float32)
        shares = np.zeros(len(positions), dtype=np.float32)
        np.maximum.at(
            impacts, inverse, np.concatenate([match[1] for match in matches], dtype=np.float32)
        )
        np.maximum.at(
            shares, inverse, np.concatenate([match[2] for match in matches], dtype=np.float32)
        )
        return positions, impacts, shares

    def _match_rows(self, rows: tuple[int, ...], share: float, weight: float) -> _TermMatches:
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


def _field_weights(ratios: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the weight of one term occurrence in each field of each document, before saturation.

    *ratios* are the fields' lengths as multiples of the usual length, shape (documents, fields).
    """
    ratios = ratios * np.maximum(ratios / parameters.LONG_FIELD, 1)
    counts: np.ndarray = weights / (1 - parameters.B + parameters.B * ratios)
    return counts


def _integer_type(count: int) -> type[np.signedinteger[Any]]:
    return np.int32 if count <= np.iinfo(np.int32).max else np.int64


def _lengths(
    positions: np.ndarray, numbers: np.ndarray, counts: np.ndarray, shape: tuple[int, int]
) -> np.ndarray:
    places = positions.astype(np.int64) * shape[1] + numbers
    sums = np.bincount(places, weights=counts, minlength=shape[0] * shape[1])
    return sums.astype(np.int32).reshape(shape)


def _usual_lengths(lengths: np.ndarray) -> np.ndarray:
    columns = [column[column > 0] for column in lengths.T]
    return np.array(
        [
            np.quantile(column_lengths, parameters.USUAL_LENGTH) if column_lengths.size else 1
            for column_lengths in columns
        ]
    )
