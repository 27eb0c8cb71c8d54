"""How an inverted index is made, and what changes when a document does.

A change costs the words of the documents that came and went, and a pass of the memory over the
arrays. It leaves what a new build of the same documents would make, but for the order of the rows,
which nothing reads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from graphs.arrays import Moves, inserted, without
from graphs.lexical.analysis import tokens
from graphs.lexical.bm25 import Scale, summed
from graphs.lexical.inverted import Inverted, starts
from graphs.lexical.lexicon import Fields, Lexicon, Read, phrases
from graphs.lexical.trigrams import Spelling
from graphs.patched import patched

_Pair = tuple[str, int]


def built(documents: Sequence[Fields], scale: Scale, lexicon: Lexicon) -> Inverted:
    """See `Inverted.build`."""
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
    return Inverted(
        scale=scale,
        size=len(documents),
        terms={name: at for at, name in enumerate(names)},
        names=names,
        offsets=starts(df),
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


def changed(before: Inverted, gone: Mapping[int, Fields], new: Mapping[int, Fields]) -> Inverted:
    """See `Inverted.changed`."""
    left = {at: _Words.of(fields, before.scale) for at, fields in gone.items()}
    came = {at: _Words.of(fields, before.scale) for at, fields in new.items()}
    change = _Change(before=before, left=left, came=came)
    rows = change.terms()
    found = change.postings(rows)
    found = change.spellings(found, rows)
    languages = Counter(before.languages)
    for words in came.values():
        languages.update(words.languages)
    for words in left.values():
        languages.subtract(words.languages)
    found = replace(found, languages=+languages)
    return found.packed() if found.wasted else found


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
            offsets=starts(df),
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
            offsets=starts(df),
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
