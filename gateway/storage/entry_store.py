"""Entries in one SQLite file."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from gateway.catalog.entries import Entry, decode_entries, encode_entry
from gateway.storage.migrations import CATALOG
from gateway.storage.sqlite import Database, database_of


class SqliteEntries:
    """`Entries` in one SQLite file, which is made when the first entry is put.

    Args:
        file: The file; its folder is made too.
    """

    def __init__(self, file: Path | Database) -> None:
        self._database = database_of(file, CATALOG)

    def rows(self) -> Mapping[str, str]:
        """See `Entries.rows`."""
        if not self._database.path.exists():
            return {}
        with self._database.reading() as connection:
            return dict(connection.execute("SELECT id, entry FROM entries"))

    def ids(self) -> Collection[str]:
        """See `Entries.ids`."""
        if not self._database.path.exists():
            return ()
        with self._database.reading() as connection:
            return [key for (key,) in connection.execute("SELECT id FROM entries")]

    def entries(self) -> Sequence[Entry]:
        """See `Entries.entries`."""
        return decode_entries(self.rows())

    def put(self, entries: Sequence[Entry]) -> None:
        """See `Entries.put`."""
        rows = [(entry.id, encode_entry(entry)) for entry in entries]
        with self._database.transaction() as connection:
            connection.executemany("INSERT OR REPLACE INTO entries VALUES (?, ?)", rows)

    def remove(self, key: str) -> bool:
        """See `Entries.remove`."""
        with self._database.transaction() as connection:
            return connection.execute("DELETE FROM entries WHERE id = ?", (key,)).rowcount > 0

    def close(self) -> None:
        """See `Entries.close`."""
        self._database.close()
