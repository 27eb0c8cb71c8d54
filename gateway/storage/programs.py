"""Rows of programs in a SQLite file; see `gateway.programs.store.ProgramStore`."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

from gateway.runtime.cache import Clock
from gateway.storage.sqlite import Database, Schema

PROGRAMS = Schema(
    what="store of programs",
    steps=(
        (
            """CREATE TABLE IF NOT EXISTS programs (key TEXT PRIMARY KEY, at REAL NOT NULL,
            row TEXT NOT NULL) WITHOUT ROWID""",
        ),
    ),
)


class SqlitePrograms:
    """`ProgramStore` in one file, which only its owner can read.

    Args:
        path: The file; it is made when first needed.
        wall: Seconds since the epoch.
    """

    def __init__(self, path: Path, *, wall: Clock = time.time) -> None:
        self._database = Database(path, PROGRAMS)
        self._wall = wall

    def put(self, key: str, row: str, *, keep_s: float, most: int) -> None:
        """See `ProgramStore.put`."""
        now = self._wall()
        with self._database.transaction() as connection:
            connection.execute("DELETE FROM programs WHERE at < ?", (now - keep_s,))
            connection.execute("INSERT OR REPLACE INTO programs VALUES (?, ?, ?)", (key, now, row))
            if owner := key.rpartition(".")[0]:
                query = """DELETE FROM programs WHERE key IN (SELECT key FROM programs
                WHERE key GLOB ? ORDER BY at DESC, key LIMIT -1 OFFSET ?)"""
                connection.execute(query, (f"{owner}.*", most))

    def read(self, key: str) -> str | None:
        """See `ProgramStore.read`."""
        if not self._database.path.exists():
            return None
        query = "SELECT row FROM programs WHERE key = ?"
        with self._database.reading() as connection:
            row = connection.execute(query, (key,)).fetchone()
        return None if row is None else str(row[0])

    def replace(self, key: str, old: str, new: str) -> bool:
        """See `ProgramStore.replace`."""
        query = "UPDATE programs SET row = ? WHERE key = ? AND row = ?"
        with self._database.transaction() as connection:
            return connection.execute(query, (new, key, old)).rowcount > 0

    def take(self, key: str) -> str | None:
        """See `ProgramStore.take`."""
        with self._database.transaction() as connection:
            row = connection.execute("SELECT row FROM programs WHERE key = ?", (key,)).fetchone()
            connection.execute("DELETE FROM programs WHERE key = ?", (key,))
        return None if row is None else str(row[0])

    def rows(self) -> Mapping[str, str]:
        """See `ProgramStore.rows`; no file is made for it."""
        if not self._database.path.exists():
            return {}
        with self._database.reading() as connection:
            return dict(connection.execute("SELECT key, row FROM programs ORDER BY at, key"))

    def close(self) -> None:
        """Let go of the file."""
        self._database.close()
