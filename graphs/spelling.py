"""Near spellings: which known words a mistyped word may mean.

Candidates come from a character-trigram index, so that the cost does not grow with the whole
vocabulary; each is then checked by edit distance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from rapidfuzz import process
from rapidfuzz.distance import OSA, JaroWinkler

from graphs.text import trigrams

_CANDIDATES = 64
_LONGEST = 32
_BY_DISTANCE = (1.0, 0.6, 0.3)
_SOUNDS_LIKE = 0.93
_SOUNDS_LIKE_SHARE = 0.3


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Spelling:
    """An immutable index of the spellings of a vocabulary."""

    words: tuple[str, ...]
    """The vocabulary, in the order of its ids."""
    grams: Mapping[str, int]
    """Row of each trigram."""
    offsets: np.ndarray
    """Where the row of a trigram begins and ends in `members`, int64."""
    members: np.ndarray
    """Ids of the words that hold the trigram, int32."""

    @classmethod
    def build(cls, words: Sequence[str]) -> Spelling:
        """Index *words*; their ids are their positions."""
        spelled = [trigrams(word) if len(word) <= _LONGEST else [] for word in words]
        grams: dict[str, int] = {}
        rows = [grams.setdefault(gram, len(grams)) for gram in chain.from_iterable(spelled)]
        lengths = [len(each) for each in spelled]
        ids = np.repeat(np.arange(len(words), dtype=np.int32), lengths)
        found = np.asarray(rows, dtype=np.int64)
        order = np.argsort(found, kind="stable")
        offsets = np.searchsorted(found[order], np.arange(len(grams) + 1))
        return cls(words=tuple(words), grams=grams, offsets=offsets, members=ids[order])

    def near(self, word: str, *, limit: int = 3) -> tuple[tuple[int, float], ...]:
        """Find the known words that *word* may be a misspelling of.

        Returns:
            Up to *limit* pairs of a word's id and its likeness in (0, 1), best first; empty for
            words with digits or of more than 32 characters, and where nothing is near.
        """
        if len(word) > _LONGEST or any(mark.isdigit() for mark in word):
            return ()
        rows = [self.grams[gram] for gram in trigrams(word) if gram in self.grams]
        if not rows:
            return ()
        held = [self.members[self.offsets[row] : self.offsets[row + 1]] for row in rows]
        counts = np.bincount(np.concatenate(held), minlength=len(self.words))
        best = np.argsort(-counts, kind="stable")[:_CANDIDATES]
        candidates = {int(at): self.words[at] for at in best if counts[at]}
        return self._verified(word, candidates)[:limit]

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
