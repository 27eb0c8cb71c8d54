"""The signal of meaning: the cosine of the request, with 0.7 of that of its best clause."""

from __future__ import annotations

from gateway.runtime.vectors import Vector
from gateway.search.signals.signal import Pool


class Vectors:
    """Speaks for what is near to the request, and to a clause of a long one.

    Both cosines are added before they are measured in deviations: by that sum vectors choose the
    candidates, too. Its parts are weighed by `CLAUSE_COSINE_WEIGHT`.
    """

    name, order, weight = "vectors", 100, 1.0

    def score(self, pool: Pool) -> Vector:
        """Return the strengths of the candidates in deviations."""
        return pool.candidates.deviations(pool.candidates.strengths)
