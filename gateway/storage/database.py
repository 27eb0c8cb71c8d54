"""Protocols of databases, with one SQL dialect for SQLite and PostgreSQL.

Statements are written for PostgreSQL. Values are ``?`` or ``:name``, and lists are values of ``=
ANY(?)``. Each database translates the few words that differ. Statements do not use ``RETURNING`` or
``FILTER``, because old releases of SQLite lack them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, LiteralString, Protocol, TypeAlias

from gateway.errors import StoreError

Values: TypeAlias = Sequence[object] | Mapping[str, object]
"""Values of one statement, by position or by name."""
Row: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """Tables of one feature, with the migration steps that create them.

    A released step is never changed. Steps keep the users' data, and drop only data that can be
    computed again.
    """

    name: str
    """Unique name of the group of tables in a store, and of its SQLite file."""
    what: str
    """Description of the file in messages."""
    steps: tuple[tuple[str, ...], ...] = ()
    """Statements of each migration step in a SQLite file, oldest first.

    A file of version n has applied the first n steps. Tables may exist before their step, in files
    that are older than the steps.
    """
    postgres: Mapping[int, Sequence[LiteralString]] = field(default_factory=dict)
    """Statements of each migration step in PostgreSQL, keyed by an increasing number.

    Numbers up to 5 are from version 0.2, in which all tables shared them. Sorted text columns
    compare by code points, as Python does.
    """
    is_durable: bool = False
    """True if a write to a SQLite file survives a loss of power."""
    is_erased: bool = False
    """True if a SQLite file overwrites the bytes of deleted rows."""


class Session(Protocol):
    """One connection within a transaction."""

    def rows(self, statement: LiteralString, values: Values = ()) -> list[Row]:
        """Return the rows of a query."""

    def each(self, statement: LiteralString, values: Values = ()) -> Iterator[Row]:
        """Yield the rows of a query with possibly many rows."""

    def write(self, statement: LiteralString, *rows: Values) -> int:
        """Execute a statement for each of *rows*. Return the number of changed rows."""

    def insert(self, statement: LiteralString, values: Values) -> int:
        """Insert one row, and return its id."""

    def hold(self, *names: str) -> None:
        """Lock *names* until the end of the transaction. Other sessions that lock one of them
        wait.
        """

    def skip_flush(self) -> None:
        """Commit without waiting for the disk; a loss of power may undo this transaction."""


class Database(Protocol):
    """Tables of one or more `Schema`, created when first needed. Safe from any thread.

    Each method may raise `StoreError`.
    """

    place: str
    """Path or address, without secrets."""
    label: str
    """Name of the database in messages."""

    @abstractmethod
    def reading(self) -> AbstractContextManager[Session]:
        """Begin a read transaction, which sees one state of the tables."""

    @abstractmethod
    def transaction(self) -> AbstractContextManager[Session]:
        """Begin a write transaction, which writes everything or nothing."""

    def rows(self, statement: LiteralString, values: Values = ()) -> list[Row]:
        """Return the rows of a query."""
        with self.reading() as session:
            return session.rows(statement, values)

    def write(self, statement: LiteralString, *rows: Values) -> int:
        """Execute a statement for each of *rows*. Return the number of changed rows."""
        with self.transaction() as session:
            return session.write(statement, *rows)

    @abstractmethod
    def is_made(self) -> bool:
        """Return False if the database was never written, so that a reader does not have to create
        it.
        """

    @abstractmethod
    def is_away(self, error: StoreError, /) -> bool:
        """Return True if *error* means that the database is temporarily unreachable."""

    @abstractmethod
    def size(self, table: str, /) -> int:
        """Return the size of *table* in bytes."""

    @abstractmethod
    def close(self) -> None:
        """Close all connections; the next use opens new ones."""


class LockingDatabase(Database, Protocol):
    """A `Database` with locks between processes."""

    @abstractmethod
    def lock(self, name: str) -> AbstractContextManager[None]:
        """Acquire the lock *name*; other processes that request it wait.

        The lock ends with its connection, so a killed process cannot block others.
        """
