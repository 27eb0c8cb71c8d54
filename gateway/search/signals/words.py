"""The signal of words: BM25F of the request."""

from __future__ import annotations

from gateway.runtime.vectors import Vector
from gateway.search.signals.signal import Pool


class Words:
    """Speaks for what holds words of the request.

    Args:
        weight: `SearchOptions.lexical_weight`.
    """

    name, order = "words", 200

    def __init__(self, weight: float) -> None:
        self.weight = weight

    def score(self, pool: Pool) -> Vector:
        """Return the scores by words in deviations."""
        return pool.deviations(pool.words.scores)
