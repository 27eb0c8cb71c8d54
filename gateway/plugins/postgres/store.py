"""What outlives a process, in PostgreSQL: for several processes, also on several machines.

Sign-ins in a database, encrypted under a key that is not there.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager, ExitStack

from gateway.plugins.postgres.database import OnChange, PostgresDatabase
from gateway.plugins.postgres.pgvector import PgvectorEngine
from gateway.runtime.cache import Clock
from gateway.runtime.vectors import VectorStore
from gateway.storage.catalog import CATALOG, SqlCatalog
from gateway.storage.database import LockingDatabase, Schema
from gateway.storage.host_key import decrypt, encrypt
from gateway.storage.vectors import VECTORS, SqlVectorStore

SCHEMA = "gateway"
SIGN_INS = Schema(
    name="sign_ins",
    what="store of sign-ins",
    postgres={
        3: ('CREATE TABLE sign_ins (key text COLLATE "C" PRIMARY KEY, sealed bytea NOT NULL)',)
    },
)
"""Without a database that has locks, each sign-in is in a file of its own."""
TABLES = VECTORS, CATALOG, SIGN_INS
_LOCK_CHARS = 2
"""Of 256 locks a model, no two are of one text."""


class PostgresClaim:
    """A `Claim` by advisory locks of a connection. Keys that begin alike share a lock, since the
    server has room for some thousand of them.

    Args:
        database: Where the locks are.
        model_id: The model that makes the vectors.
        keys: Their keys, in hexadecimal.
    """

    def __init__(self, database: PostgresDatabase, model_id: str, keys: Sequence[str]) -> None:
        self._database = database
        self._names = {key: f"vectors/{model_id}/{key[:_LOCK_CHARS]}" for key in keys}
        self._held = ExitStack()
        self._is_released = False
        self._using = threading.Lock()

    def take(self) -> Collection[str]:
        """See `Claim.take`."""
        with self._using:
            if self._is_released:
                return ()
            held = self._held.enter_context(
                self._database.try_lock(sorted({*self._names.values()}))
            )
            return [key for key, name in self._names.items() if name in held]

    def release(self) -> None:
        """See `Claim.release`."""
        with self._using:
            self._is_released = True
            self._held.close()


class PostgresVectorStore(SqlVectorStore):
    """A `VectorStore` in one schema, of which processes that share it make each vector once.

    Args:
        database: The place of `VECTORS`.
    """

    def __init__(self, database: PostgresDatabase) -> None:
        super().__init__(database)
        self._postgres = database

    def claim(self, model_id: str, keys: Sequence[str]) -> PostgresClaim:
        """See `SharedVectorStore.claim`."""
        return PostgresClaim(self._postgres, model_id, keys)

    def vector_engine(self, model: str, *, timeout_s: float) -> PgvectorEngine:
        """See `gateway.index.engine_vectors.EngineStore.vector_engine`."""
        return PgvectorEngine(self._postgres, model, timeout_s)

    def check_engine(self) -> None:
        """See `gateway.index.engine_vectors.EngineStore.check_engine`."""
        PgvectorEngine(self._postgres, "", 0).make()


class PostgresStore:
    """A `Store` in one schema of a PostgreSQL database, which is made when first needed.

    Processes that share it hear of each other's changes (`watch`).

    Args:
        url: ``postgresql://USER:PASSWORD@HOST:PORT/DATABASE``.
        schema: Where the tables are: one for each catalog that is to be apart.
        vectors: Where vectors are kept, if not there.
        wall: Seconds since the epoch.

    Raises:
        ConfigError: *url* is no such address.
    """

    def __init__(
        self,
        url: str,
        *,
        schema: str = SCHEMA,
        vectors: VectorStore | None = None,
        wall: Clock = time.time,
    ) -> None:
        self._database = database = PostgresDatabase(url, schema, TABLES)
        self.vectors = PostgresVectorStore(database) if vectors is None else vectors
        self.entries = self.listings = SqlCatalog(database, wall=wall)
        self.wall = wall

    def __repr__(self) -> str:
        """Return where it is, without user and password."""
        return f"<{self._database.place}>"

    def tables(self, schema: Schema) -> PostgresDatabase:
        """See `gateway.storage.protocol.TableStore.tables`."""
        self._database.add(schema)
        return self._database

    def sign_in(self, key: str, keys: Sequence[bytes]) -> SqlTokens:
        """See `gateway.storage.oauth_tokens.SignInStore.sign_in`."""
        return SqlTokens(self._database, key, keys)

    def watch(self, on_change: OnChange) -> Callable[[], None]:
        """See `gateway.storage.protocol.WatchedStore.watch`."""
        return self._database.watch(on_change)

    def close(self) -> None:
        """See `Store.close`."""
        self.vectors.close()
        self.listings.close()


class SqlTokens:
    """A `TokenStore` in one row.

    Args:
        database: The place of `SIGN_INS`.
        key: The key of the row.
        keys: The keys of the host: the first one encrypts, all decrypt.
    """

    def __init__(self, database: LockingDatabase, key: str, keys: Sequence[bytes]) -> None:
        self._database = database
        self._key = key
        self._keys = keys
        self.fault = ""

    def read(self) -> str | None:
        """See `TokenStore.read`."""
        rows = self._database.rows("SELECT sealed FROM sign_ins WHERE key = ?", (self._key,))
        text = decrypt(self._keys, rows[0][0], place=self._key) if rows else None
        self.fault = (
            "its sign-in was encrypted under another host_key: give that one behind the new one, "
            "with a comma between"
            if rows and text is None
            else ""
        )
        return text

    def write(self, text: str) -> None:
        """See `TokenStore.write`."""
        query = """INSERT INTO sign_ins VALUES (?, ?)
            ON CONFLICT (key) DO UPDATE SET sealed = excluded.sealed"""
        self._database.write(query, (self._key, encrypt(self._keys, text, place=self._key)))
        self.fault = ""

    def forget(self) -> None:
        """See `TokenStore.forget`."""
        self._database.write("DELETE FROM sign_ins WHERE key = ?", (self._key,))

    def lock(self) -> AbstractContextManager[None]:
        """See `TokenStore.lock`: one process of all that share the database has it."""
        return self._database.lock(f"sign-in/{self._key}")
