"""The protocol of a catalog's vectors, and the candidates that a search finds in them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from gateway.index.eligibility import Mask, Positions
from gateway.runtime.vectors import Distribution, Matrix, Vector, deviations, top

SAMPLE_ROWS = 512
"""Approximate number of rows used to estimate moments of a large catalog."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class VectorQuery:
    """The vectors of one query: of its texts, and of the clauses if it is a long request."""

    texts: Matrix
    """Vectors of the query and its rewrites, unit rows, shape (t, d)."""
    clauses: Matrix
    """Vectors of the clauses of a long request, unit rows, shape (c, d); may be empty."""
    clause_weight: float = 0.0
    """Weight of the cosine with the best clause, added to the cosine with the whole request."""

    @property
    def vectors(self) -> Matrix:
        """Vectors of the texts, followed by the clauses, shape (t + c, d)."""
        return np.concatenate([self.texts, self.clauses]) if len(self.clauses) else self.texts

    def combine(self, similarities: Matrix) -> tuple[Vector, Vector]:
        """Return the cosines and the ranking scores of n entities, as in `Candidates`.

        *similarities* contains the cosine of each of `vectors` with each entity, shape (t + c, n).
        """
        cosines: Vector = similarities[: len(self.texts)].max(axis=0)
        if not len(self.clauses):
            return cosines, cosines
        return cosines, cosines + self.clause_weight * similarities[len(self.texts) :].max(axis=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moments:
    """Means and standard deviations of the scores of all eligible entities."""

    strengths: Distribution
    cosines: Distribution
    """Moments of the cosines of the entities that have a vector."""

    @classmethod
    def of(cls, cosines: Vector, strengths: Vector, present: Mask | None = None) -> Moments:
        """Compute the moments of the *cosines* of entities in *present*, and of all *strengths*.

        All arrays have the shape (n,), and may be the same array. Without *present*, all entities
        count.
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
        """Number of entities in the catalog."""

    @property
    def dimensions(self) -> int:
        """Number of dimensions of the vectors."""

    @property
    def present(self) -> Mask | None:
        """True for an entity with a vector, shape (n,); None if all have one."""

    @property
    def count(self) -> int:
        """Number of entities with a vector."""

    @property
    def mean(self) -> Vector | None:
        """Mean vector of the entities that servers list, or else of all entities, shape (d,)."""

    def has(self, positions: Positions) -> Mask:
        """Return a flag for each of *positions*, True if the entity has a vector."""

    def rows(self, positions: Positions) -> Matrix:
        """Return the vectors of the entities at a few *positions*, shape (len(positions), d)."""

    def similarities(self, vectors: Matrix, positions: Positions) -> Matrix:
        """Return the exact cosine of each of *vectors* with the entity at each of *positions*.

        Shape (len(vectors), len(positions)); 0 for an entity without a vector.
        """

    def search(self, query: VectorQuery, *, mask: Mask, count: int) -> Candidates:
        """Find the *count* eligible entities with the highest ranking scores.

        *query* has at least one text, and *mask* has the shape (n,).
        """


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Candidates:
    """The entities nearest to one query."""

    index: CatalogVectors
    query: VectorQuery
    pool: Positions
    """Positions of the eligible entities with the highest ranking scores, best first. Ties are
    ordered by position."""
    cosines: Vector
    """Exact cosine, -1 to 1, of each entity in `pool` with the nearest of the query's texts."""
    strengths: Vector
    """Ranking score of each entity in `pool`: its cosine, plus a share of its cosine with the best
    clause."""
    moments: Moments
    """Moments of all eligible entities; estimated in a large catalog."""
    eligible: int
    scored: int
    """Number of positions scored exactly.

    A position in the sample may count twice. Entities without a vector count too.
    """
    dense: tuple[Vector, Vector] | None = None
    """Cosines and ranking scores of all entities, if they were computed."""

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
        """Score entities of *index* exactly, and keep the *count* best.

        Only the positions in *near* are candidates, or all *eligible* ones if *near* is None.
        """
        # One request scores the entities near the query, followed by a sample for the moments.
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
        """Return ranking scores as deviations from the mean over all eligible entities."""
        return deviations(strengths, self.moments.strengths)

    def strengths_at(self, positions: Positions) -> Vector:
        """Return the exact ranking scores of the entities at any *positions*."""
        return self._scores_at(positions)[1]

    def cosines_at(self, positions: Sequence[int]) -> list[float]:
        """Return the exact cosines of any *positions* with the nearest of the query's texts."""
        in_pool = zip(self.pool.tolist(), self.cosines.tolist(), strict=True)
        cosines = dict(in_pool) if self.dense is None else {}
        if others := [position for position in positions if position not in cosines]:
            exact = self._scores_at(np.asarray(others, dtype=np.intp))[0].tolist()
            cosines.update(zip(others, exact, strict=True))
        return [cosines[position] for position in positions]

    def nearest_to_clauses(self, count: int) -> list[int]:
        """Return, for each of the first *count* clauses, the index in `pool` of the nearest entity.

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
    """Return about `SAMPLE_ROWS` of *positions*, evenly spaced; all positions if they are fewer."""
    return positions[:: max(1, len(positions) // SAMPLE_ROWS)]
