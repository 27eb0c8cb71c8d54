"""`CatalogVectors` in a database: the process holds ids, and rows stay in the database.

* Few eligible entities are scored exactly, by the ids of their rows.
* For many, an index is walked from each vector of the query until enough rows pass the mask. If the
  walk ends too early, all eligible entities are scored exactly. So no filter costs recall.

The face of a database that stores the vectors of entities and searches them.
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


FEW_ROWS = 5_000
"""Maximum number of rows without an index: to walk an index costs as much as to score them."""

_MIN_NEAREST = 200
"""Minimum number of rows taken from an index near each vector: near the start it misses some."""
_VISIT_COST = 10
"""Cost of a row visited in an index, as a multiple of the cost of a row scored by its id."""
_PATIENCE = 4
"""Maximum number of visited rows, as a multiple of the number expected for the mask."""


class EngineVectors:
    """`CatalogVectors` in an engine. Each call except `has` may raise `StoreError`.

    Args:
        engine: Stores the rows.
        ids: Id of the row at each position, 0 for an entity without a row, shape (n,).
        dimensions: Length of the rows.
        listed: Positions used to compute the mean.
        few_rows: Maximum number of eligible entities that are scored exactly at once.
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
        """See `CatalogVectors.mean`; estimated from a sample of `SAMPLE_ROWS` rows."""
        rows = self._engine.rows(self._ids[sample_of(self._listed)])
        return np.asarray(rows.mean(axis=0), dtype=np.float32)

    def has(self, positions: Positions) -> Mask:
        """See `CatalogVectors.has`."""
        return np.asarray(self._ids[positions] > 0)

    def rows(self, positions: Positions) -> Matrix:
        """See `CatalogVectors.rows`."""
        rows, has_row = np.zeros((len(positions), self.dimensions), np.float32), self.has(positions)
        if has_row.any():
            rows[has_row] = self._engine.rows(self._ids[positions[has_row]])
        return rows

    def similarities(self, vectors: Matrix, positions: Positions) -> Matrix:
        """See `CatalogVectors.similarities`."""
        found, has_row = np.zeros((len(vectors), len(positions)), np.float32), self.has(positions)
        if has_row.any():
            found[:, has_row] = self._engine.similarities(vectors, self._ids[positions[has_row]])
        return found

    def search(self, query: VectorQuery, *, mask: Mask, count: int) -> Candidates:
        """See `CatalogVectors.search`."""
        self._maintain_daily()
        eligible = np.flatnonzero(mask)
        near = self._near(query, mask, len(eligible), max(count, _MIN_NEAREST))
        return Candidates.of(self, query, eligible=eligible, near=near, count=count)

    def _near(self, query: VectorQuery, mask: Mask, eligible: int, count: int) -> Positions | None:
        """Return at least *count* eligible positions near *query*, from the index of the engine.

        Returns:
            None if to score all *eligible* positions costs less, or if too few are near.
        """
        expected = count * self.size // max(eligible, 1)
        if eligible <= self._few_rows or eligible < _VISIT_COST * expected:
            return None
        ids, place = self._places
        passing = np.zeros(len(ids), np.bool_)
        passing[place[mask]] = True

        def passes(found: Ids) -> Mask:
            # The engine also has rows of other catalogs.
            at = np.minimum(np.searchsorted(ids, found), len(ids) - 1)
            return np.asarray((ids[at] == found) & passing[at])

        near = self._engine.nearest(query.vectors, passes, count, _PATIENCE * expected)
        if near is None:
            return None
        is_near = np.zeros(len(ids), np.bool_)
        is_near[np.searchsorted(ids, near)] = True
        return np.flatnonzero(mask & is_near[place])

    @cached_property
    def _places(self) -> tuple[Ids, Positions]:
        """The ids, ascending, and the place of each position among them: equal entities share one.

        Shapes (m,) and (n,).
        """
        ids, place = np.unique(self._ids, return_inverse=True)
        return ids, place

    def _maintain_daily(self) -> None:
        """Once a day, keep the rows from being deleted."""
        today = date.today()  # noqa: DTZ011  (as above)
        if today != self._day:
            self._day = today
            maintain(self._engine, self._ids[self._ids > 0], self._few_rows)


def maintain(engine: VectorEngine, ids: Ids, few_rows: int) -> None:
    """Start `VectorEngine.maintain` in a thread that no process waits for, not even to end.

    After a failure, the next build or day tries again.
    """

    def work() -> None:
        with suppress(StoreError):
            engine.maintain(ids, few_rows)

    threading.Thread(target=work, daemon=True).start()
