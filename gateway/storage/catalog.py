"""Entries, listings and pins in one SQLite file, and what was approved in a second one beside it.

A catalog that was corrupt or is gone begins anew with the approvals of the second file.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from gateway.catalog.entries import Entry, encode_entry
from gateway.errors import StoreError
from gateway.runtime.cache import Clock
from gateway.sources.listing_store import StoredServer, encode
from gateway.storage.database import Schema
from gateway.storage.listings import KEEP_S, Listings, find_definition, former_definitions
from gateway.storage.sqlite import BUSY_S, SqliteDatabase
from gateway.types import ToolDefinition
from gateway.types.listing import Listing

APPROVALS = Schema(
    what="store of approvals",
    steps=(
        (
            """CREATE TABLE IF NOT EXISTS pins (owner TEXT NOT NULL, name TEXT NOT NULL,
            approved TEXT NOT NULL, PRIMARY KEY (owner, name)) WITHOUT ROWID""",
        ),
    ),
)
"""What was approved, a second time: a catalog that is lost must approve nothing."""
CATALOG = Schema(
    what="catalog store",
    steps=(
        (
            """CREATE TABLE IF NOT EXISTS listings (fingerprint TEXT PRIMARY KEY,
            server TEXT NOT NULL, listed_at REAL NOT NULL, used_at REAL NOT NULL,
            listing TEXT NOT NULL) WITHOUT ROWID""",
            """CREATE TABLE IF NOT EXISTS pins (owner TEXT NOT NULL, name TEXT NOT NULL,
            approved TEXT NOT NULL, seen TEXT NOT NULL,
            PRIMARY KEY (owner, name)) WITHOUT ROWID""",
        ),
        (
            """CREATE TABLE IF NOT EXISTS entries (id TEXT PRIMARY KEY, entry TEXT NOT NULL)
            WITHOUT ROWID""",
        ),
        # Version 3 kept extracts of listings and pins, which triggers dropped.
        (),
        (
            *(
                f"DROP TRIGGER IF EXISTS {table}_{event}"
                for table in ("listing", "pin")
                for event in ("made", "changed", "gone")
            ),
            "DROP TABLE IF EXISTS heads",
            "DROP TABLE IF EXISTS approved",
        ),
        (
            """CREATE TABLE IF NOT EXISTS rules (pattern TEXT PRIMARY KEY, rule TEXT NOT NULL)
            WITHOUT ROWID""",
        ),
        (
            """CREATE TABLE IF NOT EXISTS former (digest TEXT PRIMARY KEY,
            definition TEXT NOT NULL) WITHOUT ROWID""",
        ),
        (
            """CREATE TABLE IF NOT EXISTS failures (fingerprint TEXT PRIMARY KEY,
            failed_at REAL NOT NULL, detail TEXT NOT NULL) WITHOUT ROWID""",
        ),
        (
            """CREATE TABLE IF NOT EXISTS first_seen (owner TEXT NOT NULL, value TEXT NOT NULL,
            at REAL NOT NULL, PRIMARY KEY (owner, value)) WITHOUT ROWID""",
        ),
    ),
)


_LISTINGS = """SELECT fingerprint, listed_at, listing, used_at FROM listings
    WHERE fingerprint IN (SELECT value FROM json_each(?))"""
_FAILURES = """SELECT fingerprint, failed_at, detail FROM failures
    WHERE fingerprint IN (SELECT value FROM json_each(?))"""
_PINS = """SELECT owner, name, approved, seen FROM pins
    WHERE owner IN (SELECT value FROM json_each(?))"""


class SqliteCatalog(Listings):
    """`Entries` and a `ListingStore` in one SQLite file.

    Args:
        path: The file; it and its folder are made when first needed.
        wall: Seconds since the epoch.
        busy_s: How long other processes may hold it.
    """

    def __init__(self, path: Path, *, wall: Clock = time.time, busy_s: float = BUSY_S) -> None:
        super().__init__(wall)
        self._database = SqliteDatabase(path, CATALOG, busy_s=busy_s)
        beside = path.with_name(f"{path.stem}.approvals.sqlite3")
        self._approvals = SqliteDatabase(beside, APPROVALS, busy_s=busy_s)

    def rows(self) -> Mapping[str, str]:
        """See `Entries.rows`; no file is made for it."""
        self._check_there()
        if not self._database.path.exists():
            return {}
        with self._database.reading() as connection:
            return dict(connection.execute("SELECT id, entry FROM entries"))

    def put(self, entries: Sequence[Entry]) -> None:
        """See `Entries.put`."""
        rows = [(entry.id, encode_entry(entry)) for entry in entries]
        with self._database.transaction() as connection:
            connection.executemany("INSERT OR REPLACE INTO entries VALUES (?, ?)", rows)

    def remove(self, key: str) -> bool:
        """See `Entries.remove`."""
        with self._database.transaction() as connection:
            return connection.execute("DELETE FROM entries WHERE id = ?", (key,)).rowcount > 0

    def rules(self) -> Mapping[str, str]:
        """See `Entries.rules`; no file is made for it."""
        if not self._database.path.exists():
            return {}
        with self._database.reading() as connection:
            return dict(connection.execute("SELECT pattern, rule FROM rules"))

    def put_rules(self, rules: Mapping[str, str]) -> None:
        """See `Entries.put_rules`."""
        with self._database.transaction() as connection:
            connection.executemany("INSERT OR REPLACE INTO rules VALUES (?, ?)", rules.items())

    def read(self, owners: Mapping[str, str]) -> Mapping[str, StoredServer]:
        """See `ListingStore.read`."""
        self._check_there()
        keys, names = (json.dumps([*each]) for each in (owners, owners.values()))
        with self._database.reading() as connection:
            rows = connection.execute(_LISTINGS, (keys,))
            listings = {row[0]: self._stored(*row) for row in rows}
            pins = connection.execute(_PINS, (names,)).fetchall()
            failures = connection.execute(_FAILURES, (keys,)).fetchall()
        return self._assemble(owners, listings, pins, failures)

    def keep(self, fingerprint: str, server: str, listing: Listing) -> None:
        """See `ListingStore.keep`."""
        now = self._wall()
        row = (fingerprint, server, now, now, encode(listing))
        query = "SELECT listing FROM listings WHERE fingerprint = ?"
        with self._database.transaction() as connection:
            old = connection.execute(query, (fingerprint,)).fetchone()
            is_new = old is None
            former = () if is_new or old[0] == row[-1] else former_definitions(old[0], listing)
            connection.executemany("INSERT OR IGNORE INTO former VALUES (?, ?)", former)
            connection.execute("INSERT OR REPLACE INTO listings VALUES (?, ?, ?, ?, ?)", row)
            connection.execute("DELETE FROM failures WHERE fingerprint = ?", (fingerprint,))
        if is_new:
            # Processes too short-lived to sweep must not fill the file with new configurations.
            self.sweep()

    def note_failure(self, fingerprint: str, detail: str) -> None:
        """See `ListingStore.note_failure`."""
        row = (fingerprint, self._wall(), detail)
        with self._database.transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO failures VALUES (?, ?, ?)", row)

    def forget(self, fingerprint: str) -> None:
        """See `ListingStore.forget`."""
        with self._database.transaction() as connection:
            connection.execute("DELETE FROM listings WHERE fingerprint = ?", (fingerprint,))

    def sweep(self) -> None:
        """See `ListingStore.sweep`."""
        self._record_use()
        with self._database.transaction() as connection:
            long_ago = (self._wall() - KEEP_S,)
            connection.execute("DELETE FROM listings WHERE used_at < ?", long_ago)
            connection.execute("DELETE FROM failures WHERE failed_at < ?", long_ago)
            connection.execute("DELETE FROM former WHERE digest NOT IN (SELECT approved FROM pins)")
            pins = connection.execute("SELECT owner, name, approved FROM pins").fetchall()
        self._complete_approvals(pins)

    def _complete_approvals(self, pins: Sequence[tuple[str, str, str]]) -> None:
        """Put *pins* into the second file if it lacks some: it is newer, or was lost itself."""
        with self._approvals.transaction() as approvals:
            (count,) = approvals.execute("SELECT count(*) FROM pins").fetchone()
            if count < len(pins):
                approvals.executemany("INSERT OR REPLACE INTO pins VALUES (?, ?, ?)", pins)

    def _record_use(self) -> None:
        used, self._used = self._used, {}
        with self._database.transaction() as connection:
            connection.executemany(
                "UPDATE listings SET used_at = ? WHERE fingerprint = ?",
                [(now, fingerprint) for fingerprint, now in used.items()],
            )

    def bind(self, owner: str, holders: Mapping[str, str]) -> None:
        """See `ListingStore.bind`."""
        query, now = "SELECT name, approved FROM pins WHERE owner = ?", self._wall()
        with self._approvals.transaction() as approvals:
            approved = dict(approvals.execute(query, (owner,)))
            rows = [
                (owner, name, approved.get(name, value), value) for name, value in holders.items()
            ]
            with self._database.transaction() as connection:
                connection.executemany(
                    "INSERT INTO pins VALUES (?, ?, ?, ?) "
                    "ON CONFLICT (owner, name) DO UPDATE SET seen = excluded.seen",
                    rows,
                )
                connection.executemany(
                    "INSERT OR IGNORE INTO first_seen VALUES (?, ?, ?)",
                    [(owner, value, now) for value in holders.values()],
                )
            # What is there was approved before; only `approve` changes it.
            approvals.executemany(
                "INSERT OR IGNORE INTO pins VALUES (?, ?, ?)", [row[:3] for row in rows]
            )

    def approve(self, owner: str, names: Sequence[str], *, seen: str = "") -> None:
        """See `ListingStore.approve`."""
        keys = [(owner, name) for name in names]
        with self._approvals.transaction() as approvals, self._database.transaction() as connection:
            connection.executemany(
                "UPDATE pins SET approved = seen WHERE owner = ? AND name = ? AND ? IN ('', seen)",
                [(*key, seen) for key in keys],
            )
            query = "SELECT owner, name, approved FROM pins WHERE owner = ? AND name = ?"
            rows = [row for key in keys for row in connection.execute(query, key)]
            approvals.executemany("INSERT OR REPLACE INTO pins VALUES (?, ?, ?)", rows)

    def definition(self, digest: str) -> ToolDefinition | None:
        """See `ListingStore.definition`."""
        with self._database.reading() as connection:
            query = "SELECT definition FROM former WHERE digest = ?"
            former_row = connection.execute(query, (digest,)).fetchone() or (None,)
            query = "SELECT listing FROM listings WHERE instr(listing, ?) > 0"
            texts = [text for (text,) in connection.execute(query, (digest,))]
        return find_definition(digest, former_row[0], texts)

    def _check_there(self) -> None:
        """Begin a catalog anew that is gone, though something was approved in it.

        Raises:
            StoreError: It was gone; ``rebuilt``.
        """
        path = self._database.path
        if self._approvals.path.exists() and not (path.exists() and path.stat().st_size):
            with self._database.transaction():
                detail = f"catalog store {path.name!r} was gone and begins anew; put entries again"
            raise StoreError(detail, rebuilt=True)

    def close(self) -> None:
        """See `ListingStore.close`."""
        if self._used:
            # A full disk must not keep a gateway from closing.
            with suppress(StoreError):
                self._record_use()
        self._database.close()
        self._approvals.close()

    def first_seen(self, owner: str) -> Mapping[str, float]:
        """See `ListingStore.first_seen`."""
        query = "SELECT value, at FROM first_seen WHERE owner = ?"
        with self._database.reading() as connection:
            return dict(connection.execute(query, (owner,)).fetchall())
