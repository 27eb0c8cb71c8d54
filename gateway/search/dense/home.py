"""The part of a catalog that a request is judged against. Pure.

A catalog of several servers has several subjects. How the tools of other servers look says nothing
about whether the server of the first match serves a request, and adding foreign tools must not turn
away a request that was served without them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gateway.index.eligibility import Mask
from gateway.runtime.vectors import moments
from gateway.search.dense.mates import Mates
from gateway.search.dense.vector import Candidates

LEAST = 25
"""The mean and spread of fewer tools say too little: then the whole catalog is looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """How near some tools are to a query, taken together."""

    mean: float
    """Mean of their cosines."""
    spread: float
    """Standard deviation of the same."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Homes:
    """The server of each entity, and who may be found."""

    mates: Mates | None = None
    """None if all are of one server, or where vectors do not rank."""
    mask: Mask | None = None
    """None if all may be found."""

    def own(self, found: Candidates, spot: int) -> Mask | None:
        """Give the mask of those that may be found and share the server of the entity at *spot*.

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
        """Say how near the entities of the mask *own* are to the query; see `own` for None."""
        known = found.scanned.dense
        if own is not None and known is not None:
            cosines = known[0][own]
            mean, spread = moments(cosines)
            return Ground(mean=mean, spread=spread)
        return Ground(mean=found.cosine_mean, spread=found.cosine_spread)
