"""SQL store of entries, access rules, listings and approvals.

SQLite has a second copy of the approvals in another file, which survives the loss of the first.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import Self

from gateway.catalog.entries import Entry, encode_entry
from gateway.errors import StoreError
from gateway.runtime.cache import Clock
from gateway.sources.listing_store import StoredServer, encode
from gateway.storage.database import Database, Schema, Session
from gateway.storage.listings import KEEP_S, Listings, find_definition, former_definitions
from gateway.storage.sqlite import BUSY_S, SqliteDatabase
from gateway.types import ToolDefinition
from gateway.types.listing import Listing

APPROVALS = Schema(
    name="approvals",
    what="store of approvals",
    steps=(
        (
            """CREATE TABLE IF NOT EXISTS pins (owner TEXT NOT NULL, name TEXT NOT NULL,
            approved TEXT NOT NULL, PRIMARY KEY (owner, name)) WITHOUT ROWID""",
        ),
    ),
)
"""Tables of the second copy of the approvals. The loss of the catalog file then does not approve
new definitions."""
CATALOG = Schema(
    name="catalog",
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
        # Version 3 created extracts of listings and pins, and triggers; the next step drops them.
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
    postgres={
        1: (
            'CREATE TABLE entries (id text COLLATE "C" PRIMARY KEY, entry text NOT NULL)',
            'CREATE TABLE rules (pattern text COLLATE "C" PRIMARY KEY, rule text NOT NULL)',
            """CREATE TABLE listings (fingerprint text COLLATE "C" PRIMARY KEY,
            server text NOT NULL, listed_at double precision NOT NULL,
            used_at double precision NOT NULL, listing text NOT NULL)""",
            'CREATE TABLE former (digest text COLLATE "C" PRIMARY KEY, definition text NOT NULL)',
            """CREATE TABLE failures (fingerprint text COLLATE "C" PRIMARY KEY,
            failed_at double precision NOT NULL, detail text NOT NULL)""",
            """CREATE TABLE pins (owner text COLLATE "C", name text COLLATE "C",
            approved text NOT NULL, seen text NOT NULL, PRIMARY KEY (owner, name))""",
            """CREATE TABLE first_seen (owner text COLLATE "C", value text COLLATE "C",
            at double precision NOT NULL, PRIMARY KEY (owner, value))""",
        ),
        2: (
            """CREATE FUNCTION tell_change() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            PERFORM pg_notify('tool_gateway', json_build_array(
                current_setting('gateway.origin', true), TG_TABLE_SCHEMA, TG_TABLE_NAME)::text);
            RETURN NULL; END $$""",
            """CREATE FUNCTION tell_listing() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            PERFORM pg_notify('tool_gateway', json_build_array(
                current_setting('gateway.origin', true), TG_TABLE_SCHEMA,
                TG_TABLE_NAME || '/' || NEW.server)::text);
            RETURN NULL; END $$""",
            """CREATE TRIGGER tell AFTER INSERT OR DELETE OR UPDATE ON entries
            FOR EACH STATEMENT EXECUTE FUNCTION tell_change()""",
            """CREATE TRIGGER tell AFTER INSERT OR DELETE OR UPDATE ON rules
            FOR EACH STATEMENT EXECUTE FUNCTION tell_change()""",
            """CREATE TRIGGER tell_new AFTER INSERT ON listings
            FOR EACH ROW EXECUTE FUNCTION tell_listing()""",
            """CREATE TRIGGER tell_changed AFTER UPDATE ON listings
            FOR EACH ROW WHEN (OLD.listing IS DISTINCT FROM NEW.listing)
            EXECUTE FUNCTION tell_listing()""",
            """CREATE TRIGGER tell AFTER UPDATE OF approved ON pins
            FOR EACH STATEMENT EXECUTE FUNCTION tell_change()""",
        ),
    },
)


class SqlCatalog(Listings):
    """Implementation of `Entries` and `ListingStore` in a database.

    Rows are written in the order of their keys, so that concurrent writers cannot deadlock.

    Args:
        database: Database with the tables of `CATALOG`.
        approvals: Database with the tables of `APPROVALS`; None if *database* is never lost alone.
        wall: Returns seconds since the epoch.
    """

    def __init__(
        self, database: Database, *, approvals: Database | None = None, wall: Clock = time.time
    ) -> None:
        super().__init__(wall)
        self._database = database
        self._approvals = approvals

    @classmethod
    def in_files(cls, path: Path, *, wall: Clock = time.time, busy_s: float = BUSY_S) -> Self:
        """Return a catalog in the SQLite file *path*, with a second file for approvals next to it.

        Args:
            path: The file. The file and its folder are created when first needed.
            wall: Returns seconds since the epoch.
            busy_s: Maximum wait for locks of other processes, in seconds.
        """
        second = path.with_name(f"{path.stem}.approvals.sqlite3")
        return cls(
            SqliteDatabase(path, CATALOG, busy_s=busy_s),
            approvals=SqliteDatabase(second, APPROVALS, busy_s=busy_s),
            wall=wall,
        )

    def rows(self) -> Mapping[str, str]:
        """See `Entries.rows`. Does not create the SQLite file."""
        self._check_not_lost()
        if not self._database.is_made():
            return {}
        return dict(self._database.rows("SELECT id, entry FROM entries ORDER BY id"))

    def put(self, entries: Sequence[Entry]) -> None:
        """See `Entries.put`."""
        rows = {entry.id: encode_entry(entry) for entry in entries}
        query = """INSERT INTO entries VALUES (?, ?)
            ON CONFLICT (id) DO UPDATE SET entry = excluded.entry"""
        self._database.write(query, *sorted(rows.items()))

    def remove(self, key: str) -> bool:
        """Delete the entry with the id *key*. Return False if missing."""
        return self._database.write("DELETE FROM entries WHERE id = ?", (key,)) > 0

    def rules(self) -> Mapping[str, str]:
        """See `Entries.rules`. Does not create the SQLite file."""
        if not self._database.is_made():
            return {}
        return dict(self._database.rows("SELECT pattern, rule FROM rules ORDER BY pattern"))

    def put_rules(self, rules: Mapping[str, str]) -> None:
        """See `Entries.put_rules`."""
        query = """INSERT INTO rules VALUES (?, ?)
            ON CONFLICT (pattern) DO UPDATE SET rule = excluded.rule"""
        self._database.write(query, *sorted(rules.items()))

    def read(self, owners: Mapping[str, str]) -> Mapping[str, StoredServer]:
        """See `ListingStore.read`."""
        self._check_not_lost()
        keys, names = ([*owners],), ([*owners.values()],)
        with self._database.reading() as session:
            query = """SELECT fingerprint, listed_at, listing, used_at FROM listings
                WHERE fingerprint = ANY(?)"""
            listings = {row[0]: self._read_row(*row) for row in session.rows(query, keys)}
            query = "SELECT owner, name, approved, seen FROM pins WHERE owner = ANY(?)"
            pins = session.rows(query, names)
            query = "SELECT fingerprint, failed_at, detail FROM failures WHERE fingerprint = ANY(?)"
            failures = session.rows(query, keys)
        return self._assemble(owners, listings, pins, failures)

    def keep(self, fingerprint: str, server: str, listing: Listing) -> None:
        """See `ListingStore.keep`."""
        now, text = self._wall(), encode(listing)
        with self._database.transaction() as session:
            query = "SELECT listing FROM listings WHERE fingerprint = ?"
            old = session.rows(query, (fingerprint,))
            if old and old[0][0] != text:
                session.write(
                    "INSERT INTO former VALUES (?, ?) ON CONFLICT DO NOTHING",
                    *former_definitions(old[0][0], listing),
                )
            session.write(
                """INSERT INTO listings VALUES (?, ?, ?, ?, ?) ON CONFLICT (fingerprint)
                DO UPDATE SET server = excluded.server, listed_at = excluded.listed_at,
                used_at = excluded.used_at, listing = excluded.listing""",
                (fingerprint, server, now, now, text),
            )
            session.write("DELETE FROM failures WHERE fingerprint = ?", (fingerprint,))
        if not old:
            # Short-lived processes never sweep otherwise, and would fill the tables.
            self.sweep()

    def note_failure(self, fingerprint: str, detail: str) -> None:
        """See `ListingStore.note_failure`."""
        query = """INSERT INTO failures VALUES (?, ?, ?) ON CONFLICT (fingerprint)
            DO UPDATE SET failed_at = excluded.failed_at, detail = excluded.detail"""
        self._database.write(query, (fingerprint, self._wall(), detail))

    def forget(self, fingerprint: str) -> None:
        """See `ListingStore.forget`."""
        self._database.write("DELETE FROM listings WHERE fingerprint = ?", (fingerprint,))

    def sweep(self) -> None:
        """Delete data that was not used for a month, and former definitions that are not approved.

        Also complete the second copy of the approvals.
        """
        self._record_use()
        with self._database.transaction() as session:
            long_ago = (self._wall() - KEEP_S,)
            session.write("DELETE FROM listings WHERE used_at < ?", long_ago)
            session.write("DELETE FROM failures WHERE failed_at < ?", long_ago)
            old = "DELETE FROM former WHERE digest NOT IN (SELECT approved FROM pins)"
            session.write(old, ())
        if self._approvals is not None:
            self._repair_approvals(self._approvals)

    def _repair_approvals(self, approvals: Database) -> None:
        """Copy all pins to *approvals* if it has fewer, because it was lost or created later."""
        with approvals.transaction() as second:
            pins = self._database.rows("SELECT owner, name, approved FROM pins")
            ((count,),) = second.rows("SELECT count(*) FROM pins")
            if count < len(pins):
                second.write(_APPROVE, *pins)

    def _record_use(self) -> None:
        used, self._used = self._used, {}
        rows = [(now, fingerprint) for fingerprint, now in sorted(used.items())]
        self._database.write("UPDATE listings SET used_at = ? WHERE fingerprint = ?", *rows)

    def _open_approvals(self) -> AbstractContextManager[Session | None]:
        return self._approvals.transaction() if self._approvals is not None else nullcontext()

    def bind(self, owner: str, holders: Mapping[str, str]) -> None:
        """Record *holders*, the digest (or tool id) of each name. The first one is approved."""
        names, now = sorted(holders.items()), self._wall()
        with self._open_approvals() as second:
            query = "SELECT name, approved FROM pins WHERE owner = ?"
            approved = dict[str, str](second.rows(query, (owner,)) if second else ())
            pins = [(owner, name, approved.get(name, value), value) for name, value in names]
            with self._database.transaction() as session:
                session.write(
                    """INSERT INTO pins VALUES (?, ?, ?, ?)
                    ON CONFLICT (owner, name) DO UPDATE SET seen = excluded.seen""",
                    *pins,
                )
                session.write(
                    "INSERT INTO first_seen VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
                    *((owner, value, now) for value in sorted({*holders.values()})),
                )
            if second:
                # An existing pin was approved earlier; only `approve` may change it.
                query = "INSERT INTO pins VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
                second.write(query, *(pin[:3] for pin in pins))

    def approve(self, owner: str, names: Sequence[str], *, seen: str = "") -> None:
        """See `ListingStore.approve`."""
        keys = [(owner, name) for name in sorted({*names})]
        with self._open_approvals() as second, self._database.transaction() as session:
            session.write(
                "UPDATE pins SET approved = seen WHERE owner = ? AND name = ? AND ? IN ('', seen)",
                *((*key, seen) for key in keys),
            )
            if second:
                query = "SELECT owner, name, approved FROM pins WHERE owner = ? AND name = ?"
                second.write(_APPROVE, *(row for key in keys for row in session.rows(query, key)))

    def definition(self, digest: str) -> ToolDefinition | None:
        """See `ListingStore.definition`."""
        with self._database.reading() as session:
            query = "SELECT definition FROM former WHERE digest = ?"
            former = session.rows(query, (digest,))
            query = "SELECT listing FROM listings WHERE strpos(listing, ?) > 0"
            texts = [text for (text,) in session.rows(query, (digest,))]
        return find_definition(digest, former[0][0] if former else None, texts)

    def first_seen(self, owner: str) -> Mapping[str, float]:
        """Return when each value of *owner* was first recorded, in seconds since the epoch."""
        query = "SELECT value, at FROM first_seen WHERE owner = ?"
        return dict(self._database.rows(query, (owner,)))

    def _check_not_lost(self) -> None:
        """Create the catalog again if it is missing although it has approvals.

        Raises:
            StoreError: If it was missing; ``rebuilt`` is set.
        """
        second, database = self._approvals, self._database
        if second is not None and second.is_made() and not database.is_made():
            with database.transaction():
                detail = f"{database.label} was missing and starts empty; put the entries again"
            raise StoreError(detail, rebuilt=True)

    def close(self) -> None:
        """Record the latest uses of listings, and close the databases."""
        if self._used:
            # A full disk must not prevent closing.
            with suppress(StoreError):
                self._record_use()
        self._database.close()
        if self._approvals is not None:
            self._approvals.close()


_APPROVE = """INSERT INTO pins VALUES (?, ?, ?)
    ON CONFLICT (owner, name) DO UPDATE SET approved = excluded.approved"""
"""SQL statement that writes an approval to the second copy."""
