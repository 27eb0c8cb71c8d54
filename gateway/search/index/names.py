"""How much of each entity's name a query states, in words. Pure.

"the current weather, please, get it" states ``get_current_weather`` whole: less than the identifier
itself, yet more than a description that happens to hold the same words.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gateway.vectors import Vector
from graphs.hits import Hits
from graphs.postings import Postings

_FIELD = "name"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Names:
    """The words of a catalog's names."""

    index: Postings
    weights: Vector
    """The rarity of each name's words together, shape (n,), >= 0."""

    @classmethod
    def of(cls, index: Postings) -> Names:
        """Weigh the names in *index*: words whose chief field is the name."""
        number = index.fields.index(_FIELD) if _FIELD in index.fields else -1
        inside = index.sources == number
        rarity = np.repeat(index.rarity, np.diff(index.offsets))
        weights = np.bincount(index.positions[inside], rarity[inside], minlength=index.size)
        return cls(index=index, weights=weights.astype(np.float32))

    def stated(self, hits: Hits) -> Vector:
        """Give the share of each name that a query states, by rarity, shape (n,), 0 to 1."""
        shares: dict[int, float] = {}
        for asked in hits.asked:
            for terms, share in asked.ways:
                shares.update((term, max(shares.get(term, 0.0), share)) for term in terms)
        found = np.zeros(self.index.size, dtype=np.float32)
        for term, share in shares.items():
            found[self._holders(term)] += self.index.rarity[term] * np.float32(share)
        return np.divide(found, self.weights, out=found, where=self.weights > 0)

    def _holders(self, term: int) -> NDArray[np.int32]:
        row = slice(self.index.offsets[term], self.index.offsets[term + 1])
        number = self.index.fields.index(_FIELD)
        holders: NDArray[np.int32] = self.index.positions[row][self.index.sources[row] == number]
        return holders
