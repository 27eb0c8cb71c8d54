"""Entries, listings and pins in PostgreSQL."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress

from gateway.catalog.entries import Entry, encode_entry
from gateway.errors import StoreError
from gateway.runtime.cache import Clock
from gateway.sources.listing_store import StoredServer, encode
from gateway.storage.listings import KEEP_S, Listings, find_definition, former_definitions
from gateway.storage.postgres_database import PostgresDatabase
from gateway.types import ToolDefinition
from gateway.types.listing import Listing


class PostgresCatalog(Listings):
    """`Entries` and a `ListingStore` in one schema. Keys are written in order: no two writers of
    the same keys wait for each other.

    Args:
        database: Where the tables are.
        wall: Seconds since the epoch.
    """

    def __init__(self, database: PostgresDatabase, *, wall: Clock = time.time) -> None:
        super().__init__(wall)
        self._database = database

    def rows(self) -> Mapping[str, str]:
        """See `Entries.rows`."""
        return dict(self._database.rows("SELECT id, entry FROM entries ORDER BY id"))

    def put(self, entries: Sequence[Entry]) -> None:
        """See `Entries.put`."""
        rows = {entry.id: encode_entry(entry) for entry in entries}
        query = (
            "INSERT INTO entries VALUES (%s, %s) "
            "ON CONFLICT (id) DO UPDATE SET entry = excluded.entry"
        )
        self._database.write(query, *sorted(rows.items()))

    def remove(self, key: str) -> bool:
        """See `Entries.remove`."""
        return self._database.write("DELETE FROM entries WHERE id = %s", (key,)) > 0

    def rules(self) -> Mapping[str, str]:
        """See `Entries.rules`."""
        return dict(self._database.rows("SELECT pattern, rule FROM rules ORDER BY pattern"))

    def put_rules(self, rules: Mapping[str, str]) -> None:
        """See `Entries.put_rules`."""
        query = (
            "INSERT INTO rules VALUES (%s, %s) "
            "ON CONFLICT (pattern) DO UPDATE SET rule = excluded.rule"
        )
        self._database.write(query, *sorted(rules.items()))

    def read(self, owners: Mapping[str, str]) -> Mapping[str, StoredServer]:
        """See `ListingStore.read`."""
        keys, names = [*owners], [*owners.values()]
        with self._database.reading() as connection:
            listings = {
                row[0]: self._stored(*row)
                for row in connection.execute(
                    "SELECT fingerprint, listed_at, listing, used_at FROM listings "
                    "WHERE fingerprint = ANY(%s)",
                    (keys,),
                )
            }
            query = "SELECT owner, name, approved, seen FROM pins WHERE owner = ANY(%s)"
            pins = connection.execute(query, (names,)).fetchall()
            query = (
                "SELECT fingerprint, failed_at, detail FROM failures WHERE fingerprint = ANY(%s)"
            )
            failures = connection.execute(query, (keys,)).fetchall()
        return self._assemble(owners, listings, pins, failures)

    def keep(self, fingerprint: str, server: str, listing: Listing) -> None:
        """See `ListingStore.keep`."""
        now, text = self._wall(), encode(listing)
        with self._database.transaction() as connection:
            query = "SELECT listing FROM listings WHERE fingerprint = %s"
            old = connection.execute(query, (fingerprint,)).fetchone()
            if old and old[0] != text:
                connection.cursor().executemany(
                    "INSERT INTO former VALUES (%s, %s) ON CONFLICT DO NOTHING",
                    [*former_definitions(old[0], listing)],
                )
            connection.execute(
                "INSERT INTO listings VALUES (%s, %s, %s, %s, %s) ON CONFLICT (fingerprint) "
                "DO UPDATE SET server = excluded.server, listed_at = excluded.listed_at, "
                "used_at = excluded.used_at, listing = excluded.listing",
                (fingerprint, server, now, now, text),
            )
            connection.execute("DELETE FROM failures WHERE fingerprint = %s", (fingerprint,))
        if old is None:
            # Processes too short-lived to sweep must not fill the tables with new configurations.
            self.sweep()

    def note_failure(self, fingerprint: str, detail: str) -> None:
        """See `ListingStore.note_failure`."""
        query = (
            "INSERT INTO failures VALUES (%s, %s, %s) ON CONFLICT (fingerprint) "
            "DO UPDATE SET failed_at = excluded.failed_at, detail = excluded.detail"
        )
        self._database.write(query, (fingerprint, self._wall(), detail))

    def forget(self, fingerprint: str) -> None:
        """See `ListingStore.forget`."""
        self._database.write("DELETE FROM listings WHERE fingerprint = %s", (fingerprint,))

    def sweep(self) -> None:
        """See `ListingStore.sweep`."""
        self._record_use()
        with self._database.transaction() as connection:
            long_ago = (self._wall() - KEEP_S,)
            connection.execute("DELETE FROM listings WHERE used_at < %s", long_ago)
            connection.execute("DELETE FROM failures WHERE failed_at < %s", long_ago)
            connection.execute("DELETE FROM former WHERE digest NOT IN (SELECT approved FROM pins)")

    def _record_use(self) -> None:
        used, self._used = self._used, {}
        rows = [(now, fingerprint) for fingerprint, now in sorted(used.items())]
        self._database.write("UPDATE listings SET used_at = %s WHERE fingerprint = %s", *rows)

    def bind(self, owner: str, holders: Mapping[str, str]) -> None:
        """See `ListingStore.bind`."""
        now = self._wall()
        with self._database.transaction() as connection:
            connection.cursor().executemany(
                "INSERT INTO pins VALUES (%s, %s, %s, %s) "
                "ON CONFLICT (owner, name) DO UPDATE SET seen = excluded.seen",
                [(owner, name, value, value) for name, value in sorted(holders.items())],
            )
            connection.cursor().executemany(
                "INSERT INTO first_seen VALUES (%s, %s, %s) ON CONFLICT DO NOTHING",
                [(owner, value, now) for value in sorted({*holders.values()})],
            )

    def approve(self, owner: str, names: Sequence[str], *, seen: str = "") -> None:
        """See `ListingStore.approve`."""
        query = (
            "UPDATE pins SET approved = seen WHERE owner = %s AND name = %s AND %s IN ('', seen)"
        )
        self._database.write(query, *((owner, name, seen) for name in sorted({*names})))

    def definition(self, digest: str) -> ToolDefinition | None:
        """See `ListingStore.definition`."""
        with self._database.reading() as connection:
            query = "SELECT definition FROM former WHERE digest = %s"
            former_row = connection.execute(query, (digest,)).fetchone() or (None,)
            query = "SELECT listing FROM listings WHERE strpos(listing, %s) > 0"
            texts = [text for (text,) in connection.execute(query, (digest,))]
        return find_definition(digest, former_row[0], texts)

    def first_seen(self, owner: str) -> Mapping[str, float]:
        """See `ListingStore.first_seen`."""
        query = "SELECT value, at FROM first_seen WHERE owner = %s"
        return dict(self._database.rows(query, (owner,)))

    def close(self) -> None:
        """See `ListingStore.close`."""
        if self._used:
            # A store that fails must not keep a gateway from closing.
            with suppress(StoreError):
                self._record_use()
        self._database.close()
