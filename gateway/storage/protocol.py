"""What outlives a process, opened from one place."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, runtime_checkable

from gateway.catalog.catalog import Entries
from gateway.runtime.cache import Clock
from gateway.runtime.vectors import VectorStore
from gateway.sources.listing_store import ListingStore
from gateway.storage.catalog import SqlCatalog
from gateway.storage.database import Database, Schema
from gateway.storage.sqlite import SqliteDatabase, SqliteVectorStore


class Store(Protocol):
    """All that is kept between two starts: a bundle of protocols, each small enough to be met.

    Used from any thread, and by several processes at once. A part that fails raises `StoreError`;
    what it kept is then made again, or is missing with a diagnostic.
    """

    @property
    def vectors(self) -> VectorStore:
        """Vectors, by model and hash of the text."""

    @property
    def entries(self) -> Entries:
        """What a person or a manifest said of things that no server lists, by id."""

    @property
    def listings(self) -> ListingStore:
        """Tool lists, by fingerprint; what was approved of them, by owner."""

    def close(self) -> None:
        """Let go of what is held by any part; the next call takes it up again."""


class OwnVectors(VectorStore, Protocol):
    """A `VectorStore` of this package."""

    @property
    def place(self) -> str:
        """Where it is, without secrets."""

    def size(self) -> int:
        """Return how many bytes it takes."""

    def count(self) -> int:
        """Return how many vectors it keeps, of all models."""

    def clear(self) -> None:
        """Forget every vector of every model."""


@runtime_checkable
class WatchedStore(Store, Protocol):
    """A `Store` that says what another process changed in it."""

    def watch(self, on_change: Callable[[str], None]) -> Callable[[], None]:
        """Call *on_change* from a thread, with ``entries``, ``rules``, ``pins`` (of which one was
        approved) or ``listings/NAME`` of a server.

        Not for what this object changed itself. Empty if changes may have been missed, so that all
        of them may have changed.

        Returns:
            A function that ends it.
        """


@runtime_checkable
class TableStore(Store, Protocol):
    """A `Store` in which each feature may have tables of its own."""

    @property
    def wall(self) -> Clock:
        """Seconds since the epoch."""

    def tables(self, schema: Schema) -> Database:
        """Return the database of the tables of *schema*; they are made when first used.

        The store closes it.
        """


def watch(store: Store, on_change: Callable[[str], None]) -> Callable[[], None]:
    """Call *on_change* as `WatchedStore.watch` does; never if *store* is none."""
    return store.watch(on_change) if isinstance(store, WatchedStore) else lambda: None


class SqliteStore:
    """A `Store` in SQLite files. Each is made when first needed.

    Args:
        vectors: The file of vectors, or where else they are kept.
        catalog: The file of entries, tool lists and approvals. Beside it are those of `tables`.
        usage: The file of calls.
        wall: Seconds since the epoch.
    """

    def __init__(
        self, *, vectors: Path | VectorStore, catalog: Path, usage: Path, wall: Clock = time.time
    ) -> None:
        self.vectors = SqliteVectorStore(vectors) if isinstance(vectors, Path) else vectors
        self.entries = self.listings = SqlCatalog.in_files(catalog, wall=wall)
        self.wall = wall
        self._paths = {"usage": usage}
        self._folder = catalog.parent
        self._tables: dict[str, SqliteDatabase] = {}

    def tables(self, schema: Schema) -> SqliteDatabase:
        """See `TableStore.tables`: a file of the name of *schema*, beside that of the catalog."""
        path = self._paths.get(schema.name, self._folder / f"{schema.name}.sqlite3")
        return self._tables.setdefault(schema.name, SqliteDatabase(path, schema))

    def close(self) -> None:
        """See `Store.close`."""
        self.vectors.close()
        self.listings.close()
        for database in self._tables.values():
            database.close()
