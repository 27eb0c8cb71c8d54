"""Words at one slip of the hand: an index of what is left when a letter is lost.

Two words that differ by one edit (a letter more, less, other, or two swapped) share what is left
of them when a letter of one of them, or of each, is dropped: a look-up costs the letters of the
asked word, not the vocabulary. The idea is Garbe's SymSpell (2012), with one deletion a side and
numbers in place of texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

LONGEST = 24
"""Longer words are not indexed: nobody's finger slips once in a blob."""
_BASE = 0x9E3779B97F4A7C15
_MIX = 0xD6E8FEB86659FD93
_WRAP = 1 << 64
_POWERS = np.cumprod(np.full(LONGEST + 1, _BASE, dtype=np.uint64), dtype=np.uint64)
_INVERSE = np.uint64(pow(_BASE, -1, _WRAP))
_FEW_LETTERS = 48
"""Up to so many letters are hashed one by one: that costs less than a call into numpy."""
_FEW_POWERS = _POWERS.tolist()
_FEW_INVERSE = int(_INVERSE)
_LETTERS_IN_TWO_EDITS = 4
_BITS = 64
_LENGTHS = 64
"""More than any length that is looked for, two edits more included."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Typed:
    """Words that somebody typed, hashed once for all vocabularies that they are looked up in."""

    words: Sequence[str]
    owners: Sequence[int]
    """Which of the words each key is of."""
    keys: np.ndarray
    """Hashes of each word and of what is left of it without each letter, uint64."""

    @classmethod
    def of(cls, words: Sequence[str]) -> Typed:
        """Hash *words*; those above 24 letters have no keys."""
        short = [at for at, word in enumerate(words) if 0 < len(word) <= LONGEST]
        if sum(len(words[at]) for at in short) > _FEW_LETTERS:
            owners, keys = _keys([words[at] for at in short])
            return cls(words=words, owners=[short[at] for at in owners.tolist()], keys=keys)
        pairs = [(at, key) for at in short for key in _few_keys(words[at])]
        keys = np.array([key for _, key in pairs], dtype=np.uint64)
        return cls(words=words, owners=[at for at, _ in pairs], keys=keys)


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
    shelved: list[_Shelves] = field(default_factory=list, repr=False)
    """The words by first letter and length, once somebody looks for two edits."""

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

    def one_edit(self, asked: Typed) -> list[list[int]]:
        """Give, for each word of *asked*, the ids of the words within one edit of it, ascending.

        Edits are those of optimal string alignment, none at all included; words above 24 letters
        have none near. All words are looked up at once.
        """
        from rapidfuzz.distance import OSA  # noqa: PLC0415  (only a misspelt word needs it)

        near: list[set[int]] = [set() for _ in asked.words]
        starts = self.keys.searchsorted(asked.keys, side="left")
        held = self.keys.take(starts, mode="clip") == asked.keys if self.keys.size else starts < 0
        hits = held.nonzero()[0]
        ends = self.keys.searchsorted(asked.keys[hits], side="right").tolist()
        for hit, start, end in zip(hits.tolist(), starts[hits].tolist(), ends, strict=True):
            near[asked.owners[hit]].update(self.ids[start:end].tolist())
        return [
            sorted(at for at in found if OSA.distance(word, self.words[at], score_cutoff=1) <= 1)
            for word, found in zip(asked.words, near, strict=True)
        ]

    def two_edits(self, word: str) -> list[int]:
        """Give the ids of the words within two edits of *word* that begin as it does, ascending.

        Costs a look at each word of that first letter and about that length.
        """
        if not 0 < len(word) <= LONGEST:
            return []
        from rapidfuzz import process  # noqa: PLC0415  (only a misspelt word needs it)
        from rapidfuzz.distance import OSA  # noqa: PLC0415  (only a misspelt word needs it)

        if not self.shelved:
            self.shelved.append(_Shelves.of(self.words, self.initials, self.lengths))
        ids, letters = self.shelved[0].alike(ord(word[0]), len(word))
        # An edit takes one letter away and brings one at most.
        near = ids[np.bitwise_count(letters ^ np.uint64(_letters(word))) <= _LETTERS_IN_TWO_EDITS]
        choices = {at: self.words[at] for at in near.tolist()}
        found = process.extract(word, choices, scorer=OSA.distance, score_cutoff=2, limit=None)
        return sorted(at for _, _, at in found)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Shelves:
    """Words by first letter and length: those that are alike stand together."""

    keys: np.ndarray
    """First letter and length of each as one number, ascending, int64."""
    ids: np.ndarray
    letters: np.ndarray
    """Which letters each word has, uint64; see `_letters`."""

    @classmethod
    def of(cls, words: Sequence[str], initials: np.ndarray, lengths: np.ndarray) -> _Shelves:
        """Shelve *words*, all at once."""
        points = np.frombuffer("".join(words).encode("utf-32-le", "surrogatepass"), dtype="<u4")
        marks = np.uint64(1) << (points % _BITS).astype(np.uint64)
        held = lengths > 0
        starts = (np.cumsum(lengths) - lengths)[held]
        letters = np.zeros(len(words), dtype=np.uint64)
        letters[held] = np.bitwise_or.reduceat(marks, starts) if starts.size else 0
        keys = initials.astype(np.int64) * _LENGTHS + np.minimum(lengths, _LENGTHS - 1)
        order = keys.argsort(kind="stable")
        return cls(keys=keys[order], ids=order, letters=letters[order])

    def alike(self, initial: int, length: int) -> tuple[np.ndarray, np.ndarray]:
        """Give the words that begin so and are two letters longer or shorter at most."""
        least, most = max(length - 2, 1), length + 2
        around = [initial * _LENGTHS + least, initial * _LENGTHS + most + 1]
        start, end = self.keys.searchsorted(around).tolist()
        return self.ids[start:end], self.letters[start:end]


def _letters(word: str) -> int:
    """Say which letters *word* has, a bit each; some share one."""
    found = 0
    for letter in word:
        found |= 1 << ord(letter) % _BITS
    return found


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


def _few_keys(word: str) -> list[int]:
    """Hash one word as `_keys` does."""
    before, total = [0], 0
    for at, letter in enumerate(word):
        mixed = (ord(letter) + 1) * _MIX % _WRAP
        total += (mixed ^ mixed >> 31) * _FEW_POWERS[at]
        before.append(total)
    # What stands behind the letter that is left out moves one place to the front.
    without = (a + (total - b) * _FEW_INVERSE for a, b in pairwise(before))
    return [total % _WRAP, *(key % _WRAP for key in without)]
