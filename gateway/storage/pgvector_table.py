"""The rows of entities in PostgreSQL with pgvector: the statements.

* A row is found by a digest of what it is made of, so that catalogs and replicas share it.
* Numbers have half precision. A search gets no row: the server scores, and returns ids and scores.
* Which way a search goes is its caller's choice: where it names ids, no HNSW index can be used;
  where it names none, there is no filter.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from gateway.errors import MissingExtraError, StoreError
from gateway.index.vectors import Moments, ScanResult, VectorQuery
from gateway.runtime.vectors import Distribution, Vector
from gateway.storage.pgvector_arrays import Ids, dump_ids, dump_reals
from gateway.storage.postgres_database import Connection, PostgresDatabase
from gateway.storage.postgres_schema import ENTITY_ROWS

try:
    import psycopg
    from psycopg.sql import SQL, Composed, Identifier, Literal, Placeholder
except ImportError as error:
    raise MissingExtraError("vectors in PostgreSQL", "postgres") from error

Query = SQL | Composed
KEPT_DAYS = 7
"""A row that no index used for so long is deleted."""
_OLDEST = 0, 7
"""The first version of pgvector with half precision."""
_RETRY_S = 30.0
"""A server that hangs is asked again so often."""
_ADVICE = (
    "index.rows = pgvector needs the extension vector (pgvector 0.7 or newer): install it on the "
    "server, and let an administrator run CREATE EXTENSION vector in this database"
)
# Other joins read the whole table: of 20,000 rows of 200,000 that takes four times as long.
_PARAMETERS = SQL(
    "SELECT set_config('search_path', %s, true), set_config('statement_timeout', %s, true),"
    " set_config('jit', 'off', true), set_config('enable_mergejoin', 'off', true),"
    " set_config('enable_hashjoin', 'off', true)"
)
_BY_INDEX = SQL(
    "SELECT set_config('enable_seqscan', 'off', true), set_config('enable_sort', 'off', true),"
    " set_config('hnsw.iterative_scan', 'off', true), set_config('hnsw.ef_search', %(count)s, true)"
)
_MEASURE = SQL("""WITH q AS MATERIALIZED (SELECT {vectors}), scored AS MATERIALIZED (
    SELECT place, r.id IS NOT NULL AS present, coalesce({cosine}, 0) AS cosine,
        coalesce({clause}, 0) AS clause
    FROM unnest(%(ids)s) WITH ORDINALITY AS wanted (id, place)
    LEFT JOIN entity_rows AS r ON r.id = wanted.id
), final AS (
    SELECT place, present, cosine, cosine + %(weight)s::float8 * clause AS strength FROM scored
), best AS (SELECT * FROM final ORDER BY strength DESC, place LIMIT %(count)s)
SELECT (SELECT array_agg(place ORDER BY strength DESC, place) FROM best),
    (SELECT array_agg(cosine ORDER BY strength DESC, place) FROM best),
    (SELECT array_agg(strength ORDER BY strength DESC, place) FROM best),
    count(*) FILTER (WHERE present), avg(strength::real), stddev_pop(strength::real),
    avg(cosine::real) FILTER (WHERE present), stddev_pop(cosine::real) FILTER (WHERE present)
FROM final""")
_NEAREST = SQL("""WITH q AS MATERIALIZED (SELECT {vectors}), near AS MATERIALIZED (
    SELECT id, bit_or(list) AS lists FROM ({lists}) AS listed GROUP BY id
), scored AS (
    SELECT r.id, lists, {cosine} AS cosine, coalesce({clause}, 0) AS clause
    FROM near JOIN entity_rows AS r ON r.id = near.id
)
SELECT array_agg(id), array_agg(lists), array_agg(cosine),
    array_agg(cosine + %(weight)s::float8 * clause) FROM scored""")
_LIST = SQL("""(SELECT id, {bit} AS list FROM entity_rows WHERE model = {model}
    ORDER BY (numbers::halfvec({dimensions})) <#> (SELECT {vector} FROM q) LIMIT %(count)s)""")
_INSERT = """WITH fresh AS (
    INSERT INTO entity_keys (model, key, used) VALUES (%s, %s, CURRENT_DATE)
    ON CONFLICT (key) DO NOTHING RETURNING id
) INSERT INTO entity_rows (id, model, numbers) SELECT id, %s, %s::halfvec FROM fresh"""
# In one order: two that touch the same do not wait for each other in a circle.
_TOUCH = SQL("""UPDATE entity_keys AS k SET used = CURRENT_DATE FROM (
    SELECT id FROM entity_keys WHERE {column} = ANY(%s) AND used < CURRENT_DATE
    ORDER BY id FOR UPDATE
) AS old WHERE k.id = old.id""")
# Someone deleted rows and left their keys.
_REPAIR = """DELETE FROM entity_keys AS k WHERE key = ANY(%s)
    AND NOT EXISTS (SELECT FROM entity_rows AS r WHERE r.id = k.id)"""
_CLEAN = """WITH old AS (
    DELETE FROM entity_keys WHERE used < CURRENT_DATE - %s RETURNING id
) DELETE FROM entity_rows USING old WHERE entity_rows.id = old.id"""
_NO_SCORES = np.zeros(0, dtype=np.float32)
_NOTHING = ScanResult(
    pool=np.zeros(0, dtype=np.intp),
    cosines=_NO_SCORES,
    strengths=_NO_SCORES,
    moments=Moments.of(_NO_SCORES, _NO_SCORES),
    eligible=0,
    scored=0,
)
_INDEXED = """SELECT c.reltuples FROM pg_class AS c JOIN pg_index AS i ON i.indexrelid = c.oid
    WHERE c.oid = to_regclass(%s) AND i.indisvalid"""


class PgvectorTable:
    """The rows of one model. Safe from any thread. Each method may raise `StoreError`.

    Args:
        database: Where they are.
        model: A name of the model in hexadecimal.
        timeout_s: How long the server may work on a search.
    """

    def __init__(self, database: PostgresDatabase, model: str, timeout_s: float) -> None:
        self._database = database
        self._model = model
        self._timeout = f"{1000 * timeout_s:.0f}"
        self._index = f"entity_rows_hnsw_{model}"
        self._making = threading.Lock()
        self._path = ""
        """Where the tables and the extension are; empty before the first use."""
        self._patience_s = timeout_s
        self._waiting: dict[object, float] = {}
        """Since when searches wait for the server, each by a key of its own."""
        self.has_gaps = False
        """Whether a row was gone that an index names."""

    def make(self) -> str:
        """Make the extension and the tables, if they are missing; return the search path.

        Raises:
            StoreError: The extension is missing; it says what to do.
        """
        with self._making:
            if not self._path:
                with self._database.transaction() as connection:
                    name = "gateway/entity_rows"
                    connection.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", (name,))
                    self._path = self._make(connection)
            return self._path

    def _make(self, connection: Connection) -> str:
        query = (
            "SELECT quote_ident(current_schema()) || ', ' || extnamespace::regnamespace::text, "
            "extversion FROM pg_extension WHERE extname = 'vector'"
        )
        row = connection.execute(query).fetchone()
        if row is None:
            try:
                connection.execute("CREATE EXTENSION vector SCHEMA public")
            except psycopg.Error as error:
                reason = str(error).partition("\n")[0]
                raise StoreError(f"{self._database.place}: {_ADVICE} ({reason})") from error
            row = connection.execute(query).fetchone()
        path, version = row or ("", "0")
        if path is None:
            raise StoreError(f"{self._database.place}: the schema is gone")
        if tuple(map(int, version.split(".")[:2])) < _OLDEST:
            raise StoreError(f"{self._database.place}: {_ADVICE} (it has {version})")
        connection.execute("SELECT set_config('search_path', %s, true)", (path,))
        for statement in ENTITY_ROWS:
            connection.execute(statement)
        return str(path)

    @contextlib.contextmanager
    def _read_in_time(self) -> Iterator[Connection]:
        """Read for a search; refuse at once while another one waits for a server that hangs."""
        now = time.monotonic()
        if any(
            0 < now - began - self._patience_s < _RETRY_S for began in [*self._waiting.values()]
        ):
            raise StoreError(f"{self._database.place}: it does not answer")
        key = object()
        self._waiting[key] = now
        try:
            with self._session(timeout=self._timeout) as connection:
                yield connection
        finally:
            del self._waiting[key]

    @contextlib.contextmanager
    def _session(self, *, write: bool = False, timeout: str = "0") -> Iterator[Connection]:
        path, database = self.make(), self._database
        try:
            opened = database.transaction() if write else database.reading()
            # In a pipeline, what is executed waits for no answer to what came before.
            with opened as connection, connection.pipeline():
                connection.execute(_PARAMETERS, (path, timeout))
                yield connection
        except StoreError:
            # The next use looks whether the tables are there.
            self._path = ""
            raise

    def read(self, keys: Sequence[bytes]) -> Mapping[bytes, int]:
        """Return the ids of the rows of *keys* that are kept; they count as used today."""
        with self._session(write=True) as connection:
            connection.execute(_TOUCH.format(column=Identifier("key")), (keys,))
            query = (
                "SELECT key, id FROM entity_keys JOIN entity_rows USING (id) WHERE key = ANY(%s)"
            )
            return dict(connection.cursor(binary=True).execute(query, (keys,)).fetchall())

    def write(self, rows: Sequence[tuple[bytes, Vector]]) -> None:
        """Keep *rows*, sorted by their keys, but for those that are kept already."""
        values = ((self._model, key, self._model, dump_reals(row)) for key, row in rows)
        with self._session(write=True) as connection, connection.cursor() as cursor:
            connection.execute(_REPAIR, ([key for key, _ in rows],))
            cursor.executemany(_INSERT, values)

    def touch(self, ids: Ids) -> None:
        """Let the rows of *ids* count as used today."""
        with self._session(write=True) as connection:
            connection.execute(_TOUCH.format(column=Identifier("id")), (dump_ids(ids),))

    def clean(self) -> None:
        """Delete the rows that were not used for `KEPT_DAYS`."""
        with self._session(write=True) as connection:
            connection.execute(_CLEAN, (KEPT_DAYS,))

    def count(self) -> int:
        """Return how many rows of the model there are, for all catalogs."""
        return int(self._value("SELECT count(*) FROM entity_keys WHERE model = %s", self._model))

    def dimensions(self, row_id: int) -> int:
        """Return how long a row is."""
        return int(
            self._value("SELECT vector_dims(numbers) FROM entity_rows WHERE id = %s", row_id)
        )

    def indexed(self) -> int:
        """Return about how many rows the HNSW index has; 0 without one that can be used."""
        return int(self._value(_INDEXED, self._index) or 0)

    def _value(self, query: Any, value: object) -> Any:
        with self._read_in_time() as connection:
            row = connection.execute(query, (value,)).fetchone()
        return row[0] if row else None

    def make_index(self, dimensions: int) -> None:
        """Make the HNSW index, if it is missing and no other process makes it. Takes minutes.

        Others read and write meanwhile.
        """
        path = self.make()
        with self._database.try_lock([self._index]) as held, self._database.alone() as connection:
            if not held or connection.execute(_INDEXED, (self._index,)).fetchone():
                return
            connection.execute("SELECT set_config('search_path', %s, false)", (path,))
            name, model = Identifier(self._index), Literal(self._model)
            # One that was not finished is of no use.
            connection.execute(SQL("DROP INDEX CONCURRENTLY IF EXISTS {}").format(name))
            statement = SQL(
                "CREATE INDEX CONCURRENTLY {name} ON entity_rows USING hnsw "
                "((numbers::halfvec({dimensions})) halfvec_ip_ops) WHERE model = {model}"
            )
            size = Literal(dimensions)
            connection.execute(statement.format(name=name, dimensions=size, model=model))

    def rows(self, ids: Ids) -> Mapping[int, Vector]:
        """Return the rows of *ids*, few of them and each above 0, by id."""
        query = "SELECT id, numbers::real[] FROM entity_rows WHERE id = ANY(%s)"
        with self._read_in_time() as connection:
            cursor = connection.cursor(binary=True).execute(query, (dump_ids(ids),))
            found = {each: np.asarray(row, dtype=np.float32) for each, row in cursor}
        if not found.keys() >= {*ids.tolist()}:
            raise self._gap()
        return found

    def mean(self, ids: Ids) -> Vector:
        """Return the mean of the rows of *ids*."""
        query = "SELECT avg(numbers)::real[] FROM entity_rows WHERE id = ANY(%s)"
        mean = self._value(query, dump_ids(ids))
        if mean is None:
            raise self._gap()
        return np.asarray(mean, dtype=np.float32)

    def _gap(self) -> StoreError:
        self.has_gaps = True
        return StoreError(
            f"{self._database.place}: rows of entities are gone; the next build makes them again"
        )

    def best(self, query: VectorQuery, ids: Ids, count: int) -> ScanResult:
        """Score the rows of *ids*, 0 where there is none, and return the best *count*.

        Returns:
            Places among *ids* as its pool.

        Raises:
            StoreError: Not all of *ids* that are above 0 are kept.
        """
        if not len(ids):
            return _NOTHING
        (row,) = self._scored(_measure(query, ids, count))
        return self._measured(row, ids)

    def _measured(self, row: Sequence[Any], ids: Ids) -> ScanResult:
        places, cosines, strengths, present, *measured = row
        if present < np.count_nonzero(ids):
            raise self._gap()
        mean, spread, cosine_mean, cosine_spread = (float(each or 0) for each in measured)
        return ScanResult(
            pool=np.asarray(places or (), dtype=np.intp) - 1,
            cosines=np.asarray(cosines or (), dtype=np.float32),
            strengths=np.asarray(strengths or (), dtype=np.float32),
            moments=Moments(
                strengths=Distribution(mean, spread),
                cosines=Distribution(cosine_mean, cosine_spread),
            ),
            eligible=len(ids),
            scored=len(ids),
        )

    def nearest(
        self, query: VectorQuery, count: int, sample: Ids
    ) -> tuple[Ids, Ids, Vector, Vector, Moments]:
        """Return the *count* nearest rows to each vector of *query*, of all rows of the model.

        Args:
            query: At least one text.
            count: At most 1000.
            sample: The ids that the moments are of.

        Returns:
            Their ids; for which vectors each was found, bit by bit, the texts' first; cosines and
            strengths, which are exact; moments.
        """
        size, model = Literal(query.texts.shape[1]), Literal(self._model)
        lists = [
            _LIST.format(
                bit=Literal(1 << at), model=model, dimensions=size, vector=Identifier(name)
            )
            for at, name in enumerate(_vectors(query))
        ]
        statement = _NEAREST.format(**_terms(query), lists=SQL(" UNION ALL ").join(lists))
        about, _, near = self._scored(
            _measure(query, sample, 0),
            (_BY_INDEX, {"count": str(count)}),
            (statement, {**_values(query), "count": count}),
        )
        ids, found = (np.asarray(each or (), dtype=np.int64) for each in near[:2])
        cosines, strengths = (np.asarray(each or (), dtype=np.float32) for each in near[2:])
        return ids, found, cosines, strengths, self._measured(about, sample).moments

    def _scored(self, *statements: tuple[Query, Mapping[str, object]]) -> list[Sequence[Any]]:
        """Return the row that each of *statements* gives, after one wait for all of them."""
        with self._read_in_time() as connection:
            cursors = [
                connection.cursor(binary=True).execute(statement, values, prepare=False)
                for statement, values in statements
            ]
            return [cursor.fetchone() or () for cursor in cursors]


def _measure(query: VectorQuery, ids: Ids, count: int) -> tuple[Query, Mapping[str, object]]:
    values = {**_values(query), "ids": dump_ids(ids), "count": count}
    return _MEASURE.format(**_terms(query)), values


def _vectors(query: VectorQuery) -> Mapping[str, Vector]:
    """Return the vectors of *query* by names in a statement."""
    texts = {f"t{at}": row for at, row in enumerate(query.texts)}
    return texts | {f"c{at}": row for at, row in enumerate(query.clauses)}


def _values(query: VectorQuery) -> dict[str, object]:
    rows = {name: dump_reals(row) for name, row in _vectors(query).items()}
    return {**rows, "weight": float(query.clause_weight)}


def _terms(query: VectorQuery) -> dict[str, Composed]:
    """Return what statements say of the vectors of *query*."""
    names = [*_vectors(query)]
    vectors = [
        SQL("{}::halfvec AS {}").format(Placeholder(name), Identifier(name)) for name in names
    ]
    texts = len(query.texts)
    return {
        "vectors": SQL(", ").join(vectors),
        "cosine": _greatest(names[:texts]),
        "clause": _greatest(names[texts:]) if names[texts:] else Composed([SQL("0")]),
    }


def _greatest(names: Sequence[str]) -> Composed:
    # Read once, and not for each row.
    each = [SQL("-(r.numbers <#> (SELECT {} FROM q))").format(Identifier(name)) for name in names]
    return SQL("greatest({})").format(SQL(", ").join(each))
