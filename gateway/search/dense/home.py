"""The part of a catalog that a request is judged against. Pure.

A catalog of several servers speaks of several subjects. What the tools of the others look like says
nothing of whether the first match's own server serves a request, and foreign tools that were added
must not turn a request away that was served without them.
"""

from __future__ import annotations

import numpy as np

from gateway.search.dense.mates import Mates
from gateway.search.dense.vector import Candidates
from gateway.search.eligible import Mask
from gateway.values import dataclass
from gateway.vectors import moments

LEAST = 25
"""Of fewer tools mean and spread say too little: then the whole catalog is looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """How some tools look to a query."""

    mean: float
    """Mean of their cosines."""
    spread: float
    """Standard deviation of the same."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Homes:
    """Which server each entity is of, and who may be found."""

    mates: Mates | None = None
    """None if all are of one server, or if nobody asked."""
    mask: Mask | None = None
    """None if all of them."""

    def own(self, found: Candidates, spot: int) -> Mask | None:
        """Say who of the server of the entity at *spot* may be found.

        Returns:
            None for the eligible catalog as a whole: if that server has fewer than `LEAST` that
            may be found, or if the catalog is too large for every cosine to be known.
        """
        if self.mates is None or found.scanned.dense is None:
            return None
        numbers = self.mates.numbers
        own: Mask = numbers == numbers[spot]
        if self.mask is not None:
            own &= self.mask
        return own if np.count_nonzero(own) >= LEAST else None

    def ground(self, found: Candidates, own: Mask | None) -> Ground:
        """Say how those of *own*, as `own` gives them, look to the query."""
        known = found.scanned.dense
        if own is not None and known is not None:
            cosines = known[0][own]
            mean, spread = moments(cosines)
            return Ground(mean=mean, spread=spread)
        return Ground(mean=found.cosine_mean, spread=found.cosine_spread)
