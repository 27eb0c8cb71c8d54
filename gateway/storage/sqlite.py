"""SQLite files: what outlives a process. The one home of sqlite3.

* WAL. One thread writes at a time, over one connection; readers have connections of their own
  and wait for no writer. Several processes may share a file.
* A file knows its version (``PRAGMA user_version``). An older one is brought up in one
  transaction and keeps what it holds; a newer one is refused and left as it is.
* A file that is not a database any more is set aside (``….corrupt-N``) and begun anew: a broken
  store is never fatal. So is one that somebody took away or replaced.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from gateway.errors import StoreError
from gateway.mcp.retry import retry_while_locked
from gateway.runtime.vectors import Vector
from gateway.storage.migrations import VECTORS, Schema

Connection = sqlite3.Connection
BUSY_S = 10.0
"""How long others may hold a file before whoever waits for it gives up."""
_CHUNK = 500
"""Keys in one query: below SQLite's limit on variables in every build."""
_READERS = 8
"""Reading connections at most; one more reader waits for one of them."""
_PAUSE_S = 0.005


_File = tuple[int, int]


@dataclass(frozen=True, slots=True)
class _Open:
    connection: Connection
    version: int
    """Of the file, when it was opened."""
    file: _File | None
    """What it has open, whatever stands at the path by now."""
    age: int


class _NewerError(sqlite3.DatabaseError):
    pass


class Database:
    """One file, made when first needed. Safe from any thread.

    Args:
        path: The file; its folder is made too.
        schema: Its tables.
        busy_s: How long other processes may hold it.
    """

    def __init__(self, path: Path, schema: Schema, *, busy_s: float = BUSY_S) -> None:
        self.path = path
        self._schema = schema
        self._busy_s = busy_s
        self._label = f"{schema.what} {path.name!r}"
        self._writing = threading.RLock()
        self._writer: _Open | None = None
        self._room = threading.Semaphore(_READERS)
        self._pool = threading.Lock()
        self._idle: list[_Open] = []
        self._age = 0
        """How often everything was dropped: what is older is not used again."""

    @contextlib.contextmanager
    def reading(self) -> Iterator[Connection]:
        """Read the file as it is at one moment, whatever is written meanwhile.

        Raises:
            StoreError: It cannot be read; ``rebuilt`` if it was corrupt.
        """
        file = _file_at(self.path)
        with self._errors(file), self._room:
            reader = self._reader(file)
            try:
                with reader.connection as connection:
                    connection.execute("BEGIN")
                    yield connection
            finally:
                self._release(reader)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Hold the file, alone among all threads and processes: all is written, or nothing.

        Raises:
            StoreError: It cannot be read or written; ``rebuilt`` if it was corrupt.
        """
        with self._writing:
            file = _file_at(self.path)
            with self._errors(file), self._opened(file).connection as connection:
                connection.execute("BEGIN IMMEDIATE")
                yield connection

    def close(self) -> None:
        """Close the file, once its readers are done; the next use opens it again."""
        with self._writing:
            self._drop()

    def _opened(self, file: _File | None) -> _Open:
        with self._writing:
            if self._writer is not None and self._writer.file != file:
                self._drop()
            if self._writer is None:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self._writer = self._connected()
                self._brought_up(self._writer)
            return self._writer

    def _reader(self, file: _File | None) -> _Open:
        with self._pool:
            while self._idle:
                reader = self._idle.pop()
                if reader.file == file:
                    return reader
                reader.connection.close()
        if file is None:
            self._opened(file)
        reader = self._connected()
        if reader.version < self._schema.version:
            reader.connection.close()
            self._opened(reader.file)
            reader = self._connected()
        reader.connection.execute("PRAGMA query_only = ON")
        return reader

    def _connected(self) -> _Open:
        age = self._age
        connection = sqlite3.connect(
            self.path, timeout=self._busy_s, isolation_level=None, check_same_thread=False
        )
        try:
            version = self._version(connection)
        except sqlite3.Error:
            connection.close()
            raise
        return _Open(connection, version, _file_at(self.path), age)

    def _version(self, connection: Connection) -> int:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version > self._schema.version:
            raise _NewerError(
                f"a newer version of this package made its tables ({version}, where this one knows "
                f"{self._schema.version}): update this one, or give it another place"
            )
        return int(version)

    def _brought_up(self, writer: _Open) -> None:
        connection, schema = writer.connection, self._schema
        self._in_wal(connection)
        connection.execute("PRAGMA synchronous = NORMAL")
        if writer.version == schema.version:
            return
        with connection:
            connection.execute("BEGIN IMMEDIATE")
            # Another process may have been here since the file was opened.
            for step in schema.steps[self._version(connection) :]:
                for statement in step:
                    connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {schema.version}")

    def _in_wal(self, connection: Connection) -> None:
        """Switch to WAL. Of two that make a file at once, SQLite fails one instead of waiting."""
        switch = partial(connection.execute, "PRAGMA journal_mode = WAL")
        try:
            switch()
        except sqlite3.OperationalError as error:
            if not _busy(error):
                raise
            retry_while_locked(switch, _busy, pause_s=_PAUSE_S, max_s=self._busy_s)

    def _release(self, reader: _Open) -> None:
        with self._pool:
            if reader.age == self._age:
                self._idle.append(reader)
                return
        reader.connection.close()

    def _drop(self) -> None:
        with self._pool:
            self._age += 1
            dropped, self._idle = self._idle, []
        if self._writer is not None:
            dropped.append(self._writer)
            self._writer = None
        for connection in dropped:
            connection.connection.close()

    @contextlib.contextmanager
    def _errors(self, file: _File | None) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            with self._writing:
                self._drop()
                if _code(error) not in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}:
                    raise StoreError(f"{self._label}: {error}") from error
                outcome = self._set_aside(file)
            raise StoreError(f"{self._label} was corrupt: {outcome}", rebuilt=True) from error

    def _set_aside(self, file: _File | None) -> str:
        """Move *file* out of the way, with what was not yet written into it."""
        if _file_at(self.path) != file:
            return "another process has set it aside"
        number = 1
        try:
            while (aside := _beside(self.path, f".corrupt-{number}")).exists():
                number += 1
            self.path.rename(aside)
            _beside(self.path, "-shm").unlink(missing_ok=True)
            if _beside(self.path, "-wal").exists():
                _beside(self.path, "-wal").rename(_beside(aside, "-wal"))
        except OSError as error:
            raise StoreError(f"{self._label} is corrupt: {error}") from error
        return f"set aside as {aside.name!r}"


def database_of(file: Path | Database, schema: Schema) -> Database:
    """Return the database of a file, or the one that others have open already."""
    return file if isinstance(file, Database) else Database(file, schema)


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _file_at(path: Path) -> _File | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _busy(error: BaseException) -> bool:
    return _code(error) == sqlite3.SQLITE_BUSY


def _code(error: BaseException) -> int | None:
    """Return SQLite's primary code of *error*: the extended ones say where it happened."""
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


class SqliteVectorStore:
    """A `VectorStore` in one file, which is made when first needed.

    Args:
        path: The file; its folder is made too.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._database = Database(path, VECTORS)

    def get(self, model_id: str, keys: Sequence[str]) -> Mapping[str, Vector]:
        """Return those of *keys* that are kept and whole."""
        status: dict[str, Vector] = {}
        with self._database.reading() as connection:
            for start in range(0, len(keys), _CHUNK):
                part = keys[start : start + _CHUNK]
                marks = ",".join("?" * len(part))
                rows = connection.execute(
                    f"SELECT key, dimensions, row FROM vectors WHERE model_id = ? AND key IN ({marks})",  # noqa: S608, E501  (only question marks are put in)
                    (model_id, *part),
                )
                status.update(
                    {key: _vector(blob) for key, size, blob in rows if len(blob) == 4 * size}
                )
        return status

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
        with self._database.reading() as connection:
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
