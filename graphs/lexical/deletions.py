"""Known words within one or two edits of a misspelt one, by an index of deletions.

Two words that differ by one edit (a letter more, less, other, or two swapped) share what is left
of them when a letter of one of them, or of each, is dropped. A look-up costs the letters of the
misspelt word, not the vocabulary. The idea is Garbe's SymSpell (2012), with one deletion a side
and hashes in place of texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

MAX_LENGTH = 24
"""Longer words are not indexed: they are blobs, not misspelt words."""
_BASE = 0x9E3779B97F4A7C15
_MIX = 0xD6E8FEB86659FD93
_POWERS = np.cumprod(np.full(MAX_LENGTH + 1, _BASE, dtype=np.uint64), dtype=np.uint64)
_INVERSE = np.uint64(pow(_BASE, -1, 1 << 64))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HashedWords:
    """Misspelt words, hashed once for all vocabularies that they are looked up in."""

    words: Sequence[str]
    owners: Sequence[int]
    """Position of the word that each key belongs to."""
    keys: np.ndarray
    """Hashes of each word and of what is left of it without each letter, uint64."""

    @classmethod
    def of(cls, words: Sequence[str]) -> HashedWords:
        """Hash *words*; those above 24 letters have no keys."""
        short = [number for number, word in enumerate(words) if 0 < len(word) <= MAX_LENGTH]
        owners, keys = _hash([words[number] for number in short])
        return cls(words=words, owners=[short[owner] for owner in owners.tolist()], keys=keys)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DeletionIndex:
    """An immutable index of a vocabulary: 12 bytes a letter."""

    words: Sequence[str]
    """The vocabulary; ids are positions in it."""
    keys: np.ndarray
    """Hashes of the words and of what is left of them without each letter, ascending, uint64."""
    ids: np.ndarray
    """The word of each key, int32."""
    initials: np.ndarray
    """Code point of each word's first letter, 0 for words that are not indexed, uint32."""
    lengths: np.ndarray
    """How many characters each word has, int32."""

    @classmethod
    def build(cls, words: Sequence[str]) -> DeletionIndex:
        """Index *words*, each at most once in them."""
        short = [number for number, word in enumerate(words) if len(word) <= MAX_LENGTH]
        owners, keys = _hash([words[number] for number in short])
        order = np.argsort(keys)
        initials = (ord(word[0]) if 0 < len(word) <= MAX_LENGTH else 0 for word in words)
        return cls(
            words=words,
            keys=keys[order],
            ids=np.asarray(short, dtype=np.int32)[owners[order]],
            initials=np.fromiter(initials, dtype=np.uint32, count=len(words)),
            lengths=np.fromiter(map(len, words), dtype=np.int32, count=len(words)),
        )

    def within_one_edit(self, hashed: HashedWords) -> list[list[int]]:
        """Return, for each word of *hashed*, the ids of the words within one edit, ascending.

        Edits are those of optimal string alignment, none at all included; words above 24 letters
        have none near. All words are looked up at once.
        """
        from rapidfuzz.distance import OSA  # noqa: PLC0415  (only a misspelt word needs it)

        near: list[set[int]] = [set() for _ in hashed.words]
        starts = self.keys.searchsorted(hashed.keys, side="left")
        ends = self.keys.searchsorted(hashed.keys, side="right")
        for key in (ends > starts).nonzero()[0].tolist():
            near[hashed.owners[key]].update(self.ids[starts[key] : ends[key]].tolist())
        return [
            sorted(i for i in ids if OSA.distance(word, self.words[i], score_cutoff=1) <= 1)
            for word, ids in zip(hashed.words, near, strict=True)
        ]

    def within_two_edits(self, word: str) -> list[int]:
        """Return the ids of the words within two edits of *word* that begin as it does, ascending.

        Costs a comparison with each word of that first letter and about that length.
        """
        if not 0 < len(word) <= MAX_LENGTH:
            return []
        from rapidfuzz import process  # noqa: PLC0415  (only a misspelt word needs it)
        from rapidfuzz.distance import OSA  # noqa: PLC0415  (only a misspelt word needs it)

        is_close = np.abs(self.lengths - len(word)) <= 2
        ids = (is_close & (self.initials == ord(word[0]))).nonzero()[0].tolist()
        choices = {number: self.words[number] for number in ids}
        found = process.extract(word, choices, scorer=OSA.distance, score_cutoff=2, limit=None)
        return sorted(number for _, _, number in found)


def _hash(words: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Hash each word, whole and without each of its letters: owners (int32) and keys (uint64).

    The hash is a polynomial over mixed code points, so that a letter is dropped by arithmetic.
    """
    lengths = np.fromiter(map(len, words), dtype=np.int64, count=len(words))
    points = np.frombuffer("".join(words).encode("utf-32-le", "surrogatepass"), dtype="<u4")
    owners = np.repeat(np.arange(len(words), dtype=np.int32), lengths)
    starts = np.cumsum(lengths) - lengths
    mixed = (points.astype(np.uint64) + np.uint64(1)) * np.uint64(_MIX)
    mixed ^= mixed >> np.uint64(31)
    terms = mixed * _POWERS[np.arange(len(points)) - starts[owners]]
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(terms, dtype=np.uint64)])
    before = sums[:-1] - sums[starts][owners]
    totals = sums[starts + lengths] - sums[starts]
    without = before + (totals[owners] - before - terms) * _INVERSE
    all_words = np.arange(len(words), dtype=np.int32)
    return np.concatenate([all_words, owners]), np.concatenate([totals, without])
