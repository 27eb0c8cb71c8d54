"""The vectors of a catalog in memory, and the search for the nearest ones. Pure.

* In a large catalog, a sketch chooses the rows whose cosines are computed exactly.
* Each cosine is computed separately, in one thread, so that equal rows get bit-identical scores.
* The sketch stores a code for each row: for each random direction, a bit tells the row's side of
  the catalog's mean. The share of different bits estimates the angle between two rows. After
  Charikar, *Similarity estimation techniques from rounding algorithms* (2002).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gateway.index.candidates import Candidates, Moments, VectorQuery
from gateway.index.eligibility import Mask, Positions, passes_all
from gateway.runtime.vectors import Matrix, NDArray, Vector, cosines_of, placed, top

EXACT_NUMBERS = 32_000_000
"""Maximum size, in numbers, of a matrix without a sketch: 25,000 rows of 1,280 dimensions."""
_CHUNK_ROWS = 128
"""Number of rows scored at a time, so that their copies stay in the processor's cache."""
BITS = 512
"""Number of bits in a row's code. With `MIN_CANDIDATES`, recall@10 is 1.00 at 100,000 rows of 384
dimensions."""
MIN_CANDIDATES = 2048
CANDIDATES_PER_RESULT = 4
_SEED = 11
_MEAN_ROWS = 4096
"""Number of rows used to estimate the mean of the catalog."""
_ENCODED_ROWS = 4096
"""Number of rows encoded at a time, so that intermediate results stay in the processor's cache."""
_ANGLES = np.cos(np.pi / BITS * np.arange(BITS + 1)).astype(np.float32)
"""Estimated cosine of two rows. The index is the number of different bits in their codes."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SignSketch:
    """Codes of a catalog's rows, from which cosines are estimated."""

    mean: Vector
    """Estimated mean of the rows, subtracted from each row before encoding, shape (d,)."""
    radius: float
    """Estimated mean length of the rows after subtraction of `mean`."""
    directions: Matrix
    codes: NDArray[np.uint64]
    """Code of each row, shape (BITS / 64, n), so that a scan reads memory in order."""

    @classmethod
    def of(cls, rows: Matrix) -> SignSketch:
        """Encode the unit rows *rows*, shape (n, d), n >= 1. Equal rows get equal codes."""
        sample = rows[:: max(1, len(rows) // _MEAN_ROWS)]
        mean: Vector = sample.mean(axis=0, dtype=np.float32)
        rng = np.random.default_rng(_SEED)
        directions = rng.standard_normal((rows.shape[1], BITS), dtype=np.float32)
        codes = np.empty((BITS // 64, len(rows)), dtype=np.uint64)
        for start in range(0, len(rows), _ENCODED_ROWS):
            part = slice(start, start + _ENCODED_ROWS)
            codes[:, part] = _pack_bits(np.matmul(rows[part] - mean, directions))
        radius = float(np.linalg.norm(sample - mean, axis=1).mean())
        return cls(mean=mean, radius=radius, directions=directions, codes=codes)

    def candidate_count(self, count: int) -> int:
        """Return the number of rows to score exactly to find the *count* best ones."""
        return max(CANDIDATES_PER_RESULT * count, MIN_CANDIDATES)

    def estimate(self, queries: Matrix) -> Matrix:
        """Estimate the cosine of each of the unit rows *queries* with each row, shape (q, n)."""
        # The mean of a query adds the same to the cosines of all rows, so it stays.
        near = [
            _ANGLES[self._distances(code)] * np.float32(self.radius) + np.dot(query, self.mean)
            for query, code in zip(queries, _pack_bits(queries @ self.directions).T, strict=True)
        ]
        return np.stack(near)

    def _distances(self, code: NDArray[np.uint64]) -> NDArray[np.uint16]:
        distances = np.empty(self.codes.shape[1], dtype=np.uint16)
        for start in range(0, len(distances), _ENCODED_ROWS):
            part = slice(start, start + _ENCODED_ROWS)
            counts = np.bitwise_count(self.codes[:, part] ^ code[:, None])
            np.add.reduce(counts, axis=0, dtype=np.uint16, out=distances[part])
        return distances


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class VectorIndex:
    """`CatalogVectors` in memory. In a large catalog, a sketch chooses the rows that are scored."""

    matrix: Matrix
    """Unit row of each entity, shape (n, d); zeros for an entity without a vector."""
    sketch: SignSketch | None = None
    """Sketch of a large catalog. If None, all rows are scored."""
    exact_numbers: int = EXACT_NUMBERS
    present: Mask | None = None
    """True for each entity with a vector, shape (n,). None if all have one."""
    mean: Vector | None = None

    @classmethod
    def of(
        cls,
        matrix: Matrix,
        *,
        exact_numbers: int = EXACT_NUMBERS,
        present: Mask | None = None,
        mean: Vector | None = None,
    ) -> VectorIndex:
        """Index the vectors of a catalog, with a sketch if *matrix* exceeds *exact_numbers*.

        The arguments are the fields of this class.
        """
        sketch = SignSketch.of(matrix) if matrix.size > exact_numbers else None
        return cls(
            matrix=matrix, sketch=sketch, exact_numbers=exact_numbers, present=present, mean=mean
        )

    @property
    def blocking(self) -> bool:
        """Always False, because the vectors are in memory."""
        return False

    @property
    def size(self) -> int:
        """Number of entities in the catalog."""
        return len(self.matrix)

    @property
    def dimensions(self) -> int:
        """Number of dimensions of the vectors."""
        return int(self.matrix.shape[1])

    @property
    def count(self) -> int:
        """Number of entities with a vector."""
        return self.size if self.present is None else int(np.count_nonzero(self.present))

    def has(self, positions: Positions) -> Mask:
        """Return a flag for each of *positions*, True if the entity has a vector."""
        if self.present is None:
            return np.ones(len(positions), dtype=np.bool_)
        return self.present[positions]

    def rows(self, positions: Positions) -> Matrix:
        """Return the vectors of the entities at *positions*."""
        return self.matrix[positions]

    def similarities(self, vectors: Matrix, positions: Positions) -> Matrix:
        """Return the exact cosine of each of *vectors* with the entity at each of *positions*."""
        cosines = np.empty((len(vectors), len(positions)), dtype=np.float32)
        for start in range(0, len(positions), _CHUNK_ROWS):
            part = slice(start, start + _CHUNK_ROWS)
            cosines[:, part] = cosines_of(self.matrix[positions[part]], vectors)
        return cosines

    def search(self, query: VectorQuery, *, mask: Mask, count: int) -> Candidates:
        """Find the *count* eligible entities with the highest ranking scores."""
        if self.sketch is None:
            return self._scan(query, mask, count)
        eligible, near = np.flatnonzero(mask), None
        candidate_count = self.sketch.candidate_count(count)
        if len(eligible) > max(candidate_count, self.exact_numbers // self.dimensions):
            everything = len(eligible) == self.size
            _, estimates = query.combine(self.sketch.estimate(query.vectors))
            near = top_positions(estimates, None if everything else mask, candidate_count)
        return Candidates.of(self, query, eligible=eligible, near=near, count=count)

    def _scan(self, query: VectorQuery, mask: Mask, count: int) -> Candidates:
        cosines, strengths = query.combine(cosines_of(self.matrix, query.vectors))
        eligible_cosines, ranked, present, positions = cosines, strengths, self.present, None
        if not passes_all(mask):
            positions = np.flatnonzero(mask)
            eligible_cosines = cosines[positions]
            ranked = eligible_cosines if strengths is cosines else strengths[positions]
            present = present if present is None else present[positions]
        best = top(ranked, count)
        return Candidates(
            index=self,
            query=query,
            pool=best if positions is None else positions[best],
            cosines=eligible_cosines[best],
            strengths=ranked[best],
            moments=Moments.of(eligible_cosines, ranked, present),
            eligible=len(eligible_cosines),
            scored=len(cosines),
            dense=(cosines, strengths),
        )


def top_positions(scores: Vector, mask: Mask | None, count: int) -> Positions:
    """Return the positions of the *count* largest scores, ascending, and of all ties with the last.

    *count* is at least 1. At least *count* positions are eligible in *mask*; None admits all.
    """
    if mask is None:
        return np.flatnonzero(scores >= placed(scores, len(scores) - count))
    # Remove masked scores: overwritten with one value, they would slow `placed` down.
    positions = np.flatnonzero(mask)
    scores = scores[positions]
    return positions[scores >= placed(scores, len(scores) - count)]


def _pack_bits(turned: Matrix) -> NDArray[np.uint64]:
    return np.ascontiguousarray(np.packbits(turned > 0, axis=1).view(np.uint64).T)
