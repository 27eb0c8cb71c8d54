"""SQLite files: what outlives a process. The one home of sqlite3.

* WAL, one connection behind a lock; two processes may share a file.
* A file that is not a database any more is set aside (``….corrupt-N``) and begun anew: what it
  held can be made again, so a broken store is never fatal.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from gateway.errors import StoreError
from gateway.vectors import Vector

_SCHEMA = """
CREATE TABLE IF NOT EXISTS vectors (
    model_id TEXT NOT NULL,
    key TEXT NOT NULL,
    dimensions INTEGER NOT NULL,
    row BLOB NOT NULL,
    PRIMARY KEY (model_id, key)
) WITHOUT ROWID
"""
_SCHEMA_VERSION = 1
_CHUNK = 500
"""Keys in one query: below SQLite's limit on variables in every build."""


class Database:
    """One file, made when first needed.

    Args:
        path: The file; its folder is made too.
        schema: The statements that make its tables.
        what: What it is called in messages.
    """

    def __init__(self, path: Path, schema: str, *, what: str) -> None:
        self.path = path
        self._schema = schema
        self._what = what
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None

    @contextlib.contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Hold the file, alone among the threads of this process, for one transaction.

        Raises:
            StoreError: It cannot be read or written; ``rebuilt`` if it was corrupt.
        """
        with self._lock, self._errors():
            if self._connection is None:
                self._connection = _connect(self.path, self._schema)
            with self._connection as connection:
                yield connection

    def close(self) -> None:
        """Close the file; the next transaction opens it again."""
        with self._lock:
            self._drop()

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        told = f"{self._what} {self.path.name!r}"
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            self._drop()
            if not _corrupt(error):
                raise StoreError(f"{told}: {error}") from error
            try:
                aside = _set_aside(self.path)
            except OSError as fault:
                raise StoreError(f"{told} is corrupt: {fault}") from fault
            raise StoreError(
                f"{told} was corrupt: set aside as {aside.name!r}", rebuilt=True
            ) from error


class SqliteVectorStore:
    """A `VectorStore` in one file, which is made when first needed.

    Args:
        path: The file; its folder is made too.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._database = Database(path, _SCHEMA, what="vector store")

    def get(self, model_id: str, keys: Sequence[str]) -> Mapping[str, Vector]:
        """Give those of *keys* that are kept and whole."""
        found: dict[str, Vector] = {}
        with self._database.transaction() as connection:
            for start in range(0, len(keys), _CHUNK):
                part = keys[start : start + _CHUNK]
                marks = ",".join("?" * len(part))
                rows = connection.execute(
                    f"SELECT key, dimensions, row FROM vectors WHERE model_id = ? AND key IN ({marks})",  # noqa: S608, E501  (only question marks are put in)
                    (model_id, *part),
                )
                found.update(
                    {key: _vector(blob) for key, size, blob in rows if len(blob) == 4 * size}
                )
        return found

    def put(self, model_id: str, vectors: Mapping[str, Vector]) -> None:
        """Keep *vectors* in one transaction."""
        rows = [
            (model_id, key, row.shape[0], np.asarray(row, dtype="<f4").tobytes())
            for key, row in vectors.items()
        ]
        with self._database.transaction() as connection:
            connection.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?, ?)", rows)

    def count(self) -> int:
        """How many vectors the file keeps, of all models."""
        with self._database.transaction() as connection:
            (count,) = connection.execute("SELECT count(*) FROM vectors").fetchone()
        return int(count)

    def clear(self) -> None:
        """Forget every vector of every model."""
        with self._database.transaction() as connection:
            connection.execute("DELETE FROM vectors")

    def close(self) -> None:
        """Close the file; the next call opens it again."""
        self._database.close()


def _vector(blob: bytes) -> Vector:
    return np.frombuffer(blob, dtype="<f4").astype(np.float32)


def _connect(path: Path, schema: str) -> sqlite3.Connection:
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path, timeout=10.0, check_same_thread=False)
    try:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version not in (0, _SCHEMA_VERSION):
            raise sqlite3.DatabaseError(f"unknown schema version {version}")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.executescript(schema)
        connection.execute(f"PRAGMA user_version = {_SCHEMA_VERSION}")
        connection.commit()
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _corrupt(error: Exception) -> bool:
    codes = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
    return getattr(error, "sqlite_errorcode", None) in codes or "schema version" in str(error)


def _set_aside(path: Path) -> Path:
    number = 1
    while (aside := path.with_name(f"{path.name}.corrupt-{number}")).exists():
        number += 1
    path.rename(aside)
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    return aside
