"""The arithmetic of embeddings: shape (n, d), float32, rows of unit length.

Pure functions over numpy arrays, and what keeps these. A row of zeros stands for "no vector" and
scores 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np

Number = TypeVar("Number", bound=np.generic)
NDArray: TypeAlias = np.ndarray[Any, np.dtype[Number]]
"""An array of any shape: that of `numpy.typing`, which is a library of its own to load."""
Matrix = NDArray[np.float32]
"""Shape (n, d)."""
Vector = NDArray[np.float32]
"""Shape (d,)."""
_FEW = 512
"""Up to so many scores it is faster to sort all than to pick out the best."""


class VectorStore(Protocol):
    """Keeps vectors by model id and key. Called from any worker thread."""

    def get(self, model_id: str, keys: Sequence[str]) -> Mapping[str, Vector]:
        """Return the stored vectors of *keys*; a damaged entry counts as missing.

        Raises:
            StoreError: If nothing can be read at all.
        """
        ...

    def put(self, model_id: str, vectors: Mapping[str, Vector]) -> None:
        """Keep *vectors*, all or none.

        Raises:
            StoreError: If they cannot be written.
        """
        ...

    def close(self) -> None:
        """Close files; twice is harmless."""
        ...


def unit_rows(rows: np.ndarray | Sequence[Any]) -> Matrix:
    """Scale each row to length 1; a row of zeros stays zeros.

    Args:
        rows: Shape (n, d), any number type.
    """
    matrix = np.atleast_2d(np.asarray(rows, dtype=np.float32))
    # In double precision: the square of a small float32 is 0, that of a large one infinite.
    lengths = np.linalg.norm(matrix.astype(np.float64), axis=1, keepdims=True)
    scaled: Matrix = np.divide(matrix, lengths, out=np.zeros_like(matrix), where=lengths > 0)
    return scaled


def usable(rows: Matrix, *, count: int, dimensions: int | None) -> str:
    """Return why *rows* cannot be used, or "" if they can.

    Args:
        rows: Rows of an embedder.
        count: How many rows were requested.
        dimensions: How long each must be; None if that is not known yet.
    """
    if rows.ndim != 2 or rows.shape[0] != count:
        return f"expected {count} vectors, got an array of shape {rows.shape}"
    if dimensions is not None and rows.shape[1] != dimensions:
        return f"expected {dimensions} dimensions, got {rows.shape[1]}"
    if not np.isfinite(rows).all():
        return "a vector holds NaN or infinity"
    if not rows.any(axis=1).all():
        return "a vector is all zeros"
    return ""


def best_cosine(matrix: Matrix, queries: Matrix) -> Vector:
    """Return the best cosine of each row of *matrix* over the rows of *queries*, shape (n,).

    Both must have unit rows. No query gives zeros.
    """
    if queries.shape[0] == 0:
        return np.zeros(matrix.shape[0], dtype=np.float32)
    # Row by row: a product of matrices would use every core, and round equal rows unequally.
    if queries.shape[0] == 1:
        found: Vector = np.vecdot(matrix, queries[0])
    else:
        found = np.maximum.reduce([np.vecdot(matrix, query) for query in queries])
    return found


def moments(values: Vector) -> tuple[float, float]:
    """Return the mean and the standard deviation of *values*; 0 and 0 if there are none."""
    if not values.size:
        return 0.0, 0.0
    # As numpy's own, without the layers of Python around them.
    mean = np.add.reduce(values) / np.float32(values.size)
    away = values - mean
    away *= away
    return float(mean), math.sqrt(float(np.add.reduce(away)) / values.size)


def deviations(values: Vector, mean: float, spread: float) -> Vector:
    """Measure *values* from *mean* in units of *spread*; without a spread all of them are 0."""
    if spread <= 0:
        return np.zeros(len(values), dtype=np.float32)
    return np.asarray((values - mean) / spread, dtype=np.float32)


def placed(values: NDArray[Number], place: int) -> Number:
    """Return the value at *place* of the sorted *values*, the smallest first."""
    # In place: numpy's own function goes through layers of Python.
    parted = values.copy()
    parted.partition(place)
    found: Number = parted[place]
    return found


def top(scores: Vector, limit: int) -> NDArray[np.intp]:
    """Return the positions of the *limit* best scores, best first; ties by position.

    Costs O(n + limit log limit). ``limit`` may exceed the number of scores.
    """
    count = min(limit, scores.shape[0])
    if count <= 0:
        return np.empty(0, dtype=np.intp)
    if scores.shape[0] <= _FEW:
        return np.argsort(-scores, kind="stable")[:count]
    if count < scores.shape[0]:
        # Every score equal to the last admitted one competes, so that ties fall by position.
        (pool,) = (scores >= placed(scores, len(scores) - count)).nonzero()
    else:
        pool = np.arange(scores.shape[0])
    best: NDArray[np.intp] = pool[(-scores[pool]).argsort(kind="stable")[:count]]
    return best
