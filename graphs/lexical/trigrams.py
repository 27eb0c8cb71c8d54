"""Near spellings: which known words a mistyped word may mean.

Candidates come from a character-trigram index, so that the cost does not grow with the whole
vocabulary; each is then checked by edit distance.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from graphs.arrays import inserted, without
from graphs.patched import patched

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

    words: Sequence[str]
    """The vocabulary, in the order of its ids; empty where a word was given up."""
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
        ids, found = _trigrams([_short(word) for word in words])
        order = np.argsort(found, kind="stable")
        grams, starts = np.unique(found[order], return_index=True)
        return cls(
            words=tuple(words),
            ids={word: at for at, word in enumerate(words)},
            grams=grams,
            offsets=np.append(starts, len(found)).astype(np.int64),
            members=ids[order],
        )

    def changed(self, gone: Sequence[int], new: Sequence[str]) -> Spelling:
        """Give the same without some ids and with more words, whose ids follow the others."""
        if not gone and not new:
            return self
        words = [*self.words, *new]
        for at in gone:
            words[at] = ""
        left = {self.words[at] for at in gone} & self.ids.keys()
        # A word may stand there twice, with two meanings.
        turned = {word: words.index(word) for word in left if word in words}
        first = len(self.words)
        came = {word: first + at for at, word in enumerate(new)}
        ids = patched(self.ids, left - turned.keys(), {**turned, **came})
        kept = self._without(gone) if gone else self
        return kept.with_words(new, tuple(words), ids)

    def _without(self, gone: Sequence[int]) -> Spelling:
        """Take the trigrams of some words out; their rows stay, empty."""
        ids, grams = _trigrams([_short(self.words[at]) for at in gone])
        rows = np.searchsorted(self.grams, grams)
        lost: dict[int, int] = {}
        for at, row in zip(ids.tolist(), rows.tolist(), strict=True):
            start, end = self.offsets[row : row + 2].tolist()
            left = bisect_left(self.members, gone[at], start, end)
            lost |= dict.fromkeys(range(left, bisect_right(self.members, gone[at], left, end)), row)
        counts = np.diff(self.offsets)
        np.subtract.at(counts, list(lost.values()), 1)
        return replace(self, offsets=_starts(counts), members=without(self.members, sorted(lost)))

    def with_words(
        self, new: Sequence[str], words: tuple[str, ...], ids: Mapping[str, int]
    ) -> Spelling:
        """Put the trigrams of *new* in, behind those of the words that are there."""
        found, asked = _trigrams([_short(word) for word in new])
        met = np.searchsorted(self.grams, asked)
        inside = met < len(self.grams)
        inside[inside] = self.grams[met[inside]] == asked[inside]
        fresh = np.unique(asked[~inside])
        before = np.searchsorted(self.grams, fresh)
        grams = inserted(self.grams, before.tolist(), fresh)
        counts = inserted(np.diff(self.offsets), before.tolist(), np.zeros(len(fresh), np.int64))
        starts = _starts(counts)
        rows = np.searchsorted(grams, asked)
        order = np.lexsort((found, rows))
        places = starts[rows[order] + 1].tolist()
        members = inserted(self.members, places, (found[order] + len(self.words)).astype(np.int32))
        np.add.at(counts, rows, 1)
        return Spelling(words=words, ids=ids, grams=grams, offsets=_starts(counts), members=members)

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
        rows = self.grams.searchsorted(asked)
        rows = rows[self.grams.take(rows, mode="clip") == asked]
        if not rows.size:
            return ()
        bounds = zip(self.offsets[rows].tolist(), self.offsets[rows + 1].tolist(), strict=True)
        members = [self.members[start:end] for start, end in bounds]
        counts = np.bincount(np.concatenate(members), minlength=len(self.words))
        # One edit costs three trigrams at most: who shares less than a third is not near.
        least = max(1, len(word) // 3)
        sharing = (counts >= least).nonzero()[0]
        if len(sharing) > _CANDIDATES:
            # Who ties with the last comes along, so that the order of the words decides nothing.
            held = counts[sharing]
            sharing = sharing[held >= np.partition(held, -_CANDIDATES)[-_CANDIDATES]]
        return self._verified(word, sharing.tolist())[:limit]

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

    def _verified(self, word: str, spots: Sequence[int]) -> tuple[tuple[int, float], ...]:
        from rapidfuzz import process  # noqa: PLC0415  (only a misspelt word needs it)
        from rapidfuzz.distance import OSA, JaroWinkler  # noqa: PLC0415  (only a misspelt word needs it)

        candidates = [self.words[at] for at in spots]
        reach = 1 if len(word) <= 5 else 2
        edits = process.extract(
            word, candidates, scorer=OSA.distance, score_cutoff=reach, limit=None
        )
        alike = {spots[at]: _BY_DISTANCE[int(distance)] for _, distance, at in edits}
        if not alike:
            sounds = process.extract(
                word,
                candidates,
                scorer=JaroWinkler.similarity,
                score_cutoff=_SOUNDS_LIKE,
                limit=None,
            )
            alike = {spots[at]: _SOUNDS_LIKE_SHARE for _, _, at in sounds}
        return tuple(sorted(alike.items(), key=lambda pair: (-pair[1], self.words[pair[0]])))


def _short(word: str) -> str:
    """Give *word*, or nothing where it is too long to be indexed."""
    return word if len(word) <= _LONGEST else ""


def _starts(counts: np.ndarray) -> np.ndarray:
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts, dtype=np.int64)])


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
