"""Which words stand in which documents, and how often: what changes when a document does.

A change costs the words of the documents that came and went, and a pass of the memory over the
arrays. It leaves what a new build of the same documents would make, but for the order of the rows,
which nothing reads.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from graphs.arrays import Moves, inserted, without
from graphs.bm25 import Scale, summed
from graphs.lexicon import Fields, Lexicon, Read, phrases
from graphs.patched import patched
from graphs.spelling import Spelling
from graphs.text import tokens
from graphs.values import dataclass

_Pair = tuple[str, int]
_SLACK = 1024
"""So many rows may be empty before they are given up, and as many as are not."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Inverted:
    """For each term, the documents that hold it."""

    scale: Scale
    size: int
    """How many documents there are."""
    terms: Mapping[str, int]
    """Row of each term."""
    names: Sequence[str]
    """The term of each row; also of rows that are empty by now."""
    offsets: np.ndarray
    """Where a row begins and ends in the arrays below, int64."""
    positions: np.ndarray
    """Documents, ascending within a row, int32."""
    counts: np.ndarray
    """How often the term stands in each field, packed, uint64."""
    saturated: np.ndarray
    """What it is worth there but for its rarity, float32."""
    sources: np.ndarray
    """Number of the field that weighs most, uint8."""
    lengths: np.ndarray
    """How many words each document has in each field, int32, (documents, fields)."""
    sums: np.ndarray
    """How many words each field has, and how many documents fill it, int64, (2, fields)."""
    means: tuple[float, ...]
    """What the weights were made with."""
    languages: Mapping[str, int]
    """The languages of the texts, with how many texts are in each."""
    spelling: Spelling
    """Near spellings of the words as they stand in the documents."""
    meanings: np.ndarray
    """Row of the term of each of those words, int32."""
    uses: np.ndarray
    """How often each of those words stands somewhere, int64."""
    spelt: Mapping[_Pair, int] | None = None
    """The id of each of those words with the row of its term; made when it is needed."""

    @classmethod
    def build(cls, documents: Sequence[Fields], scale: Scale, lexicon: Lexicon) -> Inverted:
        """Read *documents*; the position in the sequence is the position in every array."""
        read: list[Read] = []
        lengths = np.zeros((len(documents), len(scale.fields)), dtype=np.int32)
        languages: Counter[str] = Counter()
        for position, document in enumerate(documents):
            for number, name in enumerate(scale.fields):
                for phrase in phrases(document.get(name, "")):
                    languages[phrase[1]] += 1
                    text = lexicon.read(phrase)
                    read.append(text)
                    lengths[position, number] += len(text.terms)
        names, words, spelt, uses = lexicon.packed(read)
        term, position_of, counts = _counted(words, lengths, scale)
        sums = summed(lengths)
        means = scale.means(sums)
        saturated, sources = scale.weigh(counts, lengths[position_of], means)
        df = np.bincount(term, minlength=len(names))
        return cls(
            scale=scale,
            size=len(documents),
            terms={name: at for at, name in enumerate(names)},
            names=names,
            offsets=_starts(df),
            positions=position_of.astype(np.int32),
            counts=counts,
            saturated=saturated,
            sources=sources,
            lengths=lengths,
            sums=sums,
            means=means,
            languages=languages,
            spelling=Spelling.build([word for word, _ in spelt]),
            meanings=np.fromiter((term for _, term in spelt), dtype=np.int32, count=len(spelt)),
            uses=uses,
            spelt=dict(zip(spelt, range(len(spelt)), strict=True)),
        )

    @property
    def df(self) -> np.ndarray:
        """How many documents hold each term, int64."""
        return np.diff(self.offsets)

    def changed(self, gone: Mapping[int, Fields], new: Mapping[int, Fields]) -> Inverted:
        """Give the same without some documents and with others.

        Args:
            gone: What left, by its position until now, with the texts that it had.
            new: What came, by its position from now on.
        """
        left = {at: _Words.of(fields, self.scale) for at, fields in gone.items()}
        came = {at: _Words.of(fields, self.scale) for at, fields in new.items()}
        change = _Change(before=self, left=left, came=came)
        rows = change.terms()
        found = change.postings(rows)
        found = change.spellings(found, rows)
        languages = Counter(self.languages)
        for words in came.values():
            languages.update(words.languages)
        for words in left.values():
            languages.subtract(words.languages)
        found = replace(found, languages=+languages)
        return found.packed() if found.wasted else found

    def place(self, term: int, position: int) -> int:
        """Say where in the row of *term* the document at *position* stands, or would stand."""
        start, end = self.offsets[term : term + 2].tolist()
        return bisect_left(self.positions, position, start, end)

    def fields_of(self, term: int) -> np.ndarray:
        """Say in which fields each document holds *term*: a bit a field, uint64, (documents,)."""
        row = slice(*self.offsets[term : term + 2].tolist())
        bits = np.zeros(self.size, dtype=np.uint64)
        for number in range(len(self.scale.fields)):
            held = self._held(row, number)
            bits[self.positions[row]] |= held.astype(np.uint64) << np.uint64(number)
        return bits

    def within(self, field: str) -> np.ndarray:
        """Say where in the arrays a document holds a term in *field*, ascending, int64.

        Returns:
            Nothing if no such field is indexed.
        """
        if field not in self.scale.fields:
            return np.zeros(0, dtype=np.int64)
        return np.flatnonzero(self._held(slice(None), self.scale.fields.index(field)))

    def _held(self, row: slice, number: int) -> np.ndarray:
        each = np.uint64((1 << self.scale.bits) - 1)
        return (self.counts[row] >> np.uint64(number * self.scale.bits)) & each > 0

    @property
    def wasted(self) -> bool:
        """Whether too many rows are empty."""
        words = len(self.spelling.words) - len(self.spelling.ids)
        return max(len(self.names) - len(self.terms), words) > max(_SLACK, len(self.terms))

    def packed(self) -> Inverted:
        """Give the same without empty rows."""
        held = self.df
        alive, used = np.flatnonzero(held), np.flatnonzero(self.uses)
        rows = np.zeros(len(held), dtype=np.int32)
        rows[alive] = np.arange(len(alive), dtype=np.int32)
        names = tuple(self.names[at] for at in alive.tolist())
        return replace(
            self,
            terms={name: at for at, name in enumerate(names)},
            names=names,
            offsets=_starts(held[alive]),
            spelling=Spelling.build([self.spelling.words[at] for at in used.tolist()]),
            meanings=rows[self.meanings[used]],
            uses=self.uses[used],
            spelt=None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Words:
    """One document, taken apart."""

    counts: Mapping[str, int]
    """How often each term stands in each field, packed."""
    lengths: Sequence[int]
    spelt: Counter[tuple[str, str]]
    """Spellings with the terms they stand for."""
    languages: Counter[str]

    @classmethod
    def of(cls, document: Fields, scale: Scale) -> _Words:
        counts: Counter[str] = Counter()
        lengths: list[int] = []
        spelt: Counter[tuple[str, str]] = Counter()
        languages: Counter[str] = Counter()
        most = (1 << scale.bits) - 1
        for number, name in enumerate(scale.fields):
            held: Counter[str] = Counter()
            for text, language in phrases(document.get(name, "")):
                languages[language] += 1
                for token in tokens(text, language=language):
                    held.update((*token.parts, *token.wholes))
                    spelt.update(zip(token.spelt, token.parts, strict=True))
            lengths.append(held.total())
            for term, count in held.items():
                counts[term] += min(count, most) << (number * scale.bits)
        return cls(counts=counts, lengths=lengths, spelt=spelt, languages=languages)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Change:
    """Some documents go, others come."""

    before: Inverted
    left: Mapping[int, _Words]
    came: Mapping[int, _Words]

    def terms(self) -> dict[str, int]:
        """Give the row of each term that comes or goes; new ones stand behind the others."""
        rows: dict[str, int] = {}
        size = len(self.before.names)
        for words in (*self.left.values(), *self.came.values()):
            for term in words.counts:
                known = self.before.terms.get(term)
                if known is None and term not in rows:
                    known, size = size, size + 1
                if known is not None:
                    rows[term] = known
        return rows

    def postings(self, rows: Mapping[str, int]) -> Inverted:
        before = self.before
        added = [term for term, row in rows.items() if row >= len(before.names)]
        lost = [(rows[term], at) for at, words in self.left.items() for term in words.counts]
        places = sorted(before.place(row, at) for row, at in lost)
        moved = Moves(size=before.size, gone=sorted(self.left), new=sorted(self.came))
        df = np.concatenate([before.df, np.zeros(len(added), dtype=np.int64)])
        np.subtract.at(df, np.asarray([row for row, _ in lost], dtype=np.intp), 1)
        kept = replace(
            before,
            size=before.size - len(self.left) + len(self.came),
            names=(*before.names, *added),
            offsets=_starts(df),
            positions=moved.of(without(before.positions, places)),
            counts=without(before.counts, places),
            saturated=without(before.saturated, places),
            sources=without(before.sources, places),
        )
        lengths = moved.rows(before.lengths)
        for at, words in self.came.items():
            lengths[at, :] = words.lengths
        found = self._with(kept, rows, df, lengths)
        dead = [term for term, row in rows.items() if not df[row]]
        if not (dead or added):
            return found
        terms = dict(before.terms) | {term: rows[term] for term in added}
        for term in dead:
            terms.pop(term, None)
        return replace(found, terms=terms)

    def _with(
        self, kept: Inverted, rows: Mapping[str, int], df: np.ndarray, lengths: np.ndarray
    ) -> Inverted:
        """Put in what came; *df* takes it in too."""
        scale = kept.scale
        entries = sorted(
            (rows[term], at, packed)
            for at, words in self.came.items()
            for term, packed in words.counts.items()
        )
        places = [kept.place(row, at) for row, at, _ in entries]
        at = np.asarray([at for _, at, _ in entries], dtype=np.int32)
        packed = np.asarray([packed for _, _, packed in entries], dtype=np.uint64)
        np.add.at(df, np.asarray([row for row, _, _ in entries], dtype=np.intp), 1)
        left = np.asarray([words.lengths for words in self.left.values()], dtype=np.int64)
        sums = kept.sums + summed(lengths[list(self.came)])
        sums -= summed(left.reshape(len(self.left), len(scale.fields)))
        means = scale.means(sums)
        positions = inserted(kept.positions, places, at)
        counts = inserted(kept.counts, places, packed)
        if means == kept.means:
            weights, chiefs = scale.weigh(packed, lengths[at], means)
            saturated = inserted(kept.saturated, places, weights)
            sources = inserted(kept.sources, places, chiefs)
        else:
            saturated, sources = scale.weigh(counts, lengths[positions], means)
        return replace(
            kept,
            offsets=_starts(df),
            positions=positions,
            counts=counts,
            saturated=saturated,
            sources=sources,
            lengths=lengths,
            sums=sums,
            means=means,
        )

    def spellings(self, found: Inverted, rows: Mapping[str, int]) -> Inverted:
        """Take out the spellings that nobody writes any more, and put in the new ones."""
        net: Counter[_Pair] = Counter()
        for sign, group in ((1, self.came), (-1, self.left)):
            for words in group.values():
                for (word, term), count in words.spelt.items():
                    net[word, rows[term]] += sign * count
        spelt = found.spelt or _spelt(found)
        known = {pair: spelt[pair] for pair in net if pair in spelt}
        new = [pair for pair, count in net.items() if pair not in spelt and count > 0]
        uses = np.concatenate([found.uses, np.asarray([net[pair] for pair in new], np.int64)])
        for pair, at in known.items():
            uses[at] += net[pair]
        dead = {pair for pair, at in known.items() if not uses[at]}
        if new or dead:
            size = len(found.uses)
            spelt = patched(spelt, dead, {pair: size + at for at, pair in enumerate(new)})
        meanings = np.asarray([row for _, row in new], dtype=np.int32)
        return replace(
            found,
            spelling=found.spelling.changed(
                [known[pair] for pair in dead], [word for word, _ in new]
            ),
            meanings=np.concatenate([found.meanings, meanings]),
            uses=uses,
            spelt=spelt,
        )


def _spelt(found: Inverted) -> dict[_Pair, int]:
    pairs = zip(found.spelling.words, found.meanings.tolist(), strict=True)
    return {pair: at for at, pair in enumerate(pairs) if pair[0]}


def _starts(df: np.ndarray) -> np.ndarray:
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(df, dtype=np.int64)])


def _counted(
    words: np.ndarray, lengths: np.ndarray, scale: Scale
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Give the term, the document and the packed counts of each posting."""
    size, fields = lengths.shape
    cells = np.repeat(np.arange(size * fields), lengths.ravel())
    keys, counts = np.unique(words * (size * fields) + cells, return_counts=True)
    pair, number = np.divmod(keys, max(fields, 1))
    starts = np.flatnonzero(np.diff(pair, prepend=-1))
    packed = scale.pack(counts, number)
    held = np.add.reduceat(packed, starts) if keys.size else packed
    term, document = np.divmod(pair[starts], max(size, 1))
    return term, document, held
