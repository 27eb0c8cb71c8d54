"""Database table of programs."""

from __future__ import annotations

import time
from collections.abc import Mapping

from gateway.runtime.cache import Clock
from gateway.storage.database import Database, Schema

PROGRAMS = Schema(
    name="programs",
    what="store of programs",
    steps=(
        (
            """CREATE TABLE IF NOT EXISTS programs (key TEXT PRIMARY KEY, at REAL NOT NULL,
            row TEXT NOT NULL) WITHOUT ROWID""",
        ),
    ),
    postgres={
        4: (
            """CREATE TABLE programs (key text COLLATE "C" PRIMARY KEY,
            at double precision NOT NULL, row text NOT NULL)""",
        )
    },
)


class SqlPrograms:
    """A `gateway.plugins.programs.store.ProgramStore` in a database.

    Args:
        database: Database with the table `PROGRAMS`.
        wall: Clock in seconds since the epoch.
    """

    def __init__(self, database: Database, *, wall: Clock = time.time) -> None:
        self._database = database
        self._wall = wall

    def put(self, key: str, row: str, *, keep_s: float, most: int) -> None:
        """Store *row*, as `ProgramStore.put` does."""
        now = self._wall()
        # Separate statements, because two writers that delete the same rows could deadlock.
        self._database.write("DELETE FROM programs WHERE at < ?", (now - keep_s,))
        self._database.write(
            """INSERT INTO programs VALUES (?, ?, ?)
            ON CONFLICT (key) DO UPDATE SET at = excluded.at, row = excluded.row""",
            (key, now, row),
        )
        if owner := key.rpartition(".")[0]:
            # The character after a point is a slash, so this range contains all keys of an owner.
            bound = {"first": f"{owner}.", "end": f"{owner}/", "most": most}
            query = """DELETE FROM programs WHERE key >= :first AND key < :end
                AND key NOT IN (SELECT key FROM programs WHERE key >= :first AND key < :end
                ORDER BY at DESC, key LIMIT :most)"""
            self._database.write(query, bound)

    def read(self, key: str) -> str | None:
        """Return the row under *key*, without creating the database file."""
        if not self._database.is_made():
            return None
        rows = self._database.rows("SELECT row FROM programs WHERE key = ?", (key,))
        return str(rows[0][0]) if rows else None

    def replace(self, key: str, old: str, new: str) -> bool:
        """Replace the row *old* by *new*, as `ProgramStore.replace` does."""
        query = "UPDATE programs SET row = ? WHERE key = ? AND row = ?"
        return self._database.write(query, (new, key, old)) > 0

    def take(self, key: str) -> str | None:
        """Delete the row under *key* and return it, as `ProgramStore.take` does."""
        with self._database.transaction() as session:
            rows = session.rows("SELECT row FROM programs WHERE key = ? FOR UPDATE", (key,))
            session.write("DELETE FROM programs WHERE key = ?", (key,))
        return str(rows[0][0]) if rows else None

    def rows(self) -> Mapping[str, str]:
        """Return all rows by key, without creating the database file."""
        if not self._database.is_made():
            return {}
        return dict(self._database.rows("SELECT key, row FROM programs ORDER BY at, key"))

    def close(self) -> None:
        """Close the database. The next use opens it again."""
        self._database.close()
