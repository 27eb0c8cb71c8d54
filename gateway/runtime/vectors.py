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
"""Numbers, shape (d,)."""
_MAX_SORTED = 512
"""Maximum number of scores for which sorting all is faster than selecting the best."""


class VectorStore(Protocol):
    """Storage of vectors, keyed by model id and key. Called from any worker thread."""

    def get(self, model_id: str, keys: Sequence[str]) -> Mapping[str, Vector]:
        """Return the stored vectors of *keys*. A damaged entry counts as missing.

        Raises:
            StoreError: If the store cannot be read.
        """
        ...

    def put(self, model_id: str, vectors: Mapping[str, Vector]) -> None:
        """Store all *vectors*, or none if it fails.

        Raises:
            StoreError: If the store cannot be written.
        """
        ...

    def close(self) -> None:
        """Close files. May be called twice."""
        ...


class Claim(Protocol):
    """Keys of vectors that only one process computes. Called from any worker thread."""

    def take(self) -> Collection[str]:
        """Reserve the keys that other processes have not claimed, until `release`, and return them.

        Returns:
            Empty after `release`.

        Raises:
            StoreError: If the store cannot be reached.
        """
        ...

    def release(self) -> None:
        """Let other processes claim the keys. May be called twice. The end of the process does it
        too.
        """
        ...


@runtime_checkable
class SharedVectorStore(VectorStore, Protocol):
    """A `VectorStore` of several processes, which divides the computation between them."""

    def claim(self, model_id: str, keys: Sequence[str]) -> Claim:
        """Return a claim of *keys*, without access to the store yet."""
        ...


def unit_rows(rows: np.ndarray | Sequence[Any]) -> Matrix:
    """Scale each row to length 1. A row of zeros is unchanged.

    Args:
        rows: Shape (n, d), any number type.
    """
    matrix = np.atleast_2d(np.asarray(rows, dtype=np.float32))
    # In double precision, because squares of small float32 numbers are 0, of large ones infinite.
    lengths = np.linalg.norm(matrix.astype(np.float64), axis=1, keepdims=True)
    scaled: Matrix = np.divide(matrix, lengths, out=np.zeros_like(matrix), where=lengths > 0)
    return scaled


def usable(rows: Matrix, *, count: int, dimensions: int | None) -> str:
    """Return the reason why *rows* cannot be used; empty if they can.

    Args:
        rows: Vectors of an embedder.
        count: Number of requested vectors.
        dimensions: Required length of each vector; None if unknown.
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
    """Return the cosines of each query with all rows, shape (q, n). Queries and rows are unit
    vectors.
    """
    products = np.empty((len(queries), len(rows)), dtype=np.float32)
    # Row by row, because a matrix product would use every core and round equal rows differently.
    for cosines, query in zip(products, queries, strict=True):
        np.vecdot(rows, query, out=cosines)
    return products


class Distribution(NamedTuple):
    """Mean and standard deviation in float64; zeros for an empty array."""

    mean: float = 0.0
    spread: float = 0.0

    @classmethod
    def of(cls, values: Vector) -> Self:
        """Compute the distribution of *values*, shape (n,). Equal float32 numbers have a spread of
        exactly 0.
        """
        if not len(values):
            return cls()
        return cls(float(values.mean(dtype=np.float64)), float(values.std(dtype=np.float64)))


def deviations(values: Vector, about: Distribution) -> Vector:
    """Return *values* minus the mean, divided by the spread of *about*; zeros without a
    spread.
    """
    if about.spread <= 0:
        return np.zeros(len(values), dtype=np.float32)
    return np.asarray((values - about.mean) / about.spread, dtype=np.float32)


def deviations_at(values: Vector, positions: NDArray[np.intp], mask: NDArray[np.bool_]) -> Vector:
    """Return the deviations of *values*, shape (n,), at *positions* from the distribution where
    *mask* is True.
    """
    return deviations(values[positions], Distribution.of(values[mask]))


def placed(values: NDArray[Number], place: int) -> Number:
    """Return the value at index *place* of the sorted *values*, smallest first."""
    # The method `partition` is faster than numpy's function, which has layers of Python code.
    parted = values.copy()
    parted.partition(place)
    value: Number = parted[place]
    return value


def top(scores: Vector, limit: int) -> NDArray[np.intp]:
    """Return the positions of the *limit* best scores, best first. Ties are ordered by position.

    Costs O(n + limit log limit). ``limit`` may exceed the number of scores.
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
