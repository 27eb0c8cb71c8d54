"""Rows of programs in PostgreSQL; see `gateway.programs.store.ProgramStore`."""

from __future__ import annotations

import time
from collections.abc import Mapping

from gateway.runtime.cache import Clock
from gateway.storage.postgres_database import PostgresDatabase


class PostgresPrograms:
    """`ProgramStore` in one schema.

    Args:
        database: Where the table is.
        wall: Seconds since the epoch.
    """

    def __init__(self, database: PostgresDatabase, *, wall: Clock = time.time) -> None:
        self._database = database
        self._wall = wall

    def put(self, key: str, row: str, *, keep_s: float, most: int) -> None:
        """See `ProgramStore.put`."""
        now = self._wall()
        self._database.write("DELETE FROM programs WHERE at < %s", (now - keep_s,))
        self._database.write("INSERT INTO programs VALUES (%s, %s, %s)", (key, now, row))
        if owner := key.rpartition(".")[0]:
            query = """DELETE FROM programs WHERE key IN (SELECT key FROM programs
            WHERE starts_with(key, %s) ORDER BY at DESC, key OFFSET %s)"""
            self._database.write(query, (f"{owner}.", most))

    def read(self, key: str) -> str | None:
        """See `ProgramStore.read`."""
        found = self._database.rows("SELECT row FROM programs WHERE key = %s", (key,))
        return str(found[0][0]) if found else None

    def replace(self, key: str, old: str, new: str) -> bool:
        """See `ProgramStore.replace`."""
        query = "UPDATE programs SET row = %s WHERE key = %s AND row = %s"
        return self._database.write(query, (new, key, old)) > 0

    def take(self, key: str) -> str | None:
        """See `ProgramStore.take`."""
        with self._database.transaction() as connection:
            query = "DELETE FROM programs WHERE key = %s RETURNING row"
            row = connection.execute(query, (key,)).fetchone()
        return None if row is None else str(row[0])

    def rows(self) -> Mapping[str, str]:
        """See `ProgramStore.rows`."""
        return dict(self._database.rows("SELECT key, row FROM programs ORDER BY at, key"))
