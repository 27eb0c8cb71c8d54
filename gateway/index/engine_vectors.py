"""`CatalogVectors` in a database. The process stores row ids; the rows stay in the database.

* A few eligible entities are scored exactly, by the ids of their rows.
* For many, an approximate index is searched from each vector of the query, until enough rows pass
  the mask. If it returns too few rows, all eligible entities are scored exactly, so that filters do
  not reduce recall.

Also contains the protocol of a database that stores and searches vectors of entities.
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
"""Row ids of an engine; each is at least 1."""
Passes: TypeAlias = Callable[[Ids], Mask]
"""Returns a mask of the given rows that are eligible."""


class VectorEngine(Protocol):
    """Unit vectors of one model in a database. Thread-safe.

    A row's key is a digest of its content. Rows are therefore shared by processes and never change.
    Each method may raise `StoreError`.
    """

    has_gaps: bool
    """True if a row was missing in the database. The reader resets the flag."""

    def known(self, keys: Sequence[bytes]) -> Mapping[bytes, int]:
        """Return the ids of the stored rows among *keys*, and mark the rows as used today."""

    def put(self, rows: Mapping[bytes, Vector]) -> Mapping[bytes, int]:
        """Store missing rows. Return the ids of all *rows*, keyed like *rows*."""

    def nearest(self, vectors: Matrix, passes: Passes, count: int, limit: int) -> Ids | None:
        """Return the rows nearest to each of *vectors*, from an approximate index.

        Args:
            vectors: Unit rows, shape (q, d), q >= 1.
            passes: Test of rows. Only passing rows are returned and counted.
            count: Minimum number of rows for each vector.
            limit: Maximum number of visited rows for each vector.

        Returns:
            Row ids without duplicates. None if the index is missing or too few visited rows pass.
        """

    def similarities(self, vectors: Matrix, ids: Ids) -> Matrix:
        """Return the cosines of the rows of *ids* with *vectors*, shape (q, len(ids)).

        Raises:
            StoreError: If a row is missing; `has_gaps` is then True.
        """

    def rows(self, ids: Ids) -> Matrix:
        """Return the rows of a few *ids*, shape (len(ids), d); see `similarities`."""

    def maintain(self, ids: Ids, few_rows: int) -> None:
        """Mark the rows of *ids* as used today, delete unused rows, and index many rows.

        Args:
            ids: Row ids; missing rows are ignored.
            few_rows: Maximum number of rows without an index. Building an index takes minutes.
        """


@runtime_checkable
class EngineStore(Protocol):
    """A `VectorStore` that also stores the vectors of entities."""

    def vector_engine(self, model: str, *, timeout_s: float) -> VectorEngine:
        """Return the vectors of one model, without a query to the database.

        Args:
            model: Hexadecimal digest that identifies the model.
            timeout_s: Maximum duration of a search, in seconds.
        """

    def check_engine(self) -> None:
        """Raise `StoreError` if the database cannot store vectors of entities."""


FEW_ROWS = 5_000
"""Maximum number of rows without an index. Scoring so few rows costs as little as an index
search."""

_MIN_NEAREST = 200
"""Minimum number of rows requested from the index for each vector, because shorter searches miss
some."""
_VISIT_COST = 10
"""Cost of a row visited in an index, as a multiple of the cost of a row scored by its id."""
_PATIENCE = 4
"""Maximum number of visited rows, as a multiple of the number expected for the mask."""


class EngineVectors:
    """`CatalogVectors` in an engine. All methods except `has` may raise `StoreError`.

    Args:
        engine: Stores the rows.
        ids: Row id of each position, 0 for an entity without a row, shape (n,).
        dimensions: Length of the rows.
        listed: Positions used to compute the mean.
        few_rows: Maximum number of eligible entities that are scored exactly without the index.
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
        """Number of positions."""
        return len(self._ids)

    @cached_property
    def mean(self) -> Vector:
        """Mean row, estimated from a sample of `SAMPLE_ROWS` rows; see `CatalogVectors.mean`."""
        rows = self._engine.rows(self._ids[sample_of(self._listed)])
        return np.asarray(rows.mean(axis=0), dtype=np.float32)

    def has(self, positions: Positions) -> Mask:
        """Return flags that are True for each of *positions* with a row."""
        return np.asarray(self._ids[positions] > 0)

    def rows(self, positions: Positions) -> Matrix:
        """Return the rows at a few *positions*; zeros for an entity without a row."""
        rows, has_row = np.zeros((len(positions), self.dimensions), np.float32), self.has(positions)
        if has_row.any():
            rows[has_row] = self._engine.rows(self._ids[positions[has_row]])
        return rows

    def similarities(self, vectors: Matrix, positions: Positions) -> Matrix:
        """Return the exact cosines of *vectors* with the rows at *positions*."""
        cosines, has_row = np.zeros((len(vectors), len(positions)), np.float32), self.has(positions)
        if has_row.any():
            cosines[:, has_row] = self._engine.similarities(vectors, self._ids[positions[has_row]])
        return cosines

    def search(self, query: VectorQuery, *, mask: Mask, count: int) -> Candidates:
        """Find the *count* best eligible positions, with the engine's index if worthwhile."""
        self._maintain_daily()
        eligible = np.flatnonzero(mask)
        near = self._nearest_positions(query, mask, len(eligible), max(count, _MIN_NEAREST))
        return Candidates.of(self, query, eligible=eligible, near=near, count=count)

    def _nearest_positions(
        self, query: VectorQuery, mask: Mask, eligible: int, count: int
    ) -> Positions | None:
        """Return at least *count* eligible positions near *query*, from the index of the engine.

        Returns:
            None if scoring all *eligible* positions is cheaper, or if too few are near.
        """
        expected = count * self.size // max(eligible, 1)
        if eligible <= self._few_rows or eligible < _VISIT_COST * expected:
            return None
        ids, place = self._distinct_ids
        passing = np.zeros(len(ids), np.bool_)
        passing[place[mask]] = True

        def passes(found: Ids) -> Mask:
            # The engine also contains rows of other catalogs.
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
        """Distinct row ids, ascending, and the index of each position's id in them.

        Equal entities share an id. Shapes (m,) and (n,).
        """
        ids, place = np.unique(self._ids, return_inverse=True)
        return ids, place

    def _maintain_daily(self) -> None:
        """Mark the rows as used once a day, so that they are not deleted."""
        today = date.today()  # noqa: DTZ011  (as above)
        if today != self._day:
            self._day = today
            maintain(self._engine, self._ids[self._ids > 0], self._few_rows)


def maintain(engine: VectorEngine, ids: Ids, few_rows: int) -> None:
    """Start `VectorEngine.maintain` in a daemon thread, which does not delay the process exit.

    After a failure, the next build or the next day tries again.
    """

    def work() -> None:
        with suppress(StoreError):
            engine.maintain(ids, few_rows)

    threading.Thread(target=work, daemon=True).start()
