"""What a few documents hold of a question, without a look at any other document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from graphs.hits import Held, Reading


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rows:
    """The postings that are looked into."""

    keys: np.ndarray
    """Row and document of each posting as one number, ascending, int64."""
    impacts: np.ndarray
    """What it adds to the document's score, float32."""
    size: int
    """How many documents there are."""

    @classmethod
    def of(
        cls, *, offsets: np.ndarray, positions: np.ndarray, impacts: np.ndarray, size: int
    ) -> Rows:
        """Number the postings; see `graphs.postings.Postings`."""
        keys = np.repeat(np.arange(len(offsets) - 1) * size, np.diff(offsets))
        keys += positions
        return cls(keys=keys, impacts=impacts, size=size)

    def held(self, read: Reading, wanted: Sequence[int]) -> Held:
        """Tell what each of the documents at *wanted* holds of a question."""
        words = [word for word in read.asked if word.ways]
        scores, shares = self.weighed(read, wanted)
        met: list[list[str]] = [[] for _ in wanted]
        for place, at in zip(*(each.tolist() for each in shares.T.nonzero()), strict=True):
            met[place].append(words[at].word)
        return Held(
            scores=_summed(scores).tolist(),
            coverage=np.minimum(_summed(shares), 1.0).tolist(),
            words=[tuple(dict.fromkeys(each)) for each in met],
        )

    def told(self, read: Reading, wanted: Sequence[int]) -> tuple[list[float], list[float]]:
        """Tell the scores and the coverage alone."""
        scores, shares = self.weighed(read, wanted)
        return _summed(scores).tolist(), np.minimum(_summed(shares), 1.0).tolist()

    def weighed(self, read: Reading, wanted: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        """Give what each word that is known adds to the score and to the coverage of each document.

        Costs a look-up a term, and rounds as a pass over all documents does; (words, documents).
        """
        words = [word for word in read.asked if word.ways]
        scores, shares = np.zeros((2, len(words), len(wanted)))
        if not words or not wanted:
            return scores, shares
        total = read.weight
        ways = [
            (at, ids, like, word.weight / total)
            for at, word in enumerate(words)
            for ids, like in word.ways
        ]
        lone = [(at, like, part * like) for at, ids, like, part in ways if len(ids) == 1]
        joined = [way for way in ways if len(way[1]) > 1]
        terms = [ids[0] for _, ids, _, _ in ways if len(ids) == 1]
        terms += [term for _, ids, _, _ in joined for term in ids]
        holds, worth = self._found(terms, wanted)
        # Ways of one term each, all words' at once; of several ways to a word the best counts.
        if lone:
            owners, likes, earned = zip(*lone, strict=True)
            score = worth[: len(lone)] * np.array(likes, dtype=np.float32)[:, None]
            share = holds[: len(lone)] * np.array(earned)[:, None]
            if len(lone) == len(words) == len(ways):
                return score, share
            met = list(dict.fromkeys(owners))
            starts = [owners.index(at) for at in met]
            scores[met] = np.maximum.reduceat(score, starts)
            shares[met] = np.maximum.reduceat(share, starts)
        first = len(lone)
        for at, ids, like, part in joined:
            rows = slice(first, first := first + len(ids))
            score = np.add.reduce(worth[rows], dtype=np.float64) * like
            share = np.add.reduce(holds[rows], dtype=np.intp) * (like * part / len(ids))
            np.maximum(scores[at], score, out=scores[at])
            np.maximum(shares[at], share, out=shares[at])
        return scores, shares

    def _found(self, terms: Sequence[int], wanted: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        """Give which of *terms* each document holds, and what it adds; (terms, documents)."""
        asked = np.array(terms, dtype=np.int64)[:, None] * self.size + np.array(wanted)
        places = self.keys.searchsorted(asked)
        holds = self.keys.take(places, mode="clip") == asked
        return holds, self.impacts.take(places, mode="clip") * holds


def _summed(rows: np.ndarray) -> np.ndarray:
    summed: np.ndarray = np.add.reduce(rows, dtype=np.float64).astype(np.float32)
    return summed
