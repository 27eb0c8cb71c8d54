"""SQLite files: what outlives a process. The one home of sqlite3.

* WAL. One thread writes at a time, over one connection; each reader has a connection of its own
  and waits for no writer. Several processes may share a file.
* A file knows its version (``PRAGMA user_version``). An older one is brought up in one
  transaction and keeps what it holds; a newer one is refused and left as it is.
* A file that is not a database any more is set aside (``….corrupt-N``) and begun anew: a broken
  store is never fatal. So is one that somebody took away or replaced.
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
"""How long others may hold a file before whoever waits for it gives up."""
_PAUSE_S = 0.005

_File = tuple[int, int]

_WORDS = {"strpos(": "instr(", "trunc(": "(0 | ", " FOR UPDATE": "", "TRUNCATE ": "DELETE FROM "}
"""Words of PostgreSQL in a statement, and those of SQLite; a transaction has the whole file."""
_ANY = re.compile(r"= ANY\((\?|:\w+)\)")


@cache
def _own(statement: str) -> str:
    """Return *statement* in SQLite's words."""
    for word, own in _WORDS.items():
        statement = statement.replace(word, own)
    return _ANY.sub(r"IN (SELECT value FROM json_each(\1))", statement)


def _bound(values: Values) -> Any:
    """Return *values* with each list as JSON."""
    plain = values.items() if isinstance(values, Mapping) else enumerate(values)
    bound = {key: json.dumps(each) if isinstance(each, list) else each for key, each in plain}
    return bound if isinstance(values, Mapping) else [*bound.values()]


class Connection(sqlite3.Connection):
    """A `Session` in a SQLite file."""

    def rows(self, statement: str, values: Values = ()) -> list[Row]:
        """See `Session.rows`."""
        return [*self.each(statement, values)]

    def each(self, statement: str, values: Values = ()) -> Iterator[Row]:
        """See `Session.each`."""
        return self.execute(_own(statement), _bound(values))

    def write(self, statement: str, *rows: Values) -> int:
        """See `Session.write`."""
        return self.executemany(_own(statement), rows).rowcount

    def insert(self, statement: str, values: Values) -> int:
        """See `Session.insert`."""
        return self.execute(_own(statement), values).lastrowid or 0

    def hold(self, *names: str) -> None:
        """See `Session.hold`; a transaction has the whole file."""

    def skip_flush(self) -> None:
        """See `Session.skip_flush`; `Schema.is_durable` says it for the whole file."""


class _NewerError(sqlite3.DatabaseError):
    pass


class SqliteDatabase(Database):
    """One file, made when first needed. Safe from any thread.

    Args:
        path: The file; its folder is made too.
        schema: Its tables.
        busy_s: How long other processes may hold it.
    """

    def __init__(self, path: Path, schema: Schema, *, busy_s: float = BUSY_S) -> None:
        self.path = path
        self.place = str(path)
        self.label = f"{schema.what} {path.name!r}"
        self._schema = schema
        self._busy_s = busy_s
        self._writing = threading.RLock()
        self._writer: Connection | None = None
        self._written: _File | None = None
        """What the writer has open, whatever stands at the path by now."""
        self._resting = threading.Lock()
        self._reader: tuple[Connection, _File | None] | None = None
        """A reader that nobody uses just now: to open one takes longer than most reads."""
        self._closings = 0
        _DATABASES.add(self)

    @contextlib.contextmanager
    def reading(self) -> Iterator[Connection]:
        """Read the file as it is at one moment, whatever is written meanwhile.

        Raises:
            StoreError: It cannot be read; ``rebuilt`` if it was corrupt.
        """
        file, closings = _file_at(self.path), self._closings
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
        """Hold the file, alone among all threads and processes: all is written, or nothing.

        Raises:
            StoreError: It cannot be read or written; ``rebuilt`` if it was corrupt.
        """
        with self._writing:
            file = _file_at(self.path)
            with self._errors(file), self._open_writer(file) as connection:
                connection.execute("BEGIN IMMEDIATE")
                yield connection

    def is_made(self) -> bool:
        """See `Database.is_made`."""
        return self.path.exists() and self.path.stat().st_size > 0

    def is_away(self, _error: StoreError, /) -> bool:
        """See `Database.is_away`; a disk that is full stays full."""
        return False

    def size(self, _table: str, /) -> int:
        """Return how many bytes the file has; 0 without one, and none is made for it."""
        return self.path.stat().st_size if self.path.is_file() else 0

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        with self._writing, self._resting:
            self._closings += 1
            if self._writer is not None:
                self._writer.close()
            if self._reader is not None:
                self._reader[0].close()
            self._writer = self._reader = None

    def _take_reader(self, file: _File | None) -> Connection:
        with self._resting:
            resting, self._reader = self._reader, None
        if resting is not None:
            if resting[1] == file:
                return resting[0]
            resting[0].close()
        reader = self._connect() if file is not None else None
        if reader is None or self._version(reader) < len(self._schema.steps):
            if reader is not None:
                reader.close()
            with self._writing:
                self._open_writer(file)
            reader = self._connect()
        reader.execute("PRAGMA query_only = ON")
        return reader

    def _release(self, reader: Connection, file: _File | None, closings: int) -> None:
        with self._resting:
            if self._reader is None and closings == self._closings:
                self._reader = reader, file
                return
        reader.close()

    def _open_writer(self, file: _File | None) -> Connection:
        """Return the connection that writes to *file*; bring that up if it is older."""
        if self._writer is not None and self._written != file:
            self.close()
        if self._writer is None:
            self._writer = self._connect()
            self._written = _file_at(self.path)
            self._bring_up(self._writer)
        return self._writer

    def _connect(self) -> Connection:
        # SQLite gives its other files the permissions of this one.
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
                f"a newer version of this package made its tables ({version}, where this one knows "
                f"{len(self._schema.steps)}): update this one, or give it another place"
            )
        return int(version)

    def _bring_up(self, connection: Connection) -> None:
        self._switch_to_wal(connection)
        level = "FULL" if self._schema.is_durable else "NORMAL"
        connection.execute(f"PRAGMA synchronous = {level}")
        if self._schema.is_erased:
            connection.execute("PRAGMA secure_delete = ON")
        if self._version(connection) == len(self._schema.steps):
            return
        with connection:
            connection.execute("BEGIN IMMEDIATE")
            # Another process may have been here since the file was opened.
            for step in self._schema.steps[self._version(connection) :]:
                for statement in step:
                    connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {len(self._schema.steps)}")

    def _switch_to_wal(self, connection: Connection) -> None:
        """Switch to WAL. Of two that make a file at once, SQLite fails one instead of waiting."""
        switch = partial(connection.execute, "PRAGMA journal_mode = WAL")
        try:
            switch()
        except sqlite3.OperationalError as error:
            if not _is_busy(error):
                raise
            retry_while_locked(switch, _is_busy, pause_s=_PAUSE_S, max_s=self._busy_s)

    @contextlib.contextmanager
    def _errors(self, file: _File | None) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError, UnicodeError) as error:
            with self._writing:
                self.close()
                if _code(error) not in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}:
                    raise StoreError(f"{self.label}: {error}") from error
                outcome = self._set_aside(file)
            raise StoreError(f"{self.label} was corrupt: {outcome}", rebuilt=True) from error

    def _set_aside(self, file: _File | None) -> str:
        """Move *file* out of the way, with what was not yet written into it."""
        if _file_at(self.path) != file:
            return "another process has set it aside"
        try:
            places = (_beside(self.path, f".corrupt-{number}") for number in count(1))
            aside = next(place for place in places if not place.exists())
            self.path.rename(aside)
            _beside(self.path, "-shm").unlink(missing_ok=True)
            if _beside(self.path, "-wal").exists():
                _beside(self.path, "-wal").rename(_beside(aside, "-wal"))
        except OSError as error:
            raise StoreError(f"{self.label} is corrupt: {error}") from error
        return f"set aside as {aside.name!r}"


_DATABASES = WeakSet[SqliteDatabase]()


def _close_before_fork() -> None:
    """Close all files: a child must neither use nor close a connection of its parent's.

    What it writes is lost if SQLite takes the parent's locks for its own
    (sqlite.org/howtocorrupt.html, 2.6).
    """
    for database in tuple(_DATABASES):
        database.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_close_before_fork)


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _file_at(path: Path) -> _File | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _is_busy(error: BaseException) -> bool:
    return _code(error) == sqlite3.SQLITE_BUSY


def _code(error: BaseException) -> int | None:
    """Return SQLite's primary code of *error*: the extended ones say where it happened."""
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


class SqliteVectorStore(SqlVectorStore):
    """A `VectorStore` in one file, which is made when first needed.

    Args:
        path: The file; its folder is made too.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(SqliteDatabase(path, VECTORS))
