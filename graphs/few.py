"""What a few documents hold of a question, without a look at any other document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from graphs.hits import Asked, Held, Reading


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rows:
    """The postings that are looked into; see `graphs.postings.Postings`."""

    offsets: np.ndarray
    positions: np.ndarray
    impacts: np.ndarray

    def held(self, read: Reading, wanted: Sequence[int]) -> Held:
        """Tell what each of the documents at *wanted* holds of a question.

        Costs a look-up a term, and rounds as a pass over all documents does.
        """
        words = [word for word in read.asked if word.ways]
        if not words or not wanted:
            nobody: list[tuple[str, ...]] = [()] * len(wanted)
            return Held(scores=[0.0] * len(wanted), coverage=[0.0] * len(wanted), words=nobody)
        terms = {term: None for word in words for ids, _ in word.ways for term in ids}
        found = self._found(list(terms), np.asarray(wanted, dtype=np.int32))
        scores = np.zeros((len(words), len(wanted)))
        shares = np.zeros((len(words), len(wanted)))
        total = read.weight
        for word, score, share in zip(words, scores, shares, strict=True):
            found.weigh(word, word.weight / total, score, share)
        coverage = np.minimum(np.add.reduce(shares).astype(np.float32), 1.0)
        met: list[list[str]] = [[] for _ in wanted]
        for place, at in zip(*(each.tolist() for each in shares.T.nonzero()), strict=True):
            met[place].append(words[at].word)
        return Held(
            scores=np.add.reduce(scores).astype(np.float32).tolist(),
            coverage=coverage.tolist(),
            words=[tuple(dict.fromkeys(each)) for each in met],
        )

    def _found(self, terms: Sequence[int], wanted: np.ndarray) -> _Found:
        near = np.empty((len(terms), len(wanted)), dtype=np.int32)
        worth = np.empty((len(terms), len(wanted)), dtype=np.float32)
        starts, ends = self.offsets[terms].tolist(), self.offsets[1:][terms].tolist()
        for at, (start, end) in enumerate(zip(starts, ends, strict=True)):
            row = self.positions[start:end]
            places = row.searchsorted(wanted)
            row.take(places, mode="clip", out=near[at])
            self.impacts[start:end].take(places, mode="clip", out=worth[at])
        holds = near == wanted
        worth *= holds
        return _Found(rows={term: at for at, term in enumerate(terms)}, holds=holds, worth=worth)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Found:
    """Which documents hold which terms."""

    rows: dict[int, int]
    """The row of each term below."""
    holds: np.ndarray
    """Bool, (terms, documents)."""
    worth: np.ndarray
    """What the term adds to the score, float32, (terms, documents)."""

    def weigh(self, word: Asked, weight: float, score: np.ndarray, share: np.ndarray) -> None:
        """Write into *score* and *share* what *word* adds: of several ways to it, the best."""
        for ids, like in word.ways:
            if len(ids) == 1:
                at = self.rows[ids[0]]
                worth = self.worth[at] if like == 1.0 else self.worth[at] * like
                part = self.holds[at] * (like * weight)
            else:
                rows = [self.rows[term] for term in ids]
                worth = np.add.reduce(self.worth[rows], dtype=np.float64) * like
                part = np.add.reduce(self.holds[rows], dtype=np.intp) * (like * weight / len(ids))
            np.maximum(score, worth, out=score)
            np.maximum(share, part, out=share)
