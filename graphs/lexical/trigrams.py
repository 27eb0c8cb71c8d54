"""Spelling suggestions: known words that a misspelt word may mean.

Candidates share character trigrams with the word, so that the cost does not grow with the whole
vocabulary. Edit distance then decides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from graphs.parameters import (
    DISTANCE_SHARES,
    JARO_WINKLER_SHARE,
    MAX_CANDIDATES,
    MAX_WORD_LENGTH,
    MIN_HALF,
    MIN_JARO_WINKLER,
)

_MARK = "$"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrigramIndex:
    """An immutable index of a vocabulary by character trigrams."""

    words: Sequence[str]
    """The vocabulary; ids are positions in it."""
    ids: Mapping[str, int]
    """Id of each word."""
    grams: np.ndarray
    """The trigrams, each packed into a number, ascending, int64."""
    offsets: np.ndarray
    """Where the row of a trigram begins and ends in `members`, int64."""
    members: np.ndarray
    """Ids of the words that hold the trigram, int32."""

    @classmethod
    def build(cls, words: Sequence[str]) -> TrigramIndex:
        """Index *words*; those of more than 32 characters are never suggested."""
        ids, found = _trigrams([word if len(word) <= MAX_WORD_LENGTH else "" for word in words])
        order = np.argsort(found, kind="stable")
        grams, starts = np.unique(found[order], return_index=True)
        return cls(
            words=words,
            ids={word: number for number, word in enumerate(words)},
            grams=grams,
            offsets=np.append(starts, len(found)).astype(np.int64),
            members=ids[order],
        )

    def suggest(self, word: str, *, limit: int = 3) -> tuple[tuple[int, float], ...]:
        """Return the known words that *word* may be a misspelling of.

        Returns:
            Up to *limit* pairs of a word's id and its share in (0, 1], best first; empty for
            words with digits or of more than 32 characters, and where nothing is near.
        """
        if (
            len(word) > MAX_WORD_LENGTH
            or any(mark.isdigit() for mark in word)
            or not self.grams.size
        ):
            return ()
        _, wanted = _trigrams([word])
        rows = self.grams.searchsorted(wanted)
        rows = rows[self.grams.take(rows, mode="clip") == wanted]
        if not rows.size:
            return ()
        members = [self.members[self.offsets[row] : self.offsets[row + 1]] for row in rows]
        counts = np.bincount(np.concatenate(members), minlength=len(self.words))
        # One edit changes three trigrams at most: a word that shares less than a third is not near.
        sharing = (counts >= max(1, len(word) // 3)).nonzero()[0]
        if len(sharing) > MAX_CANDIDATES:
            # Ties with the last one stay, so that the order of the words decides nothing.
            shared = counts[sharing]
            last = np.partition(shared, -MAX_CANDIDATES)[-MAX_CANDIDATES]
            sharing = sharing[shared >= last]
        return self._verified(word, sharing.tolist())[:limit]

    def split(self, word: str) -> tuple[int, int] | None:
        """Return the ids of the two known words that *word* is without a space between them.

        The most even halves win. None if there are no such two words.
        """
        if len(word) > MAX_WORD_LENGTH:
            return None
        middle = len(word) / 2
        cuts = range(MIN_HALF, len(word) - MIN_HALF + 1)
        for cut in sorted(cuts, key=lambda cut: abs(cut - middle)):
            left, right = self.ids.get(word[:cut]), self.ids.get(word[cut:])
            if left is not None and right is not None:
                return left, right
        return None

    def _verified(self, word: str, ids: Sequence[int]) -> tuple[tuple[int, float], ...]:
        from rapidfuzz import process  # noqa: PLC0415  (only a misspelt word needs it)
        from rapidfuzz.distance import OSA, JaroWinkler  # noqa: PLC0415  (only a misspelt word needs it)

        candidates = {number: self.words[number] for number in ids}
        distance = 1 if len(word) <= 5 else 2
        edits = process.extract(
            word, candidates, scorer=OSA.distance, score_cutoff=distance, limit=None
        )
        shares = {number: DISTANCE_SHARES[int(edit)] for _, edit, number in edits}
        if not shares:
            similar = process.extract(
                word,
                candidates,
                scorer=JaroWinkler.similarity,
                score_cutoff=MIN_JARO_WINKLER,
                limit=None,
            )
            shares = {number: JARO_WINKLER_SHARE for _, _, number in similar}
        return tuple(sorted(shares.items(), key=lambda pair: (-pair[1], self.words[pair[0]])))


def _trigrams(words: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return the trigrams of each word between two marks: ids of the words, packed trigrams."""
    marked = "".join(f"{_MARK}{word}{_MARK}" for word in words)
    points = np.frombuffer(marked.encode("utf-32-le", "surrogatepass"), dtype="<u4")
    lengths = np.fromiter(map(len, words), dtype=np.int64, count=len(words))
    starts = np.cumsum(lengths + 2) - (lengths + 2)
    ids = np.repeat(np.arange(len(words), dtype=np.int32), lengths)
    inside = np.arange(len(ids)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    positions = starts[ids] + inside
    wide = points.astype(np.int64)
    # A character needs 21 bits; three of them fit.
    return ids, wide[positions] << 42 | wide[positions + 1] << 21 | wide[positions + 2]
