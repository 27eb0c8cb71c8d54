"""What a few documents hold of a question, without a look at any other document."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from graphs.lexical.explain import Held, Reading

_INT32 = np.iinfo(np.int32).max
_Found: TypeAlias = list[tuple[int, float]]
"""The places of documents that hold a term, each with what it adds to the score there."""
_Met: TypeAlias = list[tuple[int, float, float]]
"""The places of documents that hold a word; what it adds to the score and to the coverage there."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rows:
    """The postings that are looked into."""

    keys: np.ndarray
    """Row and document of each posting as one number, ascending; int32 where they fit."""
    impacts: np.ndarray
    """What it adds to the document's score, float32."""
    size: int
    """How many documents there are."""

    @classmethod
    def of(
        cls, *, offsets: np.ndarray, positions: np.ndarray, impacts: np.ndarray, size: int
    ) -> Rows:
        """Number the postings; see `graphs.lexical.bm25_index.Postings`."""
        rows = np.arange(len(offsets) - 1) * size
        kind = np.int32 if len(rows) * size <= _INT32 else np.int64
        keys = np.repeat(rows.astype(kind), np.diff(offsets))
        keys += positions
        return cls(keys=keys, impacts=impacts, size=size)

    def held(self, read: Reading, wanted: Sequence[int]) -> Held:
        """Tell what each of the documents at *wanted* holds of a question.

        Costs a look-up a term, and a step for each word that a document holds. Rounds as a pass
        over all documents does.
        """
        terms = [term for word in read.asked for ids, _ in word.ways for term in ids]
        found = self._found(terms, wanted)
        scores, shares = [0.0] * len(wanted), [0.0] * len(wanted)
        words: list[tuple[str, ...]] = [()] * len(wanted)
        total, looked_up = read.weight, 0
        for word in read.asked:
            part, ways = word.weight / total, list[_Met]()
            for ids, like in word.ways:
                parts = found[looked_up : looked_up + len(ids)]
                looked_up += len(ids)
                # Of most words none of a few documents holds anything.
                if any(parts):
                    ways.append(_met(parts, like, like * part))
            for at, score, share in ways[0] if len(ways) == 1 else _best(ways):
                scores[at] += score
                shares[at] += share
                if word.word not in words[at]:
                    words[at] += (word.word,)
        return Held(
            scores=_rounded(scores),
            coverage=[min(share, 1.0) for share in _rounded(shares)],
            words=words,
        )

    def _found(self, terms: Sequence[int], wanted: Sequence[int]) -> Sequence[_Found]:
        """Give what each of *terms* adds where it stands, by the place in *wanted*."""
        found: list[_Found] = [[] for _ in terms]
        if not (terms and wanted):
            return found
        # Of one kind: else all keys would be copied.
        asked = np.add.outer([term * self.size for term in terms], wanted).ravel()
        asked = asked.astype(self.keys.dtype)
        places = self.keys.searchsorted(asked)
        (met,) = (self.keys.take(places, mode="clip") == asked).nonzero()
        worth = self.impacts.take(places.take(met))
        for at, each in zip(met.tolist(), worth.tolist(), strict=True):
            row, column = divmod(at, len(wanted))
            found[row].append((column, each))
        return found


def _met(parts: Sequence[_Found], like: float, earned: float) -> _Met:
    """Weigh one way to meet a word: each of several terms earns a part."""
    if len(parts) == 1:
        (found,) = parts
        if like != 1.0:
            # A product of two numbers of single precision is exact in double: rounded once.
            (share,) = _rounded([like])
            scores = _rounded([worth * share for _, worth in found])
            return [(at, score, earned) for (at, _), score in zip(found, scores, strict=True)]
        return [(at, worth, earned) for at, worth in found]
    held: dict[int, tuple[float, int]] = {}
    for found in parts:
        for at, worth in found:
            score, count = held.get(at, (0.0, 0))
            held[at] = score + worth, count + 1
    each = earned / len(parts)
    return [(at, score * like, count * each) for at, (score, count) in held.items()]


def _best(ways: Sequence[_Met]) -> _Met:
    """Give the best of several ways to meet a word, by the document."""
    best: dict[int, tuple[float, float]] = {}
    for way in ways:
        for at, score, share in way:
            most = best.get(at, (0.0, 0.0))
            best[at] = max(score, most[0]), max(share, most[1])
    return [(at, score, share) for at, (score, share) in best.items()]


def _rounded(values: Sequence[float]) -> list[float]:
    return array("f", values).tolist()
