"""Tables of a store, wherever they are: one set of statements for SQLite and for PostgreSQL.

A statement is written as PostgreSQL has it, with ``?`` or ``:name`` for a value, and a list as a
value of ``= ANY(?)``. Each database says the few words that differ in its own way. Not every
release of SQLite that Python may come with has ``RETURNING`` or ``FILTER``.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, LiteralString, Protocol, TypeAlias

from gateway.errors import StoreError

Values: TypeAlias = Sequence[object] | Mapping[str, object]
"""The values of one statement, by place or by name."""
Row: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """The tables of one kind, as the steps that make them.

    A step is never changed once it was released. It keeps the data of users, and drops only what
    can be made again.
    """

    name: str
    """The name of the tables in a store, and of their SQLite file there. Unique."""
    what: str
    """The name of such a file in messages."""
    steps: tuple[tuple[str, ...], ...] = ()
    """The statements of each step in a SQLite file, oldest first.

    A file of version n has had the first n steps. A statement may find its table there already, in
    files from before there were steps.
    """
    postgres: Mapping[int, Sequence[LiteralString]] = field(default_factory=dict)
    """The statements of each step in PostgreSQL, keyed by a number that grows.

    Numbers up to 5 are those of version 0.2, in which all tables shared them. Texts that are sorted
    compare by their characters, as Python's do.
    """
    is_durable: bool = False
    """True if a write to a SQLite file waits until a loss of power cannot undo it."""
    is_erased: bool = False
    """True if a SQLite file keeps no bytes of what is deleted."""


class Session(Protocol):
    """One connection inside a transaction."""

    def rows(self, statement: LiteralString, values: Values = ()) -> list[Row]:
        """Return the rows of one query."""

    def each(self, statement: LiteralString, values: Values = ()) -> Iterator[Row]:
        """Yield the rows of a query, of which there may be very many."""

    def write(self, statement: LiteralString, *rows: Values) -> int:
        """Execute a statement with the values of each of *rows*; return how many rows it
        changed.
        """

    def insert(self, statement: LiteralString, values: Values) -> int:
        """Insert one row; return its id."""

    def hold(self, *names: str) -> None:
        """Make every other session that asks for one of *names* wait until the end of this one."""

    def skip_flush(self) -> None:
        """Do not wait for the disk at the end: a loss of power may undo this transaction."""


class Database(Protocol):
    """The tables of one or more `Schema`, made when first needed. Safe from any thread.

    Each method may raise `StoreError`.
    """

    place: str
    """Where it is, without secrets."""
    label: str
    """The name in messages."""

    @abstractmethod
    def reading(self) -> AbstractContextManager[Session]:
        """Read the tables as they are at one moment, whatever is written meanwhile."""

    @abstractmethod
    def transaction(self) -> AbstractContextManager[Session]:
        """Write to the tables: all is written, or nothing."""

    def rows(self, statement: LiteralString, values: Values = ()) -> list[Row]:
        """Return the rows of one query."""
        with self.reading() as session:
            return session.rows(statement, values)

    def write(self, statement: LiteralString, *rows: Values) -> int:
        """Execute one statement with the values of each of *rows*; return how many rows it
        changed.
        """
        with self.transaction() as session:
            return session.write(statement, *rows)

    @abstractmethod
    def is_made(self) -> bool:
        """Return False if nothing was ever written to it, so that a reader need not make it."""

    @abstractmethod
    def is_away(self, error: StoreError, /) -> bool:
        """Return True if what raised *error* may work once the database is back."""

    @abstractmethod
    def size(self, table: str, /) -> int:
        """Return how many bytes *table* takes."""

    @abstractmethod
    def close(self) -> None:
        """Close all connections; the next use opens others."""


class LockingDatabase(Database, Protocol):
    """A `Database` whose processes can wait for each other."""

    @abstractmethod
    def lock(self, name: str) -> AbstractContextManager[None]:
        """Make every other process that wants the lock *name* wait.

        The lock ends with its connection: no process waits for one that was killed.
        """
