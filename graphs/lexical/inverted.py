"""Which words stand in which documents, and how often; `inverting` makes and changes it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from graphs.lexical.bm25 import Scale
from graphs.lexical.lexicon import Fields, Lexicon
from graphs.lexical.trigrams import Spelling

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
        from graphs.lexical.inverting import built  # noqa: PLC0415  (who reads a compiled index needs none of it)

        return built(documents, scale, lexicon)

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
        from graphs.lexical.inverting import changed  # noqa: PLC0415  (as for `build`)

        return changed(self, gone, new)

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
            offsets=starts(held[alive]),
            spelling=Spelling.build([self.spelling.words[at] for at in used.tolist()]),
            meanings=rows[self.meanings[used]],
            uses=self.uses[used],
            spelt=None,
        )


def starts(df: np.ndarray) -> np.ndarray:
    """Give where rows of so many begin, and where the last one ends, int64."""
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(df, dtype=np.int64)])
