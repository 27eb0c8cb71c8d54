"""Arithmetic and storage of embeddings, which are float32 arrays of shape (n, d) with unit rows.

A row of zeros means "no vector" and scores 0.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, Self, TypeAlias, TypeVar, runtime_checkable

import numpy as np

Number = TypeVar("Number", bound=np.generic)
NDArray: TypeAlias = np.ndarray[Any, np.dtype[Number]]
"""An array of any shape. The type of `numpy.typing` would load a further library."""
Matrix = NDArray[np.float32]
"""Rows of numbers, shape (n, d)."""
Vector = NDArray[np.float32]
"""An array of numbers, shape (d,)."""
_MAX_SORTED = 512
"""Maximum number of scores that `top` sorts as a whole, which is then faster than a selection."""


class VectorStore(Protocol):
    """Storage of vectors, keyed by model id and key of the text. Called from any worker thread."""

    def get(self, model_id: str, keys: Sequence[str]) -> Mapping[str, Vector]:
        """Return the stored vectors of *model_id* for *keys*, without missing and damaged ones.

        Raises:
            StoreError: If the store cannot be read.
        """
        ...

    def put(self, model_id: str, vectors: Mapping[str, Vector]) -> None:
        """Store all *vectors* of *model_id*, keyed by key; either all or none.

        Raises:
            StoreError: If the store cannot be written.
        """
        ...

    def close(self) -> None:
        """Close the files of the store. May be called twice."""
        ...


class Claim(Protocol):
    """Reservation of keys, so that only one process computes their vectors. Thread-safe."""

    def take(self) -> Collection[str]:
        """Reserve the keys that other processes have not reserved, until `release`.

        Returns:
            The keys to compute in this process; empty after `release`.

        Raises:
            StoreError: If the store cannot be reached.
        """
        ...

    def release(self) -> None:
        """Let other processes reserve the keys, as at the end of the process. May be called
        twice.
        """
        ...


@runtime_checkable
class SharedVectorStore(VectorStore, Protocol):
    """A `VectorStore` of several processes, which divides the computation between them."""

    def claim(self, model_id: str, keys: Sequence[str]) -> Claim:
        """Return a claim of *keys*. The store is not accessed before `Claim.take`."""
        ...


def unit_rows(rows: np.ndarray | Sequence[Any]) -> Matrix:
    """Return *rows*, shape (n, d), scaled to length 1. A row of zeros is unchanged."""
    matrix = np.atleast_2d(np.asarray(rows, dtype=np.float32))
    # In double precision, because the squares of float32 numbers may be 0 or infinite.
    lengths = np.linalg.norm(matrix.astype(np.float64), axis=1, keepdims=True)
    scaled: Matrix = np.divide(matrix, lengths, out=np.zeros_like(matrix), where=lengths > 0)
    return scaled


def usable(rows: Matrix, *, count: int, dimensions: int | None) -> str:
    """Return the reason why *rows*, vectors of an embedder, cannot be used, or "".

    *count* is the number of requested vectors, *dimensions* their required length, if known.
    """
    if rows.ndim != 2 or rows.shape[0] != count:
        return f"expected {count} vectors, got an array of shape {rows.shape}"
    if dimensions is not None and rows.shape[1] != dimensions:
        return f"expected {dimensions} dimensions, got {rows.shape[1]}"
    if not np.isfinite(rows).all():
        return "a vector contains NaN or infinity"
    if not rows.any(axis=1).all():
        return "a vector is all zeros"
    return ""


def cosines_of(rows: Matrix, queries: Matrix) -> Matrix:
    """Return the cosine of each query with each row, shape (q, n). All must be unit vectors."""
    products = np.empty((len(queries), len(rows)), dtype=np.float32)
    # A matrix product would use every core and round equal rows differently.
    for cosines, query in zip(products, queries, strict=True):
        np.vecdot(rows, query, out=cosines)
    return products


class Distribution(NamedTuple):
    """Mean and standard deviation (spread), in float64; zeros for an empty array."""

    mean: float = 0.0
    spread: float = 0.0

    @classmethod
    def of(cls, values: Vector) -> Self:
        """Return the mean and spread of *values*, shape (n,). Equal values have the spread 0."""
        if not len(values):
            return cls()
        return cls(float(values.mean(dtype=np.float64)), float(values.std(dtype=np.float64)))


def deviations(values: Vector, about: Distribution) -> Vector:
    """Return (*values* - mean) / spread of *about*; zeros if the spread is 0."""
    if about.spread <= 0:
        return np.zeros(len(values), dtype=np.float32)
    return np.asarray((values - about.mean) / about.spread, dtype=np.float32)


def deviations_at(values: Vector, positions: NDArray[np.intp], mask: NDArray[np.bool_]) -> Vector:
    """Return the deviations of *values* at *positions*; *mask* selects those for the mean."""
    return deviations(values[positions], Distribution.of(values[mask]))


def placed(values: NDArray[Number], place: int) -> Number:
    """Return the value at index *place* of the sorted *values*, smallest first."""
    # The array's method is faster than `np.partition`.
    parted = values.copy()
    parted.partition(place)
    value: Number = parted[place]
    return value


def top(scores: Vector, limit: int) -> NDArray[np.intp]:
    """Return the positions of the *limit* best scores, best first. Ties are ordered by position.

    Costs O(n + limit log limit). *limit* may exceed the number of scores.
    """
    count = min(limit, scores.shape[0])
    if count <= 0:
        return np.empty(0, dtype=np.intp)
    if scores.shape[0] <= _MAX_SORTED:
        return np.argsort(-scores, kind="stable")[:count]
    if count < scores.shape[0]:
        # Includes all scores equal to the last one, so that ties are ordered by position.
        (pool,) = (scores >= placed(scores, len(scores) - count)).nonzero()
    else:
        pool = np.arange(scores.shape[0])
    best: NDArray[np.intp] = pool[(-scores[pool]).argsort(kind="stable")[:count]]
    return best
