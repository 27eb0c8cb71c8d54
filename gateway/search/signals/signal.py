"""A signal of the ranking: one term of the score in the strategy `auto`."""

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
    """The candidates of one query, with the data that signals may use."""

    snapshot: Snapshot
    query: Query
    candidates: Candidates
    mask: Mask
    """Eligible entities, shape (n,)."""
    words: Hits
    """Scores of all entities by the words of the query."""
    scores: Vector = field(default_factory=lambda: np.zeros(0, dtype=np.float32))
    """Sum of the preceding signals for each candidate, shape (m,). Set by `fuse`."""

    @property
    def positions(self) -> Positions:
        """Positions of the candidates in the snapshot, shape (m,)."""
        return self.candidates.pool

    def deviations(self, values: Vector) -> Vector:
        """Return the candidates' *values* in deviations from the mean over the eligible entities.

        *values* has one value for each entity of the catalog, shape (n,).
        """
        return deviations_at(values, self.positions, self.mask)


class Signal(Protocol):
    """One term of the score of `auto`. `score` may be called from any thread.

    Example:
        >>> class Pinned:
        ...     name, order, weight = "pinned", 1000, 0.5
        ...
        ...     def score(self, pool: Pool) -> Vector:
        ...         pinned = pool.snapshot.eligibility.has("tag", "pinned")
        ...         return pinned[pool.positions].astype("float32")
    """

    name: str
    """Unique name, used in explanations."""
    order: int
    """Sort key in the sum. A signal can read the sum of the signals before it. Signals with equal
    keys are ordered by name."""
    weight: float
    """Effect of one deviation of this signal, compared with one deviation of the vector signal."""

    def score(self, pool: Pool) -> Vector:
        """Return the score of each candidate, shape (m,), before multiplication by `weight`.

        Scores are deviations from the mean over the eligible entities.
        """
        ...
