"""Protocols of databases, and the one SQL dialect for SQLite and PostgreSQL.

Statements are written for PostgreSQL, with ``?`` or ``:name`` for a value, and ``= ANY(?)`` for a
list. They do not use ``RETURNING`` or ``FILTER``, because old releases of SQLite lack them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, LiteralString, Protocol, TypeAlias

from gateway.errors import StoreError

Values: TypeAlias = Sequence[object] | Mapping[str, object]
"""Values for the placeholders of one statement, by position or by name."""
Row: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """Tables of one feature, with the migration steps that create them.

    A released step is never changed. Steps keep the users' data.
    """

    name: str
    """Unique name of the group of tables in a store, and of its SQLite file."""
    what: str
    """Description of the database file in messages."""
    steps: tuple[tuple[str, ...], ...] = ()
    """Statements of each migration step in a SQLite file, oldest first.

    A file of version n has applied the first n steps. Tables may exist before their step."""
    postgres: Mapping[int, Sequence[LiteralString]] = field(default_factory=dict)
    """Statements of each migration step in PostgreSQL, keyed by an increasing number.

    Steps up to 5 are from version 0.2, in which all groups of tables shared one numbering. Sorted
    text columns use ``COLLATE "C"``, so that they compare by code points, as in Python."""
    is_durable: bool = False
    """True if a write to a SQLite file survives a loss of power."""
    is_erased: bool = False
    """True if a SQLite file overwrites the bytes of deleted rows."""


class Session(Protocol):
    """One connection within a transaction."""

    def rows(self, statement: LiteralString, values: Values = ()) -> list[Row]:
        """Return the rows of a query."""

    def each(self, statement: LiteralString, values: Values = ()) -> Iterator[Row]:
        """Yield the rows of a query one by one, because a list may be too long."""

    def write(self, statement: LiteralString, *rows: Values) -> int:
        """Execute a statement for each of *rows*; return the number of changed rows."""

    def insert(self, statement: LiteralString, values: Values) -> int:
        """Insert one row, and return its new id."""

    def hold(self, *names: str) -> None:
        """Lock *names* until the end of the transaction. Sessions that lock the same name wait."""

    def skip_flush(self) -> None:
        """Commit without waiting for the disk; a loss of power may undo this transaction."""


class Database(Protocol):
    """Tables of one or more `Schema`, created when first needed. Safe from any thread.

    Each method may raise `StoreError`.
    """

    place: str
    """Path or address of the database, without secrets."""
    label: str
    """Name of the database in messages."""

    @abstractmethod
    def reading(self) -> AbstractContextManager[Session]:
        """Begin a read transaction. All its queries see the same state."""

    @abstractmethod
    def transaction(self) -> AbstractContextManager[Session]:
        """Begin a write transaction. Either all its changes are written, or none."""

    def rows(self, statement: LiteralString, values: Values = ()) -> list[Row]:
        """Return the rows of a query in a new transaction."""
        with self.reading() as session:
            return session.rows(statement, values)

    def write(self, statement: LiteralString, *rows: Values) -> int:
        """Execute a statement for each of *rows* in one transaction; return the number of
        changed rows.
        """
        with self.transaction() as session:
            return session.write(statement, *rows)

    @abstractmethod
    def is_made(self) -> bool:
        """Return whether the database exists. If not, a reader need not create it."""

    @abstractmethod
    def is_away(self, error: StoreError, /) -> bool:
        """Return True if the database is temporarily unreachable."""

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

        It ends with its connection, so a killed process cannot block others.
        """
