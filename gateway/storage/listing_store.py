"""Listings and pins in one SQLite file."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from gateway.errors import StoreError
from gateway.runtime.cache import Clock
from gateway.sources.listing_store import StoredListing, decode, encode
from gateway.storage.migrations import CATALOG
from gateway.storage.sqlite import Connection, Database, database_of
from gateway.types.listing import Listing

KEEP_S = 30 * 24 * 3600.0
"""How long a listing that is not used is kept."""
_USE_STEP_S = 24 * 3600.0
"""The use of a listing is recorded once a day: a start that writes costs more than one that
reads."""


class SqliteListingStore:
    """A `ListingStore` in one SQLite file.

    Args:
        file: The file; it and its folder are made when first needed.
        wall: Seconds since the epoch.
    """

    def __init__(self, file: Path | Database, *, wall: Clock = time.time) -> None:
        self._database = database_of(file, CATALOG)
        self._wall = wall
        self._used: dict[str, float] = {}
        """When listings were read whose use is still to be recorded, by fingerprint."""

    def listing(self, fingerprint: str) -> StoredListing | None:
        """See `ListingStore.listing`."""
        with self._database.reading() as connection:
            row = connection.execute(
                "SELECT listed_at, listing, used_at FROM listings WHERE fingerprint = ?",
                (fingerprint,),
            ).fetchone()
        if row is None:
            return None
        listed_at, text, used_at = row
        now = self._wall()
        if now - used_at > _USE_STEP_S:
            self._used[fingerprint] = now
        with suppress(ValueError, KeyError, TypeError):
            return StoredListing(listing=decode(text), listed_at=listed_at)
        return None

    def keep(self, fingerprint: str, server: str, listing: Listing) -> None:
        """See `ListingStore.keep`."""
        now = self._wall()
        row = (fingerprint, server, now, now, encode(listing))
        with self._database.transaction() as connection:
            query = "SELECT 1 FROM listings WHERE fingerprint = ?"
            # Processes too short-lived to sweep must not fill the file with new configurations.
            if connection.execute(query, (fingerprint,)).fetchone() is None:
                self._sweep(connection)
            connection.execute("INSERT OR REPLACE INTO listings VALUES (?, ?, ?, ?, ?)", row)

    def forget(self, fingerprint: str) -> None:
        """See `ListingStore.forget`."""
        with self._database.transaction() as connection:
            connection.execute("DELETE FROM listings WHERE fingerprint = ?", (fingerprint,))

    def sweep(self) -> None:
        """See `ListingStore.sweep`."""
        with self._database.transaction() as connection:
            self._sweep(connection)

    def _sweep(self, connection: Connection) -> None:
        self._record_use(connection)
        connection.execute("DELETE FROM listings WHERE used_at < ?", (self._wall() - KEEP_S,))

    def _record_use(self, connection: Connection) -> None:
        used, self._used = self._used, {}
        connection.executemany(
            "UPDATE listings SET used_at = ? WHERE fingerprint = ?",
            [(at, fingerprint) for fingerprint, at in used.items()],
        )

    def record_seen(self, owner: str, digests: Mapping[str, str]) -> frozenset[str]:
        """See `ListingStore.record_seen`."""
        with self._database.reading() as connection:
            pins = _pins(connection, owner)
        # Writing what is there already would cost every start more than reading it.
        if _not_seen_last(pins, digests):
            try:
                pins = self._write_seen(owner, digests)
            except StoreError:
                # A full disk must not hide what is not as it was approved.
                if not _unapproved(pins, digests):
                    raise
        return _unapproved(pins, digests)

    def _write_seen(self, owner: str, digests: Mapping[str, str]) -> dict[str, tuple[str, str]]:
        """Record what was seen; return what was pinned just before."""
        with self._database.transaction() as connection:
            # Another process may have seen them first, and seen something else.
            pins = _pins(connection, owner)
            connection.executemany(
                "INSERT INTO pins VALUES (?, ?, ?, ?) "
                "ON CONFLICT (owner, name) DO UPDATE SET seen = excluded.seen",
                [(owner, name, new, new) for name, new in _not_seen_last(pins, digests).items()],
            )
        return pins

    def changed(self, owner: str) -> frozenset[str]:
        """See `ListingStore.changed`."""
        with self._database.reading() as connection:
            pins = _pins(connection, owner)
        return frozenset(name for name, (approved, seen) in pins.items() if approved != seen)

    def approve(self, owner: str, names: Sequence[str]) -> None:
        """See `ListingStore.approve`."""
        with self._database.transaction() as connection:
            connection.executemany(
                "UPDATE pins SET approved = seen WHERE owner = ? AND name = ?",
                [(owner, name) for name in names],
            )

    def close(self) -> None:
        """See `ListingStore.close`."""
        if self._used:
            # A full disk must not keep a gateway from closing.
            with suppress(StoreError), self._database.transaction() as connection:
                self._record_use(connection)
        self._database.close()


def _pins(connection: Connection, owner: str) -> dict[str, tuple[str, str]]:
    """Return what was approved and what was seen last, by name."""
    rows = connection.execute("SELECT name, approved, seen FROM pins WHERE owner = ?", (owner,))
    return {name: (approved, seen) for name, approved, seen in rows}


def _not_seen_last(
    pins: Mapping[str, tuple[str, str]], digests: Mapping[str, str]
) -> dict[str, str]:
    return {name: new for name, new in digests.items() if pins.get(name, ("", ""))[1] != new}


def _unapproved(pins: Mapping[str, tuple[str, str]], digests: Mapping[str, str]) -> frozenset[str]:
    return frozenset(name for name, new in digests.items() if pins.get(name, (new, ""))[0] != new)
