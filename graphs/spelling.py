"""Near spellings: which known words a mistyped word may mean.

Candidates come from a character-trigram index, so that the cost does not grow with the whole
vocabulary; each is then checked by edit distance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from rapidfuzz import process
from rapidfuzz.distance import OSA, JaroWinkler

_CANDIDATES = 64
_LONGEST = 32
_SHORTEST_HALF = 3
_BY_DISTANCE = (1.0, 0.8, 0.5)
_SOUNDS_LIKE = 0.93
_SOUNDS_LIKE_SHARE = 0.3
_MARK = "$"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Spelling:
    """An immutable index of the spellings of a vocabulary."""

    words: tuple[str, ...]
    """The vocabulary, in the order of its ids."""
    ids: Mapping[str, int]
    """Id of each word."""
    grams: np.ndarray
    """The trigrams, each packed into a number, ascending, int64."""
    offsets: np.ndarray
    """Where the row of a trigram begins and ends in `members`, int64."""
    members: np.ndarray
    """Ids of the words that hold the trigram, int32."""

    @classmethod
    def build(cls, words: Sequence[str]) -> Spelling:
        """Index *words*; their ids are their positions."""
        ids, found = _trigrams([word if len(word) <= _LONGEST else "" for word in words])
        order = np.argsort(found, kind="stable")
        grams, starts = np.unique(found[order], return_index=True)
        return cls(
            words=tuple(words),
            ids={word: at for at, word in enumerate(words)},
            grams=grams,
            offsets=np.append(starts, len(found)).astype(np.int64),
            members=ids[order],
        )

    def near(self, word: str, *, limit: int = 3) -> tuple[tuple[int, float], ...]:
        """Find the known words that *word* may be a misspelling of.

        Returns:
            Up to *limit* pairs of a word's id and its likeness in (0, 1), best first; empty for
            words with digits or of more than 32 characters, and where nothing is near.
        """
        if len(word) > _LONGEST or any(mark.isdigit() for mark in word) or not self.grams.size:
            return ()
        marked = [ord(mark) for mark in f"{_MARK}{word}{_MARK}"]
        packed = [
            a << 42 | b << 21 | c for a, b, c in zip(marked, marked[1:], marked[2:], strict=False)
        ]
        asked = np.asarray(packed, dtype=np.int64)
        rows = np.minimum(np.searchsorted(self.grams, asked), len(self.grams) - 1)
        rows = rows[self.grams[rows] == asked]
        if not rows.size:
            return ()
        held = [self.members[self.offsets[row] : self.offsets[row + 1]] for row in rows]
        counts = np.bincount(np.concatenate(held), minlength=len(self.words))
        # One edit costs three trigrams at most: who shares less than a third is not near.
        sharing = np.flatnonzero(counts >= max(1, len(word) // 3))
        best = sharing[np.argsort(-counts[sharing], kind="stable")[:_CANDIDATES]]
        candidates = {int(at): self.words[at] for at in best}
        return self._verified(word, candidates)[:limit]

    def split(self, word: str) -> tuple[int, int] | None:
        """Find the two known words that *word* is without the space between them.

        Returns:
            Their ids, the most even halves first; None if there are no such two.
        """
        if len(word) > _LONGEST:
            return None
        middle = len(word) / 2
        cuts = range(_SHORTEST_HALF, len(word) - _SHORTEST_HALF + 1)
        for cut in sorted(cuts, key=lambda cut: abs(cut - middle)):
            halves = self.ids.get(word[:cut]), self.ids.get(word[cut:])
            if halves[0] is not None and halves[1] is not None:
                return halves[0], halves[1]
        return None

    def _verified(self, word: str, candidates: Mapping[int, str]) -> tuple[tuple[int, float], ...]:
        reach = 1 if len(word) <= 5 else 2
        edits = process.extract(
            word, candidates, scorer=OSA.distance, score_cutoff=reach, limit=None
        )
        alike = {at: _BY_DISTANCE[int(distance)] for _, distance, at in edits}
        if not alike:
            sounds = process.extract(
                word,
                candidates,
                scorer=JaroWinkler.similarity,
                score_cutoff=_SOUNDS_LIKE,
                limit=None,
            )
            alike = {at: _SOUNDS_LIKE_SHARE for _, _, at in sounds}
        return tuple(sorted(alike.items(), key=lambda pair: (-pair[1], self.words[pair[0]])))


def _trigrams(words: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Give the trigrams of each word between two marks: ids of the words, packed trigrams."""
    joined = "".join(f"{_MARK}{word}{_MARK}" for word in words)
    points = np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), dtype="<u4")
    lengths = np.fromiter(map(len, words), dtype=np.int64, count=len(words))
    starts = np.cumsum(lengths + 2) - (lengths + 2)
    ids = np.repeat(np.arange(len(words), dtype=np.int32), lengths)
    inside = np.arange(len(ids)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    at = starts[ids] + inside
    wide = points.astype(np.int64)
    # A character needs 21 bits; three of them fit.
    return ids, wide[at] << 42 | wide[at + 1] << 21 | wide[at + 2]
