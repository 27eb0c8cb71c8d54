"""How much of each entity's name a query states, in words. Pure.

"the current weather, please, get it" states the whole of ``get_current_weather``. That says less
than the identifier itself, yet more than a description that happens to hold the same words.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gateway.runtime.vectors import NDArray, Vector
from graphs.lexical.bm25_index import Postings
from graphs.lexical.explain import Hits

_FIELD = "name"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NameTerms:
    """The words of a catalog's names."""

    index: Postings
    weights: Vector
    """The rarity of all words of each name together, shape (n,), >= 0."""
    offsets: NDArray[np.int64]
    """Where the row of each term begins in `holders`, and the last ends, shape (terms + 1,)."""
    holders: NDArray[np.int32]
    """The positions of the entities whose names hold a term, ascending within its row."""

    @classmethod
    def of(cls, index: Postings) -> NameTerms:
        """Weigh the names in *index*, by all of their words."""
        inside = index.inverted.within(_FIELD)
        holders = index.positions[inside]
        offsets = inside.searchsorted(index.offsets)
        rarity = np.repeat(index.rarity, np.diff(offsets))
        weights = np.bincount(holders, rarity, minlength=index.size)
        return cls(
            index=index, weights=weights.astype(np.float32), offsets=offsets, holders=holders
        )

    def stated(self, hits: Hits) -> Vector:
        """Give the share of each name that a query states, by rarity, shape (n,), 0 to 1."""
        shares: dict[int, float] = {}
        for asked in hits.asked:
            for terms, share in asked.ways:
                for term in terms:
                    if share > shares.get(term, 0.0):
                        shares[term] = share
        known = list(shares)
        starts, ends = self.offsets[known].tolist(), self.offsets[1:][known].tolist()
        rows = [self.holders[start:end] for start, end in zip(starts, ends, strict=True)]
        worth = self.index.rarity[known] * np.fromiter(shares.values(), np.float32, len(known))
        held = np.repeat(worth, [len(row) for row in rows])
        named = np.concatenate([self.holders[:0], *rows], dtype=np.intp)
        found = np.bincount(named, held, minlength=self.index.size).astype(np.float32)
        return np.divide(found, self.weights, out=found, where=self.weights > 0)
