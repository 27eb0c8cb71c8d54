"""The vectors of a catalog, and the scan that finds the nearest of them. Pure.

* A small catalog is scored row by row, whole. In a large one a sketch chooses the candidates, which
  are scored by the same arithmetic: every cosine in a result is exact.
* Each row's cosine is computed by itself, in one thread: equal rows get equal scores to the last
  bit, wherever they stand.
* The mask is a part of the scan: what it leaves out takes no other row's place.
* The sketch: a row's code has one bit a random direction, on which side of the catalog's mean it
  lies. The share of bits in which two codes differ estimates the angle between two rows. After
  Charikar, *Similarity estimation techniques from rounding algorithms* (2002).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from gateway.index.eligibility import Mask, Positions, passes_all
from gateway.runtime.vectors import Distribution, Matrix, NDArray, Vector, best_cosine, placed, top

EXACT_NUMBERS = 32_000_000
"""A matrix of up to so many numbers is scored whole: 25,000 rows of 1,280."""
SAMPLE_ROWS = 512
"""Rows of a large catalog that estimate mean and spread of its scores."""
_CHUNK_ROWS = 128
"""Rows at a time where they are gathered and scored: the copies stay in the processor's cache."""
BITS = 512
"""Of a code. Found with `MIN_CANDIDATES`: recall@10 is 1.00 at 100,000 rows of 384 numbers."""
MIN_CANDIDATES = 2048
CANDIDATES_PER_RESULT = 4
_SEED = 11
_MEAN_ROWS = 4096
"""So many rows estimate the mean of the catalog."""
_ENCODED_ROWS = 4096
"""Rows at a time: what is between two steps stays in the processor's cache."""
_ANGLES = np.cos(np.pi / BITS * np.arange(BITS + 1)).astype(np.float32)
"""The cosine of two rows, by the number of bits in which their codes differ."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SignSketch:
    """The codes of a catalog."""

    mean: Vector
    """Taken off each row first, shape (d,)."""
    radius: float
    """Mean length of the rows without the mean."""
    directions: Matrix
    """Shape (d, BITS)."""
    codes: NDArray[np.uint64]
    """Shape (BITS / 64, n): 64 bits of every row after one another, so that a scan reads in
    order."""

    @classmethod
    def of(cls, rows: Matrix) -> SignSketch:
        """Encode *rows*: unit rows, shape (n, d), n >= 1. Equal rows give equal codes."""
        sample = rows[:: max(1, len(rows) // _MEAN_ROWS)]
        mean: Vector = sample.mean(axis=0, dtype=np.float32)
        rng = np.random.default_rng(_SEED)
        directions = rng.standard_normal((rows.shape[1], BITS), dtype=np.float32)
        codes = np.empty((BITS // 64, len(rows)), dtype=np.uint64)
        for start in range(0, len(rows), _ENCODED_ROWS):
            part = slice(start, start + _ENCODED_ROWS)
            codes[:, part] = _packed(np.matmul(rows[part] - mean, directions))
        radius = float(np.linalg.norm(sample - mean, axis=1).mean())
        return cls(mean=mean, radius=radius, directions=directions, codes=codes)

    def candidate_count(self, count: int) -> int:
        """Return how many rows must be scored exactly for the best *count* to be among them."""
        return max(CANDIDATES_PER_RESULT * count, MIN_CANDIDATES)

    def estimate(self, queries: Matrix) -> Vector:
        """Estimate each row's best cosine over *queries*, shape (n,).

        Args:
            queries: Unit rows, shape (q, d), q >= 1.
        """
        # The mean stays on a query: what it adds to the cosine of one row, it adds to all.
        near = [
            _ANGLES[self._distances(code)] * np.float32(self.radius) + np.dot(query, self.mean)
            for query, code in zip(queries, _packed(queries @ self.directions).T, strict=True)
        ]
        best: Vector = near[0] if len(near) == 1 else np.maximum.reduce(near)
        return best

    def _distances(self, code: NDArray[np.uint64]) -> NDArray[np.uint16]:
        """Return in how many bits each row differs from *code*, shape (n,)."""
        found = np.empty(self.codes.shape[1], dtype=np.uint16)
        for start in range(0, len(found), _ENCODED_ROWS):
            part = slice(start, start + _ENCODED_ROWS)
            counts = np.bitwise_count(self.codes[:, part] ^ code[:, None])
            np.add.reduce(counts, axis=0, dtype=np.uint16, out=found[part])
        return found


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class VectorQuery:
    """The vectors of one query."""

    texts: Matrix
    """The original query and its English form, unit rows, shape (t, d)."""
    clauses: Matrix
    """Parts of a long request, unit rows, shape (c, d); may be empty."""
    clause_weight: float = 0.0
    """How much the best clause adds to the whole request's cosine."""

    @property
    def vectors(self) -> Matrix:
        """The texts and after them the clauses, shape (t + c, d)."""
        return np.concatenate([self.texts, self.clauses])

    def combine(self, similarities: Matrix) -> tuple[Vector, Vector]:
        """Return the cosines and strengths of n rows, shape (n,) each; see `ScanResult`.

        Args:
            similarities: Cosines of each of `vectors` with the rows, shape (t + c, n).
        """
        cosines = np.maximum.reduce(similarities[: len(self.texts)])
        if not len(self.clauses):
            return cosines, cosines
        clauses = np.maximum.reduce(similarities[len(self.texts) :])
        return cosines, cosines + self.clause_weight * clauses

    def score(self, rows: Matrix) -> tuple[Vector, Vector]:
        """Return the exact cosines and strengths of *rows*, shape (n,) each; see `ScanResult`."""
        cosines = best_cosine(rows, self.texts)
        if not len(self.clauses):
            return cosines, cosines
        return cosines, cosines + self.clause_weight * best_cosine(rows, self.clauses)

    def estimate(self, sketch: SignSketch) -> Vector:
        """Estimate the strength of every row of *sketch*, shape (n,)."""
        near = sketch.estimate(self.texts)
        if len(self.clauses):
            near += self.clause_weight * sketch.estimate(self.clauses)
        return near


@dataclass(frozen=True, slots=True, kw_only=True)
class Moments:
    """Mean and standard deviation of the scores of all eligible entities."""

    strengths: Distribution
    cosines: Distribution
    """Of the entities that have a vector."""

    @classmethod
    def of(cls, cosines: Vector, strengths: Vector, present: Mask | None = None) -> Moments:
        """Measure *cosines* and *strengths*, which may be one and the same array.

        Args:
            cosines: Shape (n,).
            strengths: Shape (n,).
            present: Which of them are of an entity with a vector; None if all are.
        """
        found = cosines if present is None else cosines[present]
        every = Distribution.of(strengths)
        return cls(strengths=every, cosines=every if found is strengths else Distribution.of(found))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScanResult:
    """The nearest rows of one scan."""

    pool: Positions
    """The best eligible positions by strength, best first, ties by position."""
    cosines: Vector
    """Exact best cosine over the texts, one for each of the pool, -1 to 1."""
    strengths: Vector
    """What ranks: the cosines, for a long request with its best clause's added."""
    moments: Moments
    """Of all eligible rows; of a large catalog an estimate."""
    eligible: int
    """How many positions the mask lets pass."""
    scored: int
    """How many rows were scored exactly."""
    dense: tuple[Vector, Vector] | None = None
    """Cosines and strengths by position, where all of them were computed."""


class CatalogVectors(Protocol):
    """The vectors of a catalog, one row a position, wherever they are. Immutable.

    Where they are in a database, each call may raise `StoreError`.
    """

    @property
    def blocking(self) -> bool:
        """Whether calls wait for a database: then they belong in a worker thread."""

    @property
    def size(self) -> int:
        """How many positions there are."""

    @property
    def dimensions(self) -> int:
        """How long the rows are."""

    @property
    def present(self) -> Mask | None:
        """Which rows are vectors, shape (n,); None if all are."""

    @property
    def count(self) -> int:
        """How many rows are no zeros."""

    @property
    def mean(self) -> Vector | None:
        """The mean row of the kinds that servers list, or else of all, shape (d,)."""

    def has(self, positions: Positions) -> Mask:
        """Return which of *positions* have a vector, shape (len(positions),)."""

    def rows(self, positions: Positions) -> Matrix:
        """Return the rows at *positions*, few of them, shape (len(positions), d)."""

    def score(
        self, query: VectorQuery, positions: Positions | None = None
    ) -> tuple[Vector, Vector]:
        """Return the exact cosine and strength at *positions*, None for all, shape (m,) each."""

    def similarities(self, vectors: Matrix, positions: Positions) -> Matrix:
        """Return the exact cosines of *vectors* with the rows at *positions*, shape (q, m)."""

    def search(self, query: VectorQuery, *, mask: Mask, count: int) -> ScanResult:
        """Find the *count* best eligible positions.

        Args:
            query: At least one text.
            mask: Which positions may be found, shape (n,).
            count: How many at most.
        """


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class VectorIndex:
    """`CatalogVectors` in memory. A large catalog has a sketch, which chooses the candidates."""

    matrix: Matrix
    """Unit rows, shape (n, d); zeros for an entity without a vector."""
    sketch: SignSketch | None = None
    """None for a catalog that is scored whole."""
    exact_numbers: int = EXACT_NUMBERS
    present: Mask | None = None
    """Which rows are vectors, shape (n,); None if all are."""
    mean: Vector | None = None
    """See `CatalogVectors.mean`."""

    @classmethod
    def of(
        cls,
        matrix: Matrix,
        *,
        exact_numbers: int = EXACT_NUMBERS,
        present: Mask | None = None,
        mean: Vector | None = None,
    ) -> VectorIndex:
        """Index *matrix*.

        Args:
            matrix: Unit rows, shape (n, d); a row of zeros is an entity without a vector.
            exact_numbers: A matrix of more numbers than this gets a sketch.
            present: Which rows are vectors, shape (n,); None if all are.
            mean: See `CatalogVectors.mean`.
        """
        sketch = SignSketch.of(matrix) if matrix.size > exact_numbers else None
        return cls(
            matrix=matrix, sketch=sketch, exact_numbers=exact_numbers, present=present, mean=mean
        )

    @property
    def blocking(self) -> bool:
        """False: memory does not wait."""
        return False

    @property
    def size(self) -> int:
        """How many positions there are."""
        return len(self.matrix)

    @property
    def dimensions(self) -> int:
        """How long the rows are."""
        return int(self.matrix.shape[1])

    @property
    def count(self) -> int:
        """How many rows are no zeros."""
        return int(np.count_nonzero(self.matrix.any(axis=1)))

    def has(self, positions: Positions) -> Mask:
        """See `CatalogVectors.has`."""
        return np.asarray(self.matrix[positions].any(axis=1))

    def rows(self, positions: Positions) -> Matrix:
        """See `CatalogVectors.rows`."""
        return self.matrix[positions]

    def score(
        self, query: VectorQuery, positions: Positions | None = None
    ) -> tuple[Vector, Vector]:
        """See `CatalogVectors.score`."""
        return query.score(self.matrix if positions is None else self.matrix[positions])

    def similarities(self, vectors: Matrix, positions: Positions) -> Matrix:
        """See `CatalogVectors.similarities`."""
        rows = self.matrix[positions]
        return np.stack([np.vecdot(rows, vector) for vector in vectors])

    def search(self, query: VectorQuery, *, mask: Mask, count: int) -> ScanResult:
        """See `CatalogVectors.search`; of a large catalog the sketch chose the candidates."""
        if self.sketch is None:
            return self._scan(query, mask, count)
        eligible = int(np.count_nonzero(mask))
        wanted = self.sketch.candidate_count(count)
        if eligible * self.dimensions <= self.exact_numbers or eligible <= wanted:
            positions = np.flatnonzero(mask)
            cosines, strengths = self._score_at(query, positions)
            about = Moments.of(cosines, strengths, self._present(positions))
        else:
            everything = eligible == self.size
            near = query.estimate(self.sketch)
            positions = top_positions(near, None if everything else mask, wanted)
            cosines, strengths = self._score_at(query, positions)
            about = self._estimate_moments(query, mask)
        best = top(strengths, count)
        return ScanResult(
            pool=positions[best],
            cosines=cosines[best],
            strengths=strengths[best],
            moments=about,
            eligible=eligible,
            scored=len(positions),
        )

    def _scan(self, query: VectorQuery, mask: Mask, count: int) -> ScanResult:
        cosines, strengths = self.score(query)
        seen, ranked, positions = cosines, strengths, None
        if not passes_all(mask):
            positions = np.flatnonzero(mask)
            seen = cosines[positions]
            ranked = seen if strengths is cosines else strengths[positions]
        best = top(ranked, count)
        return ScanResult(
            pool=best if positions is None else positions[best],
            cosines=seen[best],
            strengths=ranked[best],
            moments=Moments.of(seen, ranked, self._present(positions)),
            eligible=len(seen),
            scored=len(cosines),
            dense=(cosines, strengths),
        )

    def _score_at(self, query: VectorQuery, positions: Positions) -> tuple[Vector, Vector]:
        starts = range(0, max(len(positions), 1), _CHUNK_ROWS)
        parts = [query.score(self.rows(positions[at : at + _CHUNK_ROWS])) for at in starts]
        cosines = np.concatenate([part for part, _ in parts])
        if not len(query.clauses):
            return cosines, cosines
        return cosines, np.concatenate([part for _, part in parts])

    def _present(self, positions: Positions | None) -> Mask | None:
        """Return which of *positions*, None for all, have a vector; None if all rows have."""
        return (
            self.present if self.present is None or positions is None else self.present[positions]
        )

    def _estimate_moments(self, query: VectorQuery, mask: Mask) -> Moments:
        sample = sample_of(np.flatnonzero(mask))
        return Moments.of(*query.score(self.rows(sample)), self._present(sample))


def sample_of(positions: Positions) -> Positions:
    """Return some `SAMPLE_ROWS` of *positions*, evenly spread; all if there are fewer."""
    return positions[:: max(1, len(positions) // SAMPLE_ROWS)]


def top_positions(scores: Vector, mask: Mask | None, count: int) -> Positions:
    """Return the positions of the *count* largest scores, ascending; ties of the last come along.

    Args:
        scores: Shape (n,).
        mask: Which positions count, at least *count* of them; None for all.
        count: >= 1, <= n.
    """
    if mask is None:
        return np.flatnonzero(scores >= placed(scores, len(scores) - count))
    # Those left out are taken away: equal values in their place would slow the choice down.
    positions = np.flatnonzero(mask)
    scores = scores[positions]
    return positions[scores >= placed(scores, len(scores) - count)]


def _packed(turned: Matrix) -> NDArray[np.uint64]:
    return np.ascontiguousarray(np.packbits(turned > 0, axis=1).view(np.uint64).T)
