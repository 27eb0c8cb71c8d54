"""The face of a database that stores the vectors of entities and searches them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np

from gateway.index.eligibility import Mask
from gateway.runtime.vectors import Matrix, NDArray, Vector

Ids: TypeAlias = NDArray[np.int64]
"""Ids of rows in an engine; each is at least 1."""
Passes: TypeAlias = Callable[[Ids], Mask]
"""Returns which of the rows with these ids may be found."""


class VectorEngine(Protocol):
    """Unit vectors of one model in a database. Safe from any thread.

    A row is addressed by a digest of its content, so processes share rows, and a row never changes.
    Each method may raise `StoreError`.
    """

    has_gaps: bool
    """True if a row was missing in the database; the reader of the flag resets it."""

    def known(self, keys: Sequence[bytes]) -> Mapping[bytes, int]:
        """Return the ids of the stored rows among *keys*. Those rows count as used today."""

    def put(self, rows: Mapping[bytes, Vector]) -> Mapping[bytes, int]:
        """Store the rows that are missing; return the ids of all *rows*, by key."""

    def nearest(self, vectors: Matrix, passes: Passes, count: int, limit: int) -> Ids | None:
        """Return the rows nearest to each of *vectors*, from an approximate index.

        Args:
            vectors: Unit rows, shape (q, d), q >= 1.
            passes: Only passing rows are returned and counted.
            count: Minimum number of rows for each vector.
            limit: Maximum number of rows visited for each vector.

        Returns:
            Each id once. None if the index is missing or too few of the visited rows pass.
        """

    def similarities(self, vectors: Matrix, ids: Ids) -> Matrix:
        """Return the cosines of the rows of *ids* with *vectors*, shape (q, len(ids)).

        Raises:
            StoreError: A row is missing; `has_gaps` is then True.
        """

    def rows(self, ids: Ids) -> Matrix:
        """Return the rows of *ids*, shape (len(ids), d), for a few ids; see `similarities`."""

    def maintain(self, ids: Ids, few_rows: int) -> None:
        """Count the rows of *ids* as used today, delete unused rows, and index many rows.

        Args:
            ids: Ids of rows; missing rows are ignored.
            few_rows: Maximum number of rows without an index. To make an index takes minutes.
        """


@runtime_checkable
class EngineStore(Protocol):
    """A `VectorStore` that also stores the vectors of entities."""

    def vector_engine(self, model: str, *, timeout_s: float) -> VectorEngine:
        """Return the vectors of one model, without a query to the database.

        Args:
            model: Hexadecimal name of the model.
            timeout_s: Maximum duration of a search, in seconds.
        """

    def check_engine(self) -> None:
        """Raise `StoreError` if the database cannot store vectors of entities."""
