"""What a few documents hold of a question, without a look at any other document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from graphs.hits import Asked, Held, Reading


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
        terms = dict.fromkeys([term for word in words for ids, _ in word.ways for term in ids])
        found = self._found(terms, np.asarray(wanted))
        total = read.weight
        parts = [word.weight / total for word in words]
        # Ways of one term each, all words' at once; of several ways to a word the best counts.
        ways = [
            [(found.rows[ids[0]], like) for ids, like in word.ways if len(ids) == 1]
            for word in words
        ]
        asked = [at for at, each in enumerate(ways) if each]
        if asked:
            rows, likes = zip(*(way for each in ways for way in each), strict=True)
            share = [
                part * like for part, each in zip(parts, ways, strict=True) for _, like in each
            ]
            starts = [0, *accumulate(len(ways[at]) for at in asked[:-1])]
            worth = found.worth[list(rows)] * np.array(likes, dtype=np.float32)[:, None]
            holds = found.holds[list(rows)] * np.array(share)[:, None]
            scores[asked] = np.maximum.reduceat(worth, starts)
            shares[asked] = np.maximum.reduceat(holds, starts)
        for at, word in enumerate(words):
            if len(ways[at]) < len(word.ways):
                found.weigh(word, parts[at], scores[at], shares[at])
        return scores, shares

    def _found(self, terms: dict[int, None], wanted: np.ndarray) -> _Found:
        asked = np.fromiter(terms, dtype=np.int64, count=len(terms))[:, None] * self.size + wanted
        places = self.keys.searchsorted(asked)
        holds = self.keys.take(places, mode="clip") == asked
        worth = self.impacts.take(places, mode="clip")
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
        """Write into *score* and *share* what the ways of several terms to *word* add, if more."""
        for ids, like in word.ways:
            if len(ids) > 1:
                rows = [self.rows[term] for term in ids]
                worth = np.add.reduce(self.worth[rows], dtype=np.float64) * like
                part = np.add.reduce(self.holds[rows], dtype=np.intp) * (like * weight / len(ids))
                np.maximum(score, worth, out=score)
                np.maximum(share, part, out=share)


def _summed(rows: np.ndarray) -> np.ndarray:
    summed: np.ndarray = np.add.reduce(rows).astype(np.float32)
    return summed
