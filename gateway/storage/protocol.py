"""Protocols of persistent stores, and the store in SQLite files."""

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
    """Persistent data of a gateway, for any thread and several processes at once.

    If a part raises `StoreError`, the gateway continues without its data and reports a diagnostic.
    """

    @property
    def vectors(self) -> VectorStore:
        """Vectors, keyed by model and hash of the text."""

    @property
    def entries(self) -> Entries:
        """Entries of the catalog, keyed by id, and access rules, keyed by pattern."""

    @property
    def listings(self) -> ListingStore:
        """Listings, keyed by configuration fingerprint, and approvals, keyed by owner."""

    def close(self) -> None:
        """Release the resources of all parts; the next call opens them again."""


class OwnVectors(VectorStore, Protocol):
    """A `VectorStore` of this package, with its location and size."""

    @property
    def place(self) -> str:
        """Path or address of the vectors, without secrets."""

    def size(self) -> int:
        """Return the size of all vectors in bytes."""

    def count(self) -> int:
        """Return the number of vectors of all models."""

    def clear(self) -> None:
        """Delete all vectors of all models."""


@runtime_checkable
class WatchedStore(Store, Protocol):
    """A `Store` that reports changes by other processes."""

    def watch(self, on_change: Callable[[str], None]) -> Callable[[], None]:
        """Call *on_change* from a thread whenever another object has changed the store.

        The argument of *on_change* is the changed part: ``entries``, ``rules``, ``pins`` (one was
        approved) or ``listings/NAME`` for the listing of the server NAME. It is "" if changes may
        have been missed, so that every part may have changed.

        Returns:
            A function that ends the watch.
        """


@runtime_checkable
class TableStore(Store, Protocol):
    """A `Store` in which each feature may have its own tables."""

    @property
    def wall(self) -> Clock:
        """Clock that returns seconds since the epoch."""

    def tables(self, schema: Schema) -> Database:
        """Return a database with the tables of *schema*. The store closes it."""


def watch(store: Store, on_change: Callable[[str], None]) -> Callable[[], None]:
    """Call *on_change* as `WatchedStore.watch` does, or never if *store* cannot be watched.

    Returns:
        A function that ends the watch.
    """
    return store.watch(on_change) if isinstance(store, WatchedStore) else lambda: None


class SqliteStore:
    """A `Store` in SQLite files, each created when first needed.

    Args:
        vectors: The file of the vectors, or another store for them.
        catalog: The file of entries, listings and approvals. The files of `tables` are in the same
            folder.
        usage: The file of the recorded calls.
        wall: Returns seconds since the epoch.

    Example:
        >>> from tempfile import mkdtemp
        >>> folder = Path(mkdtemp())
        >>> files = {part: folder / f"{part}.sqlite3" for part in ("vectors", "catalog", "usage")}
        >>> store = SqliteStore(**files)  # to be passed as Gateway(store=store)
        >>> store.entries.rows()
        {}
        >>> store.close()
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
        """Return the database of *schema*, in a file next to the catalog file or as configured."""
        path = self._paths.get(schema.name, self._folder / f"{schema.name}.sqlite3")
        return self._tables.setdefault(schema.name, SqliteDatabase(path, schema))

    def close(self) -> None:
        """Close all files; the next call opens them again."""
        self.vectors.close()
        self.listings.close()
        for database in self._tables.values():
            database.close()
