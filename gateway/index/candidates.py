"""Protocol of a catalog's vectors, and the candidates that a search finds in them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from gateway.index.eligibility import Mask, Positions
from gateway.runtime.vectors import Distribution, Matrix, Vector, deviations, top

SAMPLE_ROWS = 512
"""Number of rows used to estimate mean and spread of the scores of a large catalog."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class VectorQuery:
    """The vectors of one query."""

    texts: Matrix
    """Vectors of the query's texts, unit rows, shape (t, d)."""
    clauses: Matrix
    """Vectors of the clauses of a long request, unit rows, shape (c, d); may be empty."""
    clause_weight: float = 0.0
    """Share of the best clause's cosine that is added to the cosine of the whole request."""

    @property
    def vectors(self) -> Matrix:
        """Vectors of the texts, followed by the clauses, shape (t + c, d)."""
        return np.concatenate([self.texts, self.clauses]) if len(self.clauses) else self.texts

    def combine(self, similarities: Matrix) -> tuple[Vector, Vector]:
        """Return the cosines and strengths of n rows, shape (n,) each; see `Candidates`.

        Args:
            similarities: Cosine of each of `vectors` with each row, shape (t + c, n).
        """
        cosines: Vector = similarities[: len(self.texts)].max(axis=0)
        if not len(self.clauses):
            return cosines, cosines
        return cosines, cosines + self.clause_weight * similarities[len(self.texts) :].max(axis=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moments:
    """Mean and standard deviation of the scores of all eligible entities."""

    strengths: Distribution
    cosines: Distribution
    """Cosines of the entities that have a vector."""

    @classmethod
    def of(cls, cosines: Vector, strengths: Vector, present: Mask | None = None) -> Moments:
        """Compute the moments of *cosines* and *strengths*, which may be the same array.

        Args:
            cosines: Shape (n,).
            strengths: Shape (n,).
            present: True for an entity with a vector, shape (n,); None if all have one.
        """
        present_cosines = cosines if present is None else cosines[present]
        distribution = Distribution.of(strengths)
        return cls(
            strengths=distribution,
            cosines=distribution
            if present_cosines is strengths
            else Distribution.of(present_cosines),
        )


class CatalogVectors(Protocol):
    """The vectors of a catalog, one row for each position, in memory or in a database. Immutable.

    With a database, each call may raise `StoreError`.
    """

    @property
    def blocking(self) -> bool:
        """True if calls wait for a database. Call them in a worker thread."""

    @property
    def size(self) -> int:
        """Number of positions."""

    @property
    def dimensions(self) -> int:
        """Length of the rows."""

    @property
    def present(self) -> Mask | None:
        """True for an entity with a vector, shape (n,); None if all have one."""

    @property
    def count(self) -> int:
        """Number of entities with a vector."""

    @property
    def mean(self) -> Vector | None:
        """Mean row of the kinds that servers list, or else of all entities, shape (d,)."""

    def has(self, positions: Positions) -> Mask:
        """Return flags that are True for each of *positions* with a vector."""

    def rows(self, positions: Positions) -> Matrix:
        """Return the rows at a few *positions*, shape (len(positions), d)."""

    def similarities(self, vectors: Matrix, positions: Positions) -> Matrix:
        """Return the exact cosines of each of *vectors* with the rows at *positions*.

        Returns:
            Shape (len(vectors), len(positions)); 0 for an entity without a vector.
        """

    def search(self, query: VectorQuery, *, mask: Mask, count: int) -> Candidates:
        """Find the *count* best eligible positions.

        Args:
            query: At least one text.
            mask: Eligible positions, shape (n,).
            count: Maximum number of candidates.
        """


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Candidates:
    """The entities nearest to one query."""

    index: CatalogVectors
    query: VectorQuery
    pool: Positions
    """Eligible positions with the highest strengths, best first. Ties are ordered by position."""
    cosines: Vector
    """Exact best cosine of each entity in `pool` over the query's texts, -1 to 1."""
    strengths: Vector
    """Ranking score of each entity in `pool`: its cosine, plus a share of its best clause's
    cosine."""
    moments: Moments
    """Moments of all eligible entities; estimated in a large catalog."""
    eligible: int
    """Number of eligible positions."""
    scored: int
    """Number of exactly scored positions."""
    dense: tuple[Vector, Vector] | None = None
    """Cosines and strengths of all positions, if they were computed."""

    @classmethod
    def of(
        cls,
        index: CatalogVectors,
        query: VectorQuery,
        *,
        eligible: Positions,
        near: Positions | None,
        count: int,
    ) -> Candidates:
        """Score positions of *index* exactly and keep the *count* best.

        Args:
            index: The vectors.
            query: A query with at least one text.
            eligible: All eligible positions.
            near: Eligible positions near the query. None: all of *eligible* are scored.
            count: Maximum number of candidates.
        """
        # One request scores the rows near the query, followed by a sample for the moments.
        scored = eligible if near is None else np.concatenate([near, sample_of(eligible)])
        cosines, strengths = query.combine(index.similarities(query.vectors, scored))
        sample = slice(0 if near is None else len(near), None)
        present = index.has(scored[sample])
        best = top(strengths if near is None else strengths[: len(near)], count)
        return cls(
            index=index,
            query=query,
            pool=scored[best],
            cosines=cosines[best],
            strengths=strengths[best],
            moments=Moments.of(cosines[sample], strengths[sample], present),
            eligible=len(eligible),
            scored=len(scored),
        )

    def deviations(self, strengths: Vector) -> Vector:
        """Return *strengths* in deviations from the mean of all eligible entities."""
        return deviations(strengths, self.moments.strengths)

    def strengths_at(self, positions: Positions) -> Vector:
        """Return the exact strengths at any *positions*, shape (len(positions),)."""
        return self._scores_at(positions)[1]

    def cosines_at(self, positions: Sequence[int]) -> list[float]:
        """Return the exact best cosine over the query's texts at any *positions*, -1 to 1."""
        in_pool = zip(self.pool.tolist(), self.cosines.tolist(), strict=True)
        cosines = dict(in_pool) if self.dense is None else {}
        if others := [position for position in positions if position not in cosines]:
            exact = self._scores_at(np.asarray(others, dtype=np.intp))[0].tolist()
            cosines.update(zip(others, exact, strict=True))
        return [cosines[position] for position in positions]

    def nearest_to_clauses(self, count: int) -> list[int]:
        """Return the index in the pool of the entity nearest to each of the first *count* clauses.

        Returns:
            Empty for a short request or an empty pool.
        """
        clauses = self.query.clauses[:count]
        if not len(self.pool) or not len(clauses):
            return []
        nearest: list[int] = self.index.similarities(clauses, self.pool).argmax(axis=1).tolist()
        return nearest

    def _scores_at(self, positions: Positions) -> tuple[Vector, Vector]:
        if self.dense is None:
            similarities = self.index.similarities(self.query.vectors, positions)
            return self.query.combine(similarities)
        cosines, strengths = self.dense
        return cosines[positions], strengths[positions]


def sample_of(positions: Positions) -> Positions:
    """Return about `SAMPLE_ROWS` of *positions*, evenly spaced; all if there are fewer."""
    return positions[:: max(1, len(positions) // SAMPLE_ROWS)]
