"""The signal of the words of clauses: BM25F of the best clause of a long request."""

from __future__ import annotations

import numpy as np

from gateway.runtime.vectors import Vector
from gateway.search.retrieve import score_clauses
from gateway.search.signals.signal import Pool


class ClauseWords:
    """Speaks for what holds words of one clause; says nothing of a short request.

    Args:
        weight: `SearchOptions.lexical_weight`.
    """

    name, order = "clause words", 300

    def __init__(self, weight: float) -> None:
        self.weight = weight

    def score(self, pool: Pool) -> Vector:
        """Return the best score of a clause by its words, in deviations."""
        best = score_clauses(pool.snapshot.lexical, pool.query)
        return pool.deviations(best[0]) if best else np.zeros_like(pool.scores)
