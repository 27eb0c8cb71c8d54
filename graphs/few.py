"""What a few documents hold of a question, without a look at any other document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
        plain: list[int] = []
        for at, word in enumerate(words):
            if len(word.ways) == 1 and len(word.ways[0][0]) == 1:
                plain.append(at)
            else:
                found.weigh(word, word.weight / total, scores[at], shares[at])
        if plain:
            ways = [words[at].ways[0] for at in plain]
            rows = [found.rows[ids[0]] for ids, _ in ways]
            like = [share for _, share in ways]
            part = [
                share * (words[at].weight / total) for at, share in zip(plain, like, strict=True)
            ]
            scores[plain] = found.worth[rows] * np.asarray(like, dtype=np.float32)[:, None]
            shares[plain] = found.holds[rows] * np.asarray(part)[:, None]
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
        """Write into *score* and *share* what *word* adds: of several ways to it, the best."""
        for ids, like in word.ways:
            rows = [self.rows[term] for term in ids]
            if len(rows) == 1:
                worth = self.worth[rows[0]] * like
                part = self.holds[rows[0]] * (like * weight)
            else:
                worth = np.add.reduce(self.worth[rows], dtype=np.float64) * like
                part = np.add.reduce(self.holds[rows], dtype=np.intp) * (like * weight / len(ids))
            np.maximum(score, worth, out=score)
            np.maximum(share, part, out=share)


def _summed(rows: np.ndarray) -> np.ndarray:
    summed: np.ndarray = np.add.reduce(rows).astype(np.float32)
    return summed
