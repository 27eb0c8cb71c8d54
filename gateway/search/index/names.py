"""How much of each entity's name a query states, in words. Pure.

"the current weather, please, get it" states ``get_current_weather`` whole: less than the identifier
itself, yet more than a description that happens to hold the same words.
"""

from __future__ import annotations

import numpy as np

from gateway.values import dataclass
from gateway.vectors import NDArray, Vector
from graphs.hits import Hits
from graphs.postings import Postings

_FIELD = "name"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Names:
    """The words of a catalog's names."""

    index: Postings
    weights: Vector
    """The rarity of each name's words together, shape (n,), >= 0."""
    offsets: NDArray[np.int64]
    """Where the row of a term begins and ends in `holders`."""
    holders: NDArray[np.int32]
    """Whose name holds the term, ascending within a row."""

    @classmethod
    def of(cls, index: Postings) -> Names:
        """Weigh the names in *index*: all their words, wherever else these stand too."""
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
