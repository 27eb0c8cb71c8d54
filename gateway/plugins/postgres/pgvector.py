"""Vector search in PostgreSQL with pgvector.

Vectors are stored in half precision, and the server computes the cosines. Statements leave the
query planner no choice: one with ids cannot use the HNSW index, one that uses it has no filter.
"""

from __future__ import annotations

import contextlib
import struct
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, LiteralString

import numpy as np

from gateway.errors import MissingExtraError, StoreError
from gateway.index.engine_vectors import Ids, Passes
from gateway.plugins.postgres.database import Connection, PostgresDatabase
from gateway.runtime.vectors import Matrix, Vector

try:
    import psycopg
    from psycopg.adapt import Dumper
    from psycopg.pq import Format
    from psycopg.sql import SQL, Composed, Identifier, Literal
    from psycopg.types.json import Jsonb
except ImportError as error:
    raise MissingExtraError("vectors in PostgreSQL", "postgres") from error

KEPT_DAYS = 7
"""Number of days after which an unused vector is deleted."""
_MIN_VERSION = 0, 8
"""First version of pgvector with iterative scans."""
_RETRY_S = 30.0
"""Seconds until a server that hangs is asked again."""
_FETCHED = 200
"""Number of row ids fetched from the HNSW index at a time."""
_ADVICE = (
    "index.rows = pgvector needs the extension vector (pgvector 0.8 or newer): install it on the "
    "server, and let an administrator run CREATE EXTENSION vector in this database"
)
_EXTENSION = (
    "SELECT quote_ident(current_schema()) || ', ' || extnamespace::regnamespace::text, extversion"
    " FROM pg_extension WHERE extname = 'vector'"
)
_TABLES: Sequence[LiteralString] = (
    # The day of last use is separate, because updates of the large, indexed vector rows are slow.
    """CREATE TABLE IF NOT EXISTS entity_keys (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    model text COLLATE "C" NOT NULL, key bytea NOT NULL UNIQUE, used date NOT NULL)
    WITH (fillfactor = 80)""",
    """CREATE TABLE IF NOT EXISTS entity_rows (id bigint PRIMARY KEY,
    model text COLLATE "C" NOT NULL, numbers halfvec STORAGE PLAIN NOT NULL)""",
)
_SETTINGS = {
    "jit": "off",
    # By default, joins read the whole table: four times slower for 20,000 of 200,000 rows.
    "enable_mergejoin": "off",
    "enable_hashjoin": "off",
    "enable_seqscan": "off",
    "enable_sort": "off",
    # Strict order would drop rows that the index returns late. Cosines are computed again anyway.
    "hnsw.iterative_scan": "relaxed_order",
    "hnsw.ef_search": "200",
    # At these limits, the index would return distant rows. Searches end before they are reached.
    "hnsw.max_scan_tuples": "1000000",
    "hnsw.scan_mem_multiplier": "32",
}
_SET = "SELECT set_config(key, value, true) FROM jsonb_each_text(%s)"
_NEAREST = SQL(
    "SELECT id FROM entity_rows WHERE model = {model}"
    " ORDER BY (numbers::halfvec({dimensions})) <#> %s::halfvec"
)
_VALUES = SQL(
    "SELECT array_agg(place), {columns} FROM unnest(%s::bigint[]) WITH ORDINALITY"
    " AS wanted (id, place) JOIN entity_rows AS r ON r.id = wanted.id"
)
_SIMILARITY = SQL("array_agg((-(r.numbers <#> %s::halfvec))::real)")
_KNOWN = "SELECT key, id FROM entity_keys JOIN entity_rows USING (id) WHERE key = ANY(%s)"
_INSERT = """WITH fresh AS (
    INSERT INTO entity_keys (model, key, used) VALUES (%s, %s, CURRENT_DATE)
    ON CONFLICT (key) DO NOTHING RETURNING id
) INSERT INTO entity_rows (id, model, numbers) SELECT id, %s, %s::halfvec FROM fresh"""
# Marks rows as used today. Locks are taken in the order of ids, which prevents deadlocks.
_TOUCH = SQL("""UPDATE entity_keys AS k SET used = CURRENT_DATE FROM (
    SELECT id FROM entity_keys WHERE {column} = ANY(%s) AND used < CURRENT_DATE
    ORDER BY id FOR UPDATE
) AS old WHERE k.id = old.id""")
# Deletes keys whose rows were deleted by hand.
_REPAIR = """DELETE FROM entity_keys AS k WHERE key = ANY(%s)
    AND NOT EXISTS (SELECT FROM entity_rows AS r WHERE r.id = k.id)"""
_CLEAN = """WITH old AS (
    DELETE FROM entity_keys WHERE used < CURRENT_DATE - %s RETURNING id
) DELETE FROM entity_rows USING old WHERE entity_rows.id = old.id"""
# Returns the number of dimensions, if the model has more vectors than the offset.
_MANY = """SELECT vector_dims(numbers) FROM entity_rows
    WHERE id = (SELECT id FROM entity_keys WHERE model = %s OFFSET %s LIMIT 1)"""
_IS_INDEXED = "SELECT FROM pg_index WHERE indexrelid = to_regclass(%s) AND indisvalid"


class PgvectorEngine:
    """A `VectorEngine` with its tables in one schema of a database.

    Args:
        database: Database, in which the tables are created when first needed.
        model: Hexadecimal name of the embedding model.
        timeout_s: Maximum number of seconds of a search.
    """

    def __init__(self, database: PostgresDatabase, model: str, timeout_s: float) -> None:
        self._database = database
        self._model = model
        self._timeout_s = timeout_s
        self._index = f"entity_rows_hnsw_{model}"
        self._path = ""
        """Search path (schemas of the tables and of the extension); empty before the first use."""
        self._started: list[float] = []
        """Start times of the running searches (`time.monotonic`)."""
        self.has_gaps = False

    def make(self) -> str:
        """Create the extension and the tables if missing, and return the search path.

        Raises:
            StoreError: If the extension is missing or too old.
        """
        if self._path:
            return self._path
        place = self._database.place
        with self._database.transaction() as connection:
            connection.execute("SELECT pg_advisory_xact_lock(hashtext('gateway/entity_rows'))")
            try:
                connection.execute("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public")
            except psycopg.Error as error:
                reason = str(error).partition("\n")[0]
                raise StoreError(f"{place}: {_ADVICE} ({reason})") from error
            ((path, version),) = connection.execute(_EXTENSION).fetchall()
            if path is None:
                raise StoreError(f"{place}: the schema no longer exists")
            if tuple(map(int, version.split(".")[:2])) < _MIN_VERSION:
                raise StoreError(f"{place}: {_ADVICE} (it has {version})")
            connection.execute("SELECT set_config('search_path', %s, true)", (path,))
            for statement in _TABLES:
                connection.execute(statement)
        self._path = str(path)
        return self._path

    @contextlib.contextmanager
    def _search(self) -> Iterator[Connection]:
        """Open a read transaction for a search.

        Fail immediately if another search exceeded its timeout, because the server hangs then, and
        waiting searches would occupy all worker threads.
        """
        now = time.monotonic()
        late = [now - began - self._timeout_s for began in tuple(self._started)]
        if any(0 < waited < _RETRY_S for waited in late):
            raise StoreError(f"{self._database.place}: the server does not answer")
        self._started.append(now)
        try:
            with self._session(self._timeout_s) as connection:
                yield connection
        finally:
            self._started.remove(now)

    @contextlib.contextmanager
    def _session(self, timeout_s: float = 0) -> Iterator[Connection]:
        """Open a transaction with the settings for vector searches.

        It is read-only with a timeout of *timeout_s* seconds. For 0, it can write and has no
        timeout.
        """
        settings = {"search_path": self.make(), "statement_timeout": f"{1000 * timeout_s:.0f}"}
        begin = self._database.reading if timeout_s else self._database.transaction
        try:
            with begin() as connection:
                settings |= _SETTINGS
                connection.execute(_SET, (Jsonb(settings),))
                yield connection
        except StoreError:
            # The tables may have been dropped.
            self._path = ""
            raise

    def known(self, keys: Sequence[bytes]) -> Mapping[bytes, int]:
        """Return the ids of the stored rows among *keys*, by key, and mark them as used today."""
        with self._session() as connection:
            connection.execute(_TOUCH.format(column=Identifier("key")), (keys,))
            return dict(connection.cursor(binary=True).execute(_KNOWN, (keys,)).fetchall())

    def put(self, rows: Mapping[bytes, Vector]) -> Mapping[bytes, int]:
        """Store the vectors that are missing. Return the row ids, keyed by digest like *rows*."""
        # Sorted writes do not deadlock.
        values = [
            (self._model, key, self._model, _halfvec(row)) for key, row in sorted(rows.items())
        ]
        with self._session() as connection:
            connection.execute(_REPAIR, ([*rows],))
            connection.cursor().executemany(_INSERT, values)
        return self.known([*rows])

    def nearest(self, vectors: Matrix, passes: Passes, count: int, limit: int) -> Ids | None:
        """Return the ids of the rows nearest to *vectors*, found with the HNSW index.

        Args:
            vectors: Query vectors, shape (q, d).
            passes: Returns a mask of the ids that may be returned.
            count: Number of rows to find for each query vector.
            limit: Maximum number of rows to read for each query vector.

        Returns:
            Unique row ids. None if the index is missing or finds fewer than *count* rows for a
            vector.
        """
        size = Literal(vectors.shape[1])
        statement = _NEAREST.format(model=Literal(self._model), dimensions=size)
        nearest_ids = []
        with self._search() as connection:
            if connection.execute(_IS_INDEXED, (self._index,)).fetchone() is None:
                return None
            for vector in vectors:
                with connection.cursor("near", binary=True) as cursor:
                    cursor.execute(statement, (_halfvec(vector),))
                    near = _take(cursor, passes, count, limit)
                # The best row of this vector may be far from the other vectors.
                if len(near) < count:
                    return None
                nearest_ids.append(near)
        return np.unique(np.concatenate(nearest_ids))

    def similarities(self, vectors: Matrix, ids: Ids) -> Matrix:
        """Return the cosine of each vector with each row of *ids*, shape (q, len(ids))."""
        columns = SQL(", ").join([_SIMILARITY] * len(vectors))
        return self._values(columns, [*map(_halfvec, vectors)], ids)

    def rows(self, ids: Ids) -> Matrix:
        """Return the vectors of the rows *ids*, shape (len(ids), d)."""
        rows: Matrix = self._values(SQL("array_agg(r.numbers::real[])"), [], ids)[0]
        return rows

    def _values(self, columns: SQL | Composed, values: Sequence[object], ids: Ids) -> Matrix:
        """Return *columns* for the rows *ids*, shape (number of columns, len(ids), ...)."""
        statement, values = _VALUES.format(columns=columns), [*values, _array(ids)]
        with self._search() as connection:
            cursor = connection.cursor(binary=True)
            ((places, *column_values),) = cursor.execute(
                statement, values, prepare=False
            ).fetchall()
        if len(places or ()) < len(ids):
            self.has_gaps = True
            raise StoreError(
                f"{self._database.place}: vectors of entities are missing; the next index "
                "build creates them again"
            )
        return np.array(column_values, dtype=np.float32)[:, np.argsort(places)]

    def maintain(self, ids: Ids, few_rows: int) -> None:
        """Mark the rows *ids* as used today, and delete rows unused for `KEPT_DAYS`.

        Create the HNSW index if the model has more than *few_rows* rows.
        """
        touch = _TOUCH.format(column=Identifier("id"))
        with self._session() as connection:
            connection.execute(touch, (_array(ids),))
            connection.execute(_CLEAN, (KEPT_DAYS,))
            row = connection.execute(_MANY, (self._model, few_rows)).fetchone()
        if row:
            self._make_index(*row)

    def _make_index(self, dimensions: int) -> None:
        """Create the HNSW index, unless it exists or another process is creating it.

        Other connections can read and write meanwhile.
        """
        path = self.make()
        with (
            self._database.try_lock([self._index]) as locked,
            self._database.dedicated_connection() as connection,
        ):
            connection.execute("SELECT set_config('search_path', %s, false)", (path,))
            if not locked or connection.execute(_IS_INDEXED, (self._index,)).fetchone() is not None:
                return
            name, model = Identifier(self._index), Literal(self._model)
            # An interrupted attempt may have left an invalid index.
            connection.execute(SQL("DROP INDEX CONCURRENTLY IF EXISTS {}").format(name))
            statement = SQL(
                "CREATE INDEX CONCURRENTLY {name} ON entity_rows USING hnsw "
                "((numbers::halfvec({dimensions})) halfvec_ip_ops) WHERE model = {model}"
            )
            size = Literal(dimensions)
            connection.execute(statement.format(name=name, dimensions=size, model=model))


def _take(cursor: psycopg.ServerCursor[Any], passes: Passes, count: int, limit: int) -> Ids:
    """Fetch about *limit* ids, fewer if *count* ids pass, and return those that pass."""
    near: Ids = np.zeros(0, dtype=np.int64)
    for _ in range(0, limit, _FETCHED):
        ids = np.array(cursor.fetchmany(_FETCHED), dtype=np.int64).reshape(-1)
        near = np.concatenate([near, ids[passes(ids)]])
        if len(near) >= count or not len(ids):
            break
    return near


class _Binary(bytes):
    """Value in PostgreSQL's binary format, with the SQL type of the statement's cast."""


class _BinaryDumper(Dumper):
    format = Format.BINARY

    def dump(self, obj: bytes) -> bytes:
        return obj


psycopg.adapters.register_dumper(_Binary, _BinaryDumper)


def _halfvec(row: Vector) -> bytes:
    return _Binary(struct.pack("!2h", len(row), 0) + row.astype(">f2").tobytes())


def _array(ids: Ids) -> str:
    """Return a ``bigint[]`` as text, because psycopg takes three times as long for a list."""
    return "{" + ",".join(map(str, ids.tolist())) + "}"
