"""A PostgreSQL database: connections, tables, errors, notifications. Only this module and
`gateway.plugins.postgres.pgvector` use psycopg.

* Tables are in a schema of their own, which knows the version of each kind. Older ones are brought
  up in one transaction under an advisory lock; newer ones are refused and left as they are.
* There is no latch. When the server is gone, a call fails at once and says why; the first call
  after it is back works.
* No password is in any error: the address is shown as host, port and database.
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
from gateway.plugins.postgres.tables import bring_up
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
"""Called with what another process changed; see `WatchedStore.watch`."""

BUSY_S = 10.0
"""How long a call waits for a connection, or for rows that others hold, before it gives up."""
_LINK: Mapping[str, str] = {
    "connect_timeout": "5",
    # A network that swallows packets must not hold a call for hours.
    "keepalives_idle": "30",
    "tcp_user_timeout": "30000",
    "application_name": "tool-gateway",
}
"""Settings of a connection, where the URL has none."""
_MOST_CONNECTIONS = 8
_IDLE_S = 300.0
_ROWS_AT_ONCE = 1_000
_CHANNEL = "tool_gateway"
_POLL_S = 0.5
_RECONNECT_S = 1.0
_UNSAFE = "it has a character that PostgreSQL cannot keep, U+0000 or half of a surrogate pair"

_VALUE = re.compile(r"\?|(?<![:\w]):(\w+)")


@cache
def _own(statement: str) -> bytes:
    """Return *statement* with the placeholders of psycopg."""
    return _VALUE.sub(lambda value: f"%({value[1]})s" if value[1] else "%s", statement).encode()


class Connection(psycopg.Connection[TupleRow]):
    """A `Session` in PostgreSQL."""

    def rows(self, statement: LiteralString, values: Values = ()) -> list[TupleRow]:
        """See `Session.rows`."""
        return self.cursor(binary=True).execute(_own(statement), values).fetchall()

    def each(self, statement: LiteralString, values: Values = ()) -> Iterator[TupleRow]:
        """See `Session.each`."""
        with self.cursor("each", binary=True) as cursor:
            cursor.itersize = _ROWS_AT_ONCE
            yield from cursor.execute(_own(statement), values)

    def write(self, statement: LiteralString, *rows: Values) -> int:
        """See `Session.write`."""
        with self.cursor() as cursor:
            cursor.executemany(_own(statement), rows)
            return cursor.rowcount

    def insert(self, statement: LiteralString, values: Values) -> int:
        """See `Session.insert`."""
        row = self.execute(_own(statement) + b" RETURNING id", values).fetchone()
        return int(row[0]) if row else 0

    def hold(self, *names: str) -> None:
        """See `Session.hold`. They are held in one order: nobody waits in a circle."""
        for name in sorted({*names}):
            self.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 1))", (name,))

    def skip_flush(self) -> None:
        """See `Session.skip_flush`."""
        self.execute("SET LOCAL synchronous_commit = off")


class PostgresDatabase(LockingDatabase):
    """One schema of a database, made when first needed. Safe from any thread, and after a fork.

    Args:
        url: ``postgresql://USER:PASSWORD@HOST:PORT/DATABASE``.
        schema: Where the tables are.
        tables: Which they are.

    Raises:
        ConfigError: *url* is no such address.
    """

    def __init__(self, url: str, schema: str, tables: Sequence[Schema] = ()) -> None:
        self._link = {**_LINK, **_parsed(url)}
        self._schema = schema
        self._tables = {each.name: each for each in tables}
        self._is_up = False
        self.place = self.label = _place(self._link, schema)
        self._origin = secrets.token_hex(8)
        self._opening = threading.Lock()
        self._pool: ConnectionPool[Connection] | None = None
        self._process = os.getpid()

    def add(self, tables: Schema) -> None:
        """Make *tables* too, if they are missing, before the next use."""
        with self._opening:
            if tables.name not in self._tables:
                self._tables[tables.name] = tables
                self._is_up = False

    @contextlib.contextmanager
    def reading(self) -> Iterator[Connection]:
        """Read the tables as they are at one moment, whatever is written meanwhile.

        Raises:
            StoreError: They cannot be read.
        """
        with self._connection() as connection:
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            connection.read_only = True
            yield connection

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Write to the tables: all is written, or nothing.

        Raises:
            StoreError: They cannot be written.
        """
        with self._connection() as connection:
            connection.isolation_level = connection.read_only = None
            yield connection

    @contextlib.contextmanager
    def lock(self, name: str) -> Iterator[None]:
        """See `LockingDatabase.lock`.

        Raises:
            StoreError: Another one has held it for `BUSY_S`, or the database cannot be reached.
        """
        with self.transaction() as connection:
            query = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"
            connection.execute(query, (f"{self._schema}/{name}",))
            yield

    @contextlib.contextmanager
    def try_lock(self, names: Sequence[str]) -> Iterator[Collection[str]]:
        """Hold those of *names* that no other connection holds; they are the value.

        They are free again at the end, or as soon as the connection or its process is gone.

        Raises:
            StoreError: The server cannot be reached.
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
                # Whatever it holds goes with it.
                connection.close()
                raise
            finally:
                pool.putconn(connection)

    @contextlib.contextmanager
    def alone(self) -> Iterator[Connection]:
        """Yield a connection of its own, outside transactions, for what takes minutes.

        Its server notices within seconds when this process is gone.

        Raises:
            StoreError: The server cannot be reached, or refuses.
        """
        with self._errors(), self._connect() as connection:
            connection.autocommit = True
            connection.execute(
                "SELECT set_config('lock_timeout', '0', false),"
                " set_config('client_connection_check_interval', '5s', false)"
            )
            yield connection

    def is_made(self) -> bool:
        """See `Database.is_made`; to look takes as long as to read."""
        return True

    def is_away(self, error: StoreError, /) -> bool:
        """See `Database.is_away`; a server that is busy is away too."""
        return isinstance(error.__cause__, psycopg.OperationalError)

    def size(self, table: str, /) -> int:
        """See `Database.size`."""
        ((size,),) = self.rows("SELECT pg_total_relation_size(CAST(? AS regclass))", (table,))
        return int(size)

    def close(self) -> None:
        """Close all connections; the next use opens others."""
        with self._opening:
            if self._pool is not None and self._process == os.getpid():
                self._pool.close()
            self._pool = None

    def watch(self, on_change: OnChange) -> Callable[[], None]:
        """Call *on_change*, from a thread, whenever another process changed a table.

        What happens while there is no connection is missed: once there is one, everything
        counts as changed.

        Returns:
            A function that ends it.
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
                # What was said before is lost.
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
        """Return a connection that works, and the pool that it goes back to."""
        pool = self._open()
        try:
            connection = pool.getconn()
        except psycopg.OperationalError:
            self._drop(pool)
            raise
        try:
            ConnectionPool.check_connection(connection)
        except psycopg.OperationalError:
            # The server was started anew, or is down: no other connection of the pool works.
            pool.putconn(connection)
            self._drop(pool)
            pool = self._open()
            connection = pool.getconn()
        return pool, connection

    def _open(self) -> ConnectionPool[Connection]:
        with self._opening:
            is_open = self._pool is not None and self._process == os.getpid()
            if not (is_open and self._is_up):
                # Fails at once, and says why, where a pool would try for long.
                with self._connect() as connection:
                    bring_up(connection, self._schema, self.place, [*self._tables.values()])
                self._is_up = True
            if self._pool is None or not is_open:
                self._process = os.getpid()
                self._pool = ConnectionPool(
                    make_conninfo("", **self._link),
                    connection_class=Connection,
                    configure=self._configure,
                    min_size=1,
                    max_size=_MOST_CONNECTIONS,
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
        connection = Connection.connect(make_conninfo("", **self._link))
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
            # A machine that is gone must not keep its locks for hours.
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


def _parsed(url: str) -> Mapping[str, Any]:
    """Return the settings of a URL; a fault in it is never shown, since it may be the password."""
    scheme, _, rest = url.partition("://")
    server, _, path = rest.partition("/")
    # An @ that belongs to the password would make the rest of that a part of the host.
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
    """Return what happened and what to do, without values of a statement."""
    first, code = str(error).partition("\n")[0], getattr(error, "sqlstate", None)
    if isinstance(error, UnicodeError) or (isinstance(error, psycopg.DataError) and code is None):
        return f"{_UNSAFE}: take it out"
    if code is None:
        return f"{first}: check that the server runs, and the address"
    if isinstance(error, psycopg.errors.InsufficientPrivilege):
        return f"{first}: the user needs CREATE on the database, or a schema of its own"
    return first
