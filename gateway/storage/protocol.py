"""What outlives a process, opened from one place."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Protocol, runtime_checkable

from gateway.catalog.catalog import Entries
from gateway.errors import ConfigError
from gateway.options import Options
from gateway.options.environment import (
    audit_path,
    catalog_store_path,
    ledger_path,
    vector_store_path,
)
from gateway.options.validation import check_members
from gateway.plugins.access.audit import AuditLog, Auditor
from gateway.plugins.access.limits import Counters
from gateway.plugins.usage.call_log import CallLog
from gateway.runtime.cache import Clock
from gateway.runtime.telemetry import Telemetry
from gateway.runtime.vectors import VectorStore
from gateway.sources.listing_store import ListingStore
from gateway.storage.audit import AUDIT, LIMITS, SqlAuditLog, SqlCounters
from gateway.storage.call_log import USAGE, SqlCallLog
from gateway.storage.catalog import SqlCatalog
from gateway.storage.programs import PROGRAMS, SqlPrograms
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

    @property
    def call_log(self) -> CallLog:
        """Calls, and what searches returned."""

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
class AccessStore(Store, Protocol):
    """A `Store` that also keeps what decisions about access need."""

    @property
    def audit_log(self) -> AuditLog:
        """Decisions and changes."""

    @property
    def counters(self) -> Counters:
        """What counts towards limits, of all processes."""


def counters_of(store: Store) -> Counters | None:
    """Return where calls are counted; None if *store* has no place for that."""
    return store.counters if isinstance(store, AccessStore) else None


def auditor_of(options: Options, store: Store, telemetry: Telemetry | None = None) -> Auditor:
    """Return what writes the audit log; nothing is kept unless *options* turn it on.

    Raises:
        ConfigError: It is on, and *store* keeps no audit log.
    """
    log: AuditLog | None = None
    if options.audit.record == "on":
        if not isinstance(store, AccessStore):
            raise ConfigError("audit.record is on, and the store keeps no audit log: give it one")
        log = store.audit_log
    return Auditor(log, options.audit, key=partial(_audit_key, options), telemetry=telemetry)


def _audit_key(options: Options) -> bytes:
    from gateway.storage.approval_key import key_in  # noqa: PLC0415  (only where rows are written: it reads files of variables)
    from gateway.storage.host_key import host_keys  # noqa: PLC0415  (likewise)

    keys = host_keys(options, "audit")
    return keys[0] if keys else key_in(audit_path(options).with_suffix(".key"))


def watch(store: Store, on_change: Callable[[str], None]) -> Callable[[], None]:
    """Call *on_change* as `WatchedStore.watch` does; never if *store* is none."""
    return store.watch(on_change) if isinstance(store, WatchedStore) else lambda: None


class SqliteStore:
    """A `Store` in SQLite files. Each is made when first needed.

    Args:
        vectors: The file of vectors, or where else they are kept.
        catalog: The file of entries, tool lists and approvals. Beside it are those of programs, of
            the audit log and of limits.
        usage: The file of calls.
        wall: Seconds since the epoch.
    """

    def __init__(
        self, *, vectors: Path | VectorStore, catalog: Path, usage: Path, wall: Clock = time.time
    ) -> None:
        self.vectors = SqliteVectorStore(vectors) if isinstance(vectors, Path) else vectors
        self.entries = self.listings = SqlCatalog.in_files(catalog, wall=wall)
        self.call_log = SqlCallLog(SqliteDatabase(usage, USAGE), wall=wall)
        beside = catalog.with_name
        programs = SqliteDatabase(beside("programs.sqlite3"), PROGRAMS)
        self.programs = SqlPrograms(programs, wall=wall)
        self.audit_log = SqlAuditLog(SqliteDatabase(beside("audit.sqlite3"), AUDIT))
        self.counters = SqlCounters(SqliteDatabase(beside("limits.sqlite3"), LIMITS))

    def close(self) -> None:
        """See `Store.close`."""
        parts = self.vectors, self.listings, self.call_log, self.programs
        for part in (*parts, self.audit_log, self.counters):
            part.close()


def resolve_store(
    options: Options, store: Store | None = None, *, vectors: VectorStore | None = None
) -> Store:
    """Return the store of a gateway: the host's own, else the database or files of *options*.

    Args:
        options: Where it is.
        store: The host's store.
        vectors: Where the host keeps vectors, and only them.

    Raises:
        ConfigError: Both are given, or one is no store, or the database has no usable address.
        MissingExtraError: It is to be PostgreSQL, and that package is not installed.
    """
    if vectors is not None:
        check_members("vector_store", vectors, "a VectorStore", "get", "put", "close")
    # Not `or`: an empty store of the host may be falsy.
    if store is not None:
        if vectors is not None:
            raise ConfigError("store and vector_store say both where vectors persist: give one")
        check_members(
            "store", store, "a Store", "vectors", "entries", "listings", "call_log", "close"
        )
        return store
    if options.store:
        from gateway.storage.postgres import open_store  # noqa: PLC0415  (an optional extra)

        return open_store(options.store, vectors)
    return SqliteStore(
        vectors=vector_store_path(options) if vectors is None else vectors,
        catalog=catalog_store_path(options),
        usage=ledger_path(options),
    )


def own_vectors(options: Options) -> OwnVectors:
    """Return where vectors are kept by *options*.

    Raises:
        ConfigError: The database has no usable address.
        MissingExtraError: It is to be PostgreSQL, and that package is not installed.
    """
    if options.store:
        from gateway.storage.postgres import open_vectors  # noqa: PLC0415  (an optional extra)

        return open_vectors(options.store)
    return SqliteVectorStore(vector_store_path(options))
