"""`CatalogVectors` in a database, and the protocol of such a database.

If few entities are eligible, or if the approximate index finds too few, all of them are scored
exactly, so that filters do not reduce recall.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import date
from functools import cached_property
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np

from gateway.errors import StoreError
from gateway.index.candidates import Candidates, VectorQuery, sample_of
from gateway.index.eligibility import Mask, Positions
from gateway.runtime.vectors import Matrix, NDArray, Vector

Ids: TypeAlias = NDArray[np.int64]
"""Ids of rows in the database, each at least 1."""
Passes: TypeAlias = Callable[[Ids], Mask]
"""Returns, for each row id, whether the row's entity is eligible."""


class VectorEngine(Protocol):
    """A database with the unit vectors of one embedder model. Thread-safe.

    A row's key is a digest of the entity's texts. Processes share rows, and rows never change.
    Each method may raise `StoreError`.
    """

    has_gaps: bool
    """True if a requested row was missing in the database. The reader resets the flag."""

    def known(self, keys: Sequence[bytes]) -> Mapping[bytes, int]:
        """Return the row ids of the stored *keys*. Mark these rows as used today."""

    def put(self, rows: Mapping[bytes, Vector]) -> Mapping[bytes, int]:
        """Store missing rows. Return the ids of all *rows*, with the same keys."""

    def nearest(self, vectors: Matrix, passes: Passes, count: int, limit: int) -> Ids | None:
        """Return the ids of the rows nearest to each of *vectors*, from an approximate index.

        Only rows that pass *passes* are returned, without duplicates, and at least *count* for each
        vector. None if the index is missing, or if it finds fewer among *limit* visited rows for
        each vector. *vectors* are unit vectors, shape (q, d), q >= 1.
        """

    def similarities(self, vectors: Matrix, ids: Ids) -> Matrix:
        """Return the cosine of each of *vectors* with each row in *ids*, shape (q, len(ids)).

        Raises:
            StoreError: If a row is missing; `has_gaps` is then True.
        """

    def rows(self, ids: Ids) -> Matrix:
        """Return the vectors of a few rows, shape (len(ids), d). Raises like `similarities`."""

    def maintain(self, ids: Ids, few_rows: int) -> None:
        """Mark the rows in *ids* as used today, delete unused rows, and build a missing index.

        Missing rows are ignored. No index is built for at most *few_rows* rows, because building
        takes minutes.
        """


@runtime_checkable
class EngineStore(Protocol):
    """A `VectorStore` that also stores the vectors of entities in a database."""

    def vector_engine(self, model: str, *, timeout_s: float) -> VectorEngine:
        """Return the `VectorEngine` of one embedder model, without a query to the database.

        *model* is a digest of the model. *timeout_s* is the maximum duration of a search.
        """

    def check_engine(self) -> None:
        """Raise `StoreError` if the database cannot store vectors of entities."""


FEW_ROWS = 5_000
"""Maximum number of entities scored without the approximate index, which would not be faster."""

_MIN_NEAREST = 200
"""Minimum number of rows requested from the approximate index for each vector. A smaller number
misses near rows."""
_VISIT_COST = 10
"""Cost of visiting a row in the approximate index, compared with scoring it by its id."""
_PATIENCE = 4
"""Maximum number of rows visited in the approximate index, as a multiple of the number expected to
yield enough eligible rows."""


class EngineVectors:
    """`CatalogVectors` in a `VectorEngine`. All methods except `has` may raise `StoreError`.

    Args:
        engine: Database with the vectors.
        ids: Row id of the entity at each position, 0 without a vector, shape (n,).
        dimensions: Number of dimensions of the vectors.
        listed: Positions of the entities whose vectors give the mean.
        few_rows: Maximum number of eligible entities scored without the approximate index.
    """

    blocking = True

    def __init__(
        self, engine: VectorEngine, ids: Ids, dimensions: int, *, listed: Positions, few_rows: int
    ) -> None:
        self._engine = engine
        self._ids = ids
        self._listed = listed
        self._few_rows = few_rows
        self._day = date.today()  # noqa: DTZ011  (only a change of the day matters)
        self.dimensions = dimensions
        present = ids > 0
        self.present: Mask | None = None if present.all() else present
        self.count = int(np.count_nonzero(present))

    @property
    def size(self) -> int:
        """Number of entities in the catalog."""
        return len(self._ids)

    @cached_property
    def mean(self) -> Vector:
        """Mean vector as in `CatalogVectors`, estimated from about `SAMPLE_ROWS` entities."""
        rows = self._engine.rows(self._ids[sample_of(self._listed)])
        return np.asarray(rows.mean(axis=0), dtype=np.float32)

    def has(self, positions: Positions) -> Mask:
        """Return a flag for each of *positions*, True if the entity has a vector."""
        return np.asarray(self._ids[positions] > 0)

    def rows(self, positions: Positions) -> Matrix:
        """Return the vectors of the entities at a few *positions*; zeros without a vector."""
        rows, has_row = np.zeros((len(positions), self.dimensions), np.float32), self.has(positions)
        if has_row.any():
            rows[has_row] = self._engine.rows(self._ids[positions[has_row]])
        return rows

    def similarities(self, vectors: Matrix, positions: Positions) -> Matrix:
        """Return the exact cosine of each of *vectors* with the entity at each of *positions*."""
        cosines, has_row = np.zeros((len(vectors), len(positions)), np.float32), self.has(positions)
        if has_row.any():
            cosines[:, has_row] = self._engine.similarities(vectors, self._ids[positions[has_row]])
        return cosines

    def search(self, query: VectorQuery, *, mask: Mask, count: int) -> Candidates:
        """Find the *count* eligible entities with the highest ranking scores.

        The approximate index is used if that costs less than scoring all eligible entities.
        """
        self._maintain_daily()
        eligible = np.flatnonzero(mask)
        near = self._nearest_positions(query, mask, len(eligible), max(count, _MIN_NEAREST))
        return Candidates.of(self, query, eligible=eligible, near=near, count=count)

    def _nearest_positions(
        self, query: VectorQuery, mask: Mask, eligible: int, count: int
    ) -> Positions | None:
        """Return at least *count* of the *eligible* positions near *query*, from the approximate
        index.

        None if scoring all of them costs less, or if the index returns too few.
        """
        expected = count * self.size // max(eligible, 1)
        if eligible <= self._few_rows or eligible < _VISIT_COST * expected:
            return None
        ids, place = self._distinct_ids
        passing = np.zeros(len(ids), np.bool_)
        passing[place[mask]] = True

        def passes(found: Ids) -> Mask:
            # The database also contains rows of other catalogs.
            places = np.minimum(np.searchsorted(ids, found), len(ids) - 1)
            return np.asarray((ids[places] == found) & passing[places])

        near = self._engine.nearest(query.vectors, passes, count, _PATIENCE * expected)
        if near is None:
            return None
        is_near = np.zeros(len(ids), np.bool_)
        is_near[np.searchsorted(ids, near)] = True
        return np.flatnonzero(mask & is_near[place])

    @cached_property
    def _distinct_ids(self) -> tuple[Ids, Positions]:
        """Distinct row ids, ascending, shape (m,), and each position's index in them, shape (n,).

        Entities with equal texts share a row id.
        """
        ids, place = np.unique(self._ids, return_inverse=True)
        return ids, place

    def _maintain_daily(self) -> None:
        """Mark the catalog's rows as used, once a day, so that they are not deleted."""
        today = date.today()  # noqa: DTZ011  (as above)
        if today != self._day:
            self._day = today
            maintain(self._engine, self._ids[self._ids > 0], self._few_rows)


def maintain(engine: VectorEngine, ids: Ids, few_rows: int) -> None:
    """Run `VectorEngine.maintain` in a daemon thread, which does not delay the exit of the process.

    A failure is ignored, because the next build or the next day tries again.
    """

    def work() -> None:
        with suppress(StoreError):
            engine.maintain(ids, few_rows)

    threading.Thread(target=work, daemon=True).start()
