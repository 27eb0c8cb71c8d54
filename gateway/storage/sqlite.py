"""Databases in SQLite files.

* The files are in WAL mode. One thread writes at a time. Each reader has its own connection, and
  does not wait for writers. Several processes may share a file.
* The version of a file is its ``PRAGMA user_version``. An older file is migrated in one
  transaction. A newer file is refused and left unchanged.
* A corrupt file is renamed (``….corrupt-N``) and replaced by an empty one. A file that was removed
  or replaced by a user is opened again.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import sqlite3
import threading
from collections.abc import Iterator, Mapping
from functools import cache, partial
from itertools import count
from pathlib import Path
from typing import Any
from weakref import WeakSet

from gateway.errors import StoreError
from gateway.runtime.atomic_file import make_private_file
from gateway.runtime.retry import retry_while_locked
from gateway.storage.database import Database, Row, Schema, Values
from gateway.storage.vectors import VECTORS, SqlVectorStore

BUSY_S = 10.0
"""Maximum wait for a file that another process has locked, in seconds."""
_PAUSE_S = 0.005

_FileId = tuple[int, int]

_WORDS = {"strpos(": "instr(", "trunc(": "(0 | ", " FOR UPDATE": "", "TRUNCATE ": "DELETE FROM "}
"""Words of PostgreSQL's dialect, and their replacements for SQLite. A transaction in SQLite locks
the whole file."""
_ANY = re.compile(r"= ANY\((\?|:\w+)\)")


@cache
def _to_sqlite(statement: str) -> str:
    for word, replacement in _WORDS.items():
        statement = statement.replace(word, replacement)
    return _ANY.sub(r"IN (SELECT value FROM json_each(\1))", statement)


def _encode_lists(values: Values) -> Any:
    plain = values.items() if isinstance(values, Mapping) else enumerate(values)
    encoded = {key: json.dumps(value) if isinstance(value, list) else value for key, value in plain}
    return encoded if isinstance(values, Mapping) else [*encoded.values()]


class Connection(sqlite3.Connection):
    """A `Session` in a SQLite file."""

    def rows(self, statement: str, values: Values = ()) -> list[Row]:
        """Return the rows of a query."""
        return [*self.each(statement, values)]

    def each(self, statement: str, values: Values = ()) -> Iterator[Row]:
        """Yield the rows of a query."""
        return self.execute(_to_sqlite(statement), _encode_lists(values))

    def write(self, statement: str, *rows: Values) -> int:
        """Execute a statement for each of *rows*. Return the number of changed rows."""
        return self.executemany(_to_sqlite(statement), rows).rowcount

    def insert(self, statement: str, values: Values) -> int:
        """Insert one row, and return its id."""
        return self.execute(_to_sqlite(statement), values).lastrowid or 0

    def hold(self, *names: str) -> None:
        """Do nothing, because a transaction locks the whole file."""

    def skip_flush(self) -> None:
        """Do nothing, because `Schema.is_durable` applies to the whole file."""


class _NewerError(sqlite3.DatabaseError):
    pass


class SqliteDatabase(Database):
    """A SQLite file, created with its folder when first needed. Safe from any thread.

    *busy_s* is the maximum wait for locks of other processes, in seconds.
    """

    def __init__(self, path: Path, schema: Schema, *, busy_s: float = BUSY_S) -> None:
        self.path = path
        self.place = str(path)
        self.label = f"{schema.what} {path.name!r}"
        self._schema = schema
        self._busy_s = busy_s
        self._write_lock = threading.RLock()
        self._writer: Connection | None = None
        self._writer_file: _FileId | None = None
        """Id of the writer's open file. Another file may have replaced it at this path."""
        self._reader_lock = threading.Lock()
        self._reader: tuple[Connection, _FileId | None] | None = None
        """An idle reader, kept because opening one takes longer than most reads."""
        self._closings = 0
        _DATABASES.add(self)

    @contextlib.contextmanager
    def reading(self) -> Iterator[Connection]:
        """Begin a read transaction. All its queries see the same state of the file.

        Raises:
            StoreError: If the file cannot be read; ``rebuilt`` is True if it was corrupt and
                replaced.
        """
        file, closings = _file_id(self.path), self._closings
        with self._errors(file):
            reader = self._take_reader(file)
            try:
                with reader:
                    reader.execute("BEGIN")
                    yield reader
            finally:
                self._release(reader, file, closings)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Begin a write transaction, the only one among all threads and processes.

        Either all its changes are written, or none.

        Raises:
            StoreError: As for `reading`, or if the file cannot be written.
        """
        with self._write_lock:
            file = _file_id(self.path)
            with self._errors(file), self._open_writer(file) as connection:
                connection.execute("BEGIN IMMEDIATE")
                yield connection

    def is_made(self) -> bool:
        """Return True if the file exists and is not empty."""
        return self.path.exists() and self.path.stat().st_size > 0

    def is_away(self, _error: StoreError, /) -> bool:
        """Return False, because errors of a local file do not pass by themselves."""
        return False

    def size(self, _table: str, /) -> int:
        """Return the size of the file in bytes, or 0 if it does not exist."""
        return self.path.stat().st_size if self.path.is_file() else 0

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        with self._write_lock, self._reader_lock:
            self._closings += 1
            if self._writer is not None:
                self._writer.close()
            if self._reader is not None:
                self._reader[0].close()
            self._writer = self._reader = None

    def _take_reader(self, file: _FileId | None) -> Connection:
        with self._reader_lock:
            idle, self._reader = self._reader, None
        if idle is not None:
            if idle[1] == file:
                return idle[0]
            idle[0].close()
        reader = self._connect() if file is not None else None
        if reader is None or self._version(reader) < len(self._schema.steps):
            if reader is not None:
                reader.close()
            with self._write_lock:
                self._open_writer(file)
            reader = self._connect()
        reader.execute("PRAGMA query_only = ON")
        return reader

    def _release(self, reader: Connection, file: _FileId | None, closings: int) -> None:
        with self._reader_lock:
            if self._reader is None and closings == self._closings:
                self._reader = reader, file
                return
        reader.close()

    def _open_writer(self, file: _FileId | None) -> Connection:
        if self._writer is not None and self._writer_file != file:
            self.close()
        if self._writer is None:
            self._writer = self._connect()
            self._writer_file = _file_id(self.path)
            self._migrate(self._writer)
        return self._writer

    def _connect(self) -> Connection:
        # SQLite creates its additional files with the permissions of this one.
        make_private_file(self.path)
        connection = sqlite3.connect(
            self.path,
            timeout=self._busy_s,
            isolation_level=None,
            check_same_thread=False,
            factory=Connection,
        )
        try:
            self._version(connection)
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    def _version(self, connection: Connection) -> int:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version > len(self._schema.steps):
            raise _NewerError(
                f"its tables were created by a newer version of this package (step {version}, "
                f"this version knows {len(self._schema.steps)}): update this package, or use "
                "another file"
            )
        return int(version)

    def _migrate(self, connection: Connection) -> None:
        self._switch_to_wal(connection)
        level = "FULL" if self._schema.is_durable else "NORMAL"
        connection.execute(f"PRAGMA synchronous = {level}")
        if self._schema.is_erased:
            connection.execute("PRAGMA secure_delete = ON")
        if self._version(connection) == len(self._schema.steps):
            return
        with connection:
            connection.execute("BEGIN IMMEDIATE")
            # Another process may have migrated the file since it was opened.
            for step in self._schema.steps[self._version(connection) :]:
                for statement in step:
                    connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {len(self._schema.steps)}")

    def _switch_to_wal(self, connection: Connection) -> None:
        """Switch the file to WAL mode, several times if two processes create it at once."""
        switch = partial(connection.execute, "PRAGMA journal_mode = WAL")
        try:
            switch()
        except sqlite3.OperationalError as error:
            if not _is_busy(error):
                raise
            retry_while_locked(switch, _is_busy, pause_s=_PAUSE_S, max_s=self._busy_s)

    @contextlib.contextmanager
    def _errors(self, file: _FileId | None) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError, UnicodeError) as error:
            with self._write_lock:
                self.close()
                if _code(error) not in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}:
                    raise StoreError(f"{self.label}: {error}") from error
                outcome = self._set_aside(file)
            raise StoreError(f"{self.label} was corrupt: {outcome}", rebuilt=True) from error

    def _set_aside(self, file: _FileId | None) -> str:
        """Rename the corrupt *file* and its write-ahead log, unless another process already did.

        Return the outcome, for the error message.
        """
        if _file_id(self.path) != file:
            return "another process has renamed it"
        try:
            places = (_with_suffix(self.path, f".corrupt-{number}") for number in count(1))
            aside = next(place for place in places if not place.exists())
            self.path.rename(aside)
            _with_suffix(self.path, "-shm").unlink(missing_ok=True)
            if _with_suffix(self.path, "-wal").exists():
                _with_suffix(self.path, "-wal").rename(_with_suffix(aside, "-wal"))
        except OSError as error:
            raise StoreError(
                f"{self.label} is corrupt, and its file could not be renamed: {error}"
            ) from error
        return f"it was renamed to {aside.name!r}"


_DATABASES = WeakSet[SqliteDatabase]()


def _close_before_fork() -> None:
    """Close all files, because a child process must not use or close its parent's connections.

    Otherwise the child's writes can be lost (sqlite.org/howtocorrupt.html, 2.6).
    """
    for database in tuple(_DATABASES):
        database.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_close_before_fork)


def _with_suffix(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _file_id(path: Path) -> _FileId | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _is_busy(error: BaseException) -> bool:
    return _code(error) == sqlite3.SQLITE_BUSY


def _code(error: BaseException) -> int | None:
    """Return SQLite's primary error code without the extended bits; None for other errors."""
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


class SqliteVectorStore(SqlVectorStore):
    """A `VectorStore` in one SQLite file, created with its folder when first needed."""

    def __init__(self, path: Path) -> None:
        super().__init__(SqliteDatabase(path, VECTORS))
