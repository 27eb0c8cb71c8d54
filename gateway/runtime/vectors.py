"""The arithmetic of embeddings: shape (n, d), float32, rows of unit length.

Pure functions over numpy arrays, and what keeps these. A row of zeros stands for "no vector" and
scores 0.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, Self, TypeAlias, TypeVar, runtime_checkable

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


class Claim(Protocol):
    """Some keys of vectors that one process alone makes. Called from any worker thread."""

    def take(self) -> Collection[str]:
        """Return those of its keys that no other process has claimed; until `release`, none can.

        Returns:
            None of them after `release`.

        Raises:
            StoreError: The store cannot be reached.
        """
        ...

    def release(self) -> None:
        """Let others claim them; twice is harmless. The end of the process does the same."""
        ...


@runtime_checkable
class SharedVectorStore(VectorStore, Protocol):
    """A `VectorStore` of several processes, each of which need not make what another makes."""

    def claim(self, model_id: str, keys: Sequence[str]) -> Claim:
        """Return a claim of *keys*; nothing is asked of the store yet."""
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


def cosines_of(rows: Matrix, queries: Matrix) -> Matrix:
    """Return the cosines of each of *queries* with *rows*, both unit rows, shape (q, n)."""
    found = np.empty((len(queries), len(rows)), dtype=np.float32)
    # Row by row: a product of matrices would use every core, and round equal rows unequally.
    for cosines, query in zip(found, queries, strict=True):
        np.vecdot(rows, query, out=cosines)
    return found


class Distribution(NamedTuple):
    """Mean and standard deviation of numbers, in float64; zeros without numbers."""

    mean: float = 0.0
    spread: float = 0.0

    @classmethod
    def of(cls, values: Vector) -> Self:
        """Measure *values*, shape (n,). Equal float32 numbers have a spread of exactly 0."""
        if not len(values):
            return cls()
        return cls(float(values.mean(dtype=np.float64)), float(values.std(dtype=np.float64)))


def deviations(values: Vector, about: Distribution) -> Vector:
    """Measure *values* from the mean of *about* in its spread; without a spread all are 0."""
    if about.spread <= 0:
        return np.zeros(len(values), dtype=np.float32)
    return np.asarray((values - about.mean) / about.spread, dtype=np.float32)


def deviations_at(values: Vector, positions: NDArray[np.intp], mask: NDArray[np.bool_]) -> Vector:
    """Measure *values*, shape (n,), at *positions*, in deviations of those where *mask* holds."""
    return deviations(values[positions], Distribution.of(values[mask]))


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
