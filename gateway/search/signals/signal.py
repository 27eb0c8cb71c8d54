"""A signal of ranking: one term of the score of `auto`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from gateway.index.candidates import Candidates
from gateway.index.eligibility import Mask, Positions
from gateway.index.snapshot import Snapshot
from gateway.runtime.vectors import Vector, deviations_at
from gateway.search.query import Query
from graphs.lexical.query import Hits


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """The candidates of one query, and what a signal may look at."""

    snapshot: Snapshot
    query: Query
    candidates: Candidates
    mask: Mask
    """Eligible entities, shape (n,)."""
    words: Hits
    """The whole catalog by the words of the query."""
    scores: Vector = field(default_factory=lambda: np.zeros(0, dtype=np.float32))
    """The sum of the signals before the one that looks, shape (m,); set by `fuse`."""

    @property
    def positions(self) -> Positions:
        """The candidates, shape (m,)."""
        return self.candidates.pool

    def deviations(self, values: Vector) -> Vector:
        """Return *values* at the candidates, in deviations from the mean of the eligible.

        Args:
            values: One for each entity of the catalog, shape (n,).
        """
        return deviations_at(values, self.positions, self.mask)


class Signal(Protocol):
    """One term of the score of `auto`. Any thread may ask it.

    Example:
        class Pinned:
            name, order, weight = "pinned", 1000, 0.5

            def score(self, pool: Pool) -> Vector:
                pinned = pool.snapshot.eligibility.has("tag", "pinned")
                return pinned[pool.positions].astype("float32")
    """

    name: str
    """By which explanations tell what it adds; no other signal has it."""
    order: int
    """Its place in the sum: a signal sees the sum of those before it. Equal ones go by name."""
    weight: float
    """What one deviation of it counts beside one of the vectors."""

    def score(self, pool: Pool) -> Vector:
        """Return how much it speaks for each candidate, shape (m,), in deviations.

        Deviations are those from the mean of the eligible entities, so that signals compare.
        """
        ...
