"""Connections to a PostgreSQL database: pool, transactions, locks, notifications and errors.

All tables are in one schema, which records the version of each kind of table. While the server is
down, each call fails immediately. Errors name host, port and database, but not the password.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, LiteralString

from gateway.errors import ConfigError, MissingExtraError, StoreError
from gateway.plugins.postgres.tables import upgrade_tables
from gateway.storage.database import LockingDatabase, Schema, Values

try:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict, make_conninfo
    from psycopg.rows import TupleRow
    from psycopg.sql import SQL, Identifier
    from psycopg_pool import ConnectionPool
except ImportError as error:
    raise MissingExtraError("a store in PostgreSQL", "postgres") from error

OnChange = Callable[[str], None]
"""Callback that receives the name of a changed part, such as ``entries`` or ``listings/NAME``; ""
if anything may have changed."""

BUSY_S = 10.0
"""Maximum number of seconds to wait for a free connection or a locked row."""
_CONNECTION_DEFAULTS: Mapping[str, str] = {
    "connect_timeout": "5",
    # A call must not hang for hours if the network silently drops packets.
    "keepalives_idle": "30",
    "tcp_user_timeout": "30000",
    "application_name": "tool-gateway",
}
"""Connection settings, which the URL can override."""
_MAX_CONNECTIONS = 8
_IDLE_S = 300.0
_ROWS_AT_ONCE = 1_000
_CHANNEL = "tool_gateway"
_POLL_S = 0.5
_RECONNECT_S = 1.0
_UNSAFE = "PostgreSQL cannot store U+0000 or half of a surrogate pair"

_VALUE = re.compile(r"\?|(?<![:\w]):(\w+)")


@cache
def _translate(statement: str) -> bytes:
    """Return *statement* with placeholders in psycopg's syntax."""
    return _VALUE.sub(lambda value: f"%({value[1]})s" if value[1] else "%s", statement).encode()


class Connection(psycopg.Connection[TupleRow]):
    """A `Session` in PostgreSQL."""

    def rows(self, statement: LiteralString, values: Values = ()) -> list[TupleRow]:
        """Return the rows of one query."""
        return self.cursor(binary=True).execute(_translate(statement), values).fetchall()

    def each(self, statement: LiteralString, values: Values = ()) -> Iterator[TupleRow]:
        """Yield the rows of a query, which are fetched in portions to save memory."""
        with self.cursor("each", binary=True) as cursor:
            cursor.itersize = _ROWS_AT_ONCE
            yield from cursor.execute(_translate(statement), values)

    def write(self, statement: LiteralString, *rows: Values) -> int:
        """Execute *statement* for each of *rows*, and return the total number of changed rows."""
        with self.cursor() as cursor:
            cursor.executemany(_translate(statement), rows)
            return cursor.rowcount

    def insert(self, statement: LiteralString, values: Values) -> int:
        """Insert one row and return its new id."""
        row = self.execute(_translate(statement) + b" RETURNING id", values).fetchone()
        return int(row[0]) if row else 0

    def hold(self, *names: str) -> None:
        """Hold locks until the end of the transaction. A fixed order prevents deadlocks."""
        for name in sorted({*names}):
            self.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 1))", (name,))

    def skip_flush(self) -> None:
        """Commit this transaction without waiting for the disk. A loss of power may undo it."""
        self.execute("SET LOCAL synchronous_commit = off")


class PostgresDatabase(LockingDatabase):
    """One schema of a PostgreSQL database, created when first needed. Thread-safe and fork-safe.

    Args:
        url: ``postgresql://USER:PASSWORD@HOST:PORT/DATABASE``.
        schema: Name of the schema.
        tables: Tables to create in the schema, if missing.

    Raises:
        ConfigError: If *url* is not a valid address.
    """

    def __init__(self, url: str, schema: str, tables: Sequence[Schema] = ()) -> None:
        self._settings = {**_CONNECTION_DEFAULTS, **_parse_url(url)}
        self._schema = schema
        self._tables = {table.name: table for table in tables}
        self._is_up = False
        self.place = self.label = _place(self._settings, schema)
        self._origin = secrets.token_hex(8)
        self._opening = threading.Lock()
        self._pool: ConnectionPool[Connection] | None = None
        self._process = os.getpid()

    def add(self, tables: Schema) -> None:
        """Add *tables* to the schema, created before the next use if missing."""
        with self._opening:
            if tables.name not in self._tables:
                self._tables[tables.name] = tables
                self._is_up = False

    @contextlib.contextmanager
    def reading(self) -> Iterator[Connection]:
        """Open a read-only transaction with a consistent snapshot of the tables.

        Raises:
            StoreError: If the tables cannot be read.
        """
        with self._connection() as connection:
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            connection.read_only = True
            yield connection

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Open a transaction that writes all changes or none.

        Raises:
            StoreError: If the tables cannot be written.
        """
        with self._connection() as connection:
            connection.isolation_level = connection.read_only = None
            yield connection

    @contextlib.contextmanager
    def lock(self, name: str) -> Iterator[None]:
        """Hold a lock while the block runs. Only one process at a time can hold it.

        Raises:
            StoreError: If the lock is not free within `BUSY_S`, or the database cannot be reached.
        """
        with self.transaction() as connection:
            query = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"
            connection.execute(query, (f"{self._schema}/{name}",))
            yield

    @contextlib.contextmanager
    def try_lock(self, names: Sequence[str]) -> Iterator[Collection[str]]:
        """Take the locks that are free, without waiting, and yield their names.

        They are released when the block, the connection or the process ends.

        Raises:
            StoreError: If the server cannot be reached.
        """
        with self._errors():
            pool, connection = self._take()
            try:
                rows = connection.execute(
                    "SELECT name, pg_try_advisory_lock(hashtextextended(%s || name, 0)) "
                    "FROM unnest(%s::text[]) AS name",
                    (f"{self._schema}/", [*names]),
                ).fetchall()
                connection.commit()
                yield {name for name, is_held in rows if is_held}
                connection.execute("SELECT pg_advisory_unlock_all()")
                connection.commit()
            except BaseException:
                # Closing the connection releases its locks.
                connection.close()
                raise
            finally:
                pool.putconn(connection)

    @contextlib.contextmanager
    def dedicated_connection(self) -> Iterator[Connection]:
        """Yield a separate connection, without a transaction, for statements that take minutes.

        The server ends the statement within seconds after this process ends.

        Raises:
            StoreError: If the server cannot be reached or refuses the connection.
        """
        with self._errors(), self._connect() as connection:
            connection.autocommit = True
            connection.execute(
                "SELECT set_config('lock_timeout', '0', false),"
                " set_config('client_connection_check_interval', '5s', false)"
            )
            yield connection

    def is_made(self) -> bool:
        """Return True without a check, because checking the tables takes as long as reading."""
        return True

    def is_away(self, error: StoreError, /) -> bool:
        """Return whether *error* may be temporary: the server cannot be reached or is busy."""
        return isinstance(error.__cause__, psycopg.OperationalError)

    def size(self, table: str, /) -> int:
        """Return the size of *table* in bytes."""
        ((size,),) = self.rows("SELECT pg_total_relation_size(CAST(? AS regclass))", (table,))
        return int(size)

    def close(self) -> None:
        """Close all connections. The next use opens new ones."""
        with self._opening:
            if self._pool is not None and self._process == os.getpid():
                self._pool.close()
            self._pool = None

    def watch(self, on_change: OnChange) -> Callable[[], None]:
        """Call *on_change* from a thread whenever another process changes a table.

        Each new connection calls it with "", because earlier changes may have been missed. The
        returned function ends the watch.
        """
        ended = threading.Event()
        work = threading.Thread(target=self._watch, args=(on_change, ended), daemon=True)
        work.start()
        return ended.set

    def _watch(self, on_change: OnChange, ended: threading.Event) -> None:
        while not ended.is_set():
            with contextlib.suppress(psycopg.Error, StoreError), self._connect() as connection:
                connection.autocommit = True
                connection.execute(SQL("LISTEN {}").format(Identifier(_CHANNEL)))
                # Earlier notifications are lost.
                on_change("")
                while not ended.is_set():
                    for note in connection.notifies(timeout=_POLL_S):
                        origin, schema, changed = json.loads(note.payload)
                        if schema == self._schema and origin != self._origin:
                            on_change(changed)
            ended.wait(_RECONNECT_S)

    @contextlib.contextmanager
    def _connection(self) -> Iterator[Connection]:
        with self._errors():
            pool, connection = self._take()
            try:
                with connection:
                    yield connection
            finally:
                pool.putconn(connection)

    def _take(self) -> tuple[ConnectionPool[Connection], Connection]:
        """Return a working connection and its pool."""
        pool = self._open()
        try:
            connection = pool.getconn()
        except psycopg.OperationalError:
            self._drop(pool)
            raise
        try:
            ConnectionPool.check_connection(connection)
        except psycopg.OperationalError:
            # The server restarted or is down, so the pool's other connections are broken too.
            pool.putconn(connection)
            self._drop(pool)
            pool = self._open()
            connection = pool.getconn()
        return pool, connection

    def _open(self) -> ConnectionPool[Connection]:
        with self._opening:
            is_open = self._pool is not None and self._process == os.getpid()
            if not (is_open and self._is_up):
                # A direct connection fails immediately with the reason. The pool would retry for
                # long.
                with self._connect() as connection:
                    upgrade_tables(connection, self._schema, self.place, [*self._tables.values()])
                self._is_up = True
            if self._pool is None or not is_open:
                self._process = os.getpid()
                self._pool = ConnectionPool(
                    make_conninfo("", **self._settings),
                    connection_class=Connection,
                    configure=self._configure,
                    min_size=1,
                    max_size=_MAX_CONNECTIONS,
                    max_idle=_IDLE_S,
                    timeout=BUSY_S,
                    open=True,
                )
            return self._pool

    def _drop(self, pool: ConnectionPool[Connection]) -> None:
        with self._opening:
            if self._pool is pool:
                self._pool = None
        pool.close(timeout=0)

    def _connect(self) -> Connection:
        connection = Connection.connect(make_conninfo("", **self._settings))
        try:
            self._configure(connection)
        except psycopg.Error:
            connection.close()
            raise
        return connection

    def _configure(self, connection: Connection) -> None:
        connection.execute(
            "SELECT set_config('search_path', quote_ident(%s), false),"
            " set_config('lock_timeout', %s, false), set_config('gateway.origin', %s, false),"
            # Locks of an unreachable client must be released within seconds.
            " set_config('tcp_keepalives_idle', '30', false),"
            " set_config('tcp_keepalives_interval', '10', false),"
            " set_config('tcp_keepalives_count', '3', false)",
            (self._schema, f"{BUSY_S:.0f}s", self._origin),
        )
        connection.commit()

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (psycopg.Error, UnicodeError) as error:
            raise StoreError(f"{self.place}: {_reason(error)}") from error


def _parse_url(url: str) -> Mapping[str, Any]:
    """Return the connection settings in *url*, which errors do not quote: it has a password."""
    scheme, _, remainder = url.partition("://")
    server, _, path = remainder.partition("/")
    # An unescaped @ in the password would make the rest of the password part of the host.
    if scheme in {"postgresql", "postgres"} and server.count("@") < 2:
        with contextlib.suppress(psycopg.Error):
            if "@" not in path.partition("?")[0]:
                return conninfo_to_dict(url)
    raise ConfigError(
        "the address of the store must be postgresql://USER:PASSWORD@HOST:PORT/DATABASE, with "
        "@ : / ? % of a password written as %40 %3A %2F %3F %25"
    )


def _place(link: Mapping[str, Any], schema: str) -> str:
    host = link.get("host") or link.get("hostaddr") or "localhost"
    return f"PostgreSQL store {host}:{link.get('port', 5432)}/{link.get('dbname', '')} ({schema})"


def _reason(error: Exception) -> str:
    """Return the reason of *error* and a remedy, without values of the failed statement."""
    first, code = str(error).partition("\n")[0], getattr(error, "sqlstate", None)
    if isinstance(error, UnicodeError) or (isinstance(error, psycopg.DataError) and code is None):
        return f"{_UNSAFE}: remove it"
    if code is None:
        return f"{first}: check the address and that the server is running"
    if isinstance(error, psycopg.errors.InsufficientPrivilege):
        return f"{first}: the user needs CREATE on the database, or a schema of its own"
    return first
