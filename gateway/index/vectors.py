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

import numpy as np

from gateway.index.candidates import Candidates, Moments, VectorQuery
from gateway.index.eligibility import Mask, Positions, passes_all
from gateway.runtime.vectors import Matrix, NDArray, Vector, cosines_of, placed, top

EXACT_NUMBERS = 32_000_000
"""A matrix of up to so many numbers is scored whole: 25,000 rows of 1,280."""
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

    def estimate(self, queries: Matrix) -> Matrix:
        """Estimate the cosine of each of *queries* with each row, shape (q, n).

        Args:
            queries: Unit rows, shape (q, d), q >= 1.
        """
        # The mean stays on a query: what it adds to the cosine of one row, it adds to all.
        near = [
            _ANGLES[self._distances(code)] * np.float32(self.radius) + np.dot(query, self.mean)
            for query, code in zip(queries, _packed(queries @ self.directions).T, strict=True)
        ]
        return np.stack(near)

    def _distances(self, code: NDArray[np.uint64]) -> NDArray[np.uint16]:
        """Return in how many bits each row differs from *code*, shape (n,)."""
        found = np.empty(self.codes.shape[1], dtype=np.uint16)
        for start in range(0, len(found), _ENCODED_ROWS):
            part = slice(start, start + _ENCODED_ROWS)
            counts = np.bitwise_count(self.codes[:, part] ^ code[:, None])
            np.add.reduce(counts, axis=0, dtype=np.uint16, out=found[part])
        return found


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
        """See `CatalogVectors.count`."""
        return self.size if self.present is None else int(np.count_nonzero(self.present))

    def has(self, positions: Positions) -> Mask:
        """See `CatalogVectors.has`."""
        if self.present is None:
            return np.ones(len(positions), dtype=np.bool_)
        return self.present[positions]

    def rows(self, positions: Positions) -> Matrix:
        """See `CatalogVectors.rows`."""
        return self.matrix[positions]

    def similarities(self, vectors: Matrix, positions: Positions) -> Matrix:
        """See `CatalogVectors.similarities`."""
        found = np.empty((len(vectors), len(positions)), dtype=np.float32)
        for start in range(0, len(positions), _CHUNK_ROWS):
            part = slice(start, start + _CHUNK_ROWS)
            found[:, part] = cosines_of(self.matrix[positions[part]], vectors)
        return found

    def search(self, query: VectorQuery, *, mask: Mask, count: int) -> Candidates:
        """See `CatalogVectors.search`; in a large catalog the sketch chooses the candidates."""
        if self.sketch is None:
            return self._scan(query, mask, count)
        eligible, near = np.flatnonzero(mask), None
        wanted = self.sketch.candidate_count(count)
        if len(eligible) > max(wanted, self.exact_numbers // self.dimensions):
            everything = len(eligible) == self.size
            _, estimates = query.combine(self.sketch.estimate(query.vectors))
            near = top_positions(estimates, None if everything else mask, wanted)
        return Candidates.of(self, query, eligible=eligible, near=near, count=count)

    def _scan(self, query: VectorQuery, mask: Mask, count: int) -> Candidates:
        cosines, strengths = query.combine(cosines_of(self.matrix, query.vectors))
        seen, ranked, present, positions = cosines, strengths, self.present, None
        if not passes_all(mask):
            positions = np.flatnonzero(mask)
            seen = cosines[positions]
            ranked = seen if strengths is cosines else strengths[positions]
            present = present if present is None else present[positions]
        best = top(ranked, count)
        return Candidates(
            index=self,
            query=query,
            pool=best if positions is None else positions[best],
            cosines=seen[best],
            strengths=ranked[best],
            moments=Moments.of(seen, ranked, present),
            eligible=len(seen),
            scored=len(cosines),
            dense=(cosines, strengths),
        )


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
