"""Words at one slip of the hand: an index of what is left when a letter is lost.

Two words that differ by one edit (a letter more, less, other, or two swapped) share what is left
of them when a letter of one of them, or of each, is dropped: a look-up costs the letters of the
asked word, not the vocabulary. The idea is Garbe's SymSpell (2012), with one deletion a side and
numbers in place of texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

LONGEST = 24
"""Longer words are not indexed: nobody's finger slips once in a blob."""
_BASE = 0x9E3779B97F4A7C15
_MIX = 0xD6E8FEB86659FD93
_WRAP = 1 << 64
_POWERS = np.cumprod(np.full(LONGEST + 1, _BASE, dtype=np.uint64), dtype=np.uint64)
_INVERSE = np.uint64(pow(_BASE, -1, _WRAP))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Nearby:
    """An immutable index of a vocabulary: 12 bytes a letter."""

    words: Sequence[str]
    """The vocabulary; ids are positions in it."""
    keys: np.ndarray
    """Hashes of the words and of what is left of them without each letter, ascending, uint64."""
    ids: np.ndarray
    """Whose each of the keys is, int32."""
    initials: np.ndarray
    """Code point of each word's first letter, 0 for words that are not indexed, uint32."""
    lengths: np.ndarray
    """How many characters each word has, int32."""
    alike: dict[tuple[int, int], tuple[list[str], list[int]]] = field(default_factory=dict)
    """The words of each first letter and length that were looked through so far."""

    @classmethod
    def build(cls, words: Sequence[str]) -> Nearby:
        """Index *words*, each at most once in them."""
        short = [at for at, word in enumerate(words) if len(word) <= LONGEST]
        owners, keys = _keys([words[at] for at in short])
        order = np.argsort(keys)
        firsts = (ord(word[0]) if 0 < len(word) <= LONGEST else 0 for word in words)
        return cls(
            words=words,
            keys=keys[order],
            ids=np.asarray(short, dtype=np.int32)[owners[order]],
            initials=np.fromiter(firsts, dtype=np.uint32, count=len(words)),
            lengths=np.fromiter(map(len, words), dtype=np.int32, count=len(words)),
        )

    def one_edit(self, asked: Sequence[str]) -> list[list[int]]:
        """Give, for each word of *asked*, the ids of the words within one edit of it, ascending.

        Edits are those of optimal string alignment, none at all included; words above 24 letters
        have none near. All words are looked up at once.
        """
        from rapidfuzz.distance import OSA  # noqa: PLC0415  (only a misspelt word needs it)

        near: list[set[int]] = [set() for _ in asked]
        short = [at for at, word in enumerate(asked) if 0 < len(word) <= LONGEST]
        owners, keys = _keys([asked[at] for at in short])
        starts = np.searchsorted(self.keys, keys, side="left")
        ends = np.searchsorted(self.keys, keys, side="right")
        for hit in np.flatnonzero(starts < ends).tolist():
            near[short[owners[hit]]].update(self.ids[starts[hit] : ends[hit]].tolist())
        return [
            sorted(at for at in found if OSA.distance(word, self.words[at], score_cutoff=1) <= 1)
            for word, found in zip(asked, near, strict=True)
        ]

    def two_edits(self, word: str) -> list[int]:
        """Give the ids of the words within two edits of *word* that begin as it does, ascending.

        Costs a look at each word of that first letter and about that length.
        """
        if not 0 < len(word) <= LONGEST:
            return []
        from rapidfuzz import process  # noqa: PLC0415  (only a misspelt word needs it)
        from rapidfuzz.distance import OSA  # noqa: PLC0415  (only a misspelt word needs it)

        around = [self._like(ord(word[0]), len(word) + more) for more in range(-2, 3)]
        choices = [choice for words, _ in around for choice in words]
        ids = [at for _, numbers in around for at in numbers]
        found = process.extract(word, choices, scorer=OSA.distance, score_cutoff=2, limit=None)
        return sorted(ids[at] for _, _, at in found)

    def _like(self, initial: int, length: int) -> tuple[list[str], list[int]]:
        """Give the words of one first letter and length, with their ids."""
        known = self.alike.get((initial, length))
        if known is None:
            same = (self.initials == initial) & (self.lengths == length)
            ids = np.flatnonzero(same).tolist()
            known = self.alike[initial, length] = [self.words[at] for at in ids], ids
        return known


def _keys(words: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Hash each word, whole and without each of its letters: owners (int32) and keys (uint64).

    The hash is a polynomial over mixed code points, so that a letter is dropped by arithmetic.
    """
    lengths = np.fromiter(map(len, words), dtype=np.int64, count=len(words))
    points = np.frombuffer("".join(words).encode("utf-32-le", "surrogatepass"), dtype="<u4")
    owners = np.repeat(np.arange(len(words), dtype=np.int32), lengths)
    starts = np.cumsum(lengths) - lengths
    places = np.arange(len(points)) - starts[owners]
    mixed = (points.astype(np.uint64) + np.uint64(1)) * np.uint64(_MIX)
    mixed ^= mixed >> np.uint64(31)
    terms = mixed * _POWERS[places]
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(terms, dtype=np.uint64)])
    before = sums[:-1] - sums[starts][owners]
    totals = sums[starts + lengths] - sums[starts]
    without = before + (totals[owners] - before - terms) * _INVERSE
    everyone = np.arange(len(words), dtype=np.int32)
    return np.concatenate([everyone, owners]), np.concatenate([totals, without])
