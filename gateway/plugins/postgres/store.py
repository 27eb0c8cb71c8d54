"""Store in PostgreSQL, shared by several processes and machines."""

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
"""Table of encrypted sign-ins (OAuth tokens), used if the host has a key."""
TABLES = VECTORS, CATALOG, SIGN_INS
_LOCK_CHARS = 2
"""Number of leading hexadecimal digits of a key that select its lock: 256 locks for each model."""


class PostgresClaim:
    """A `Claim` by advisory locks, shared by keys that start alike: the server has room for few.

    Args:
        database: Database with the locks.
        model_id: Model of the vectors.
        keys: Hexadecimal keys of the vectors.
    """

    def __init__(self, database: PostgresDatabase, model_id: str, keys: Sequence[str]) -> None:
        self._database = database
        self._names = {key: f"vectors/{model_id}/{key[:_LOCK_CHARS]}" for key in keys}
        self._locks = ExitStack()
        self._is_released = False
        self._using = threading.Lock()

    def take(self) -> Collection[str]:
        """Lock the free keys and return them. After `release`, return ()."""
        with self._using:
            if self._is_released:
                return ()
            locked = self._locks.enter_context(
                self._database.try_lock(sorted({*self._names.values()}))
            )
            return [key for key, name in self._names.items() if name in locked]

    def release(self) -> None:
        """Release all keys. Repeated calls have no effect."""
        with self._using:
            self._is_released = True
            self._locks.close()


class PostgresVectorStore(SqlVectorStore):
    """A `VectorStore` in one schema, whose processes compute each vector only once.

    Args:
        database: Database with the tables of `VECTORS`.
    """

    def __init__(self, database: PostgresDatabase) -> None:
        super().__init__(database)
        self._postgres = database

    def claim(self, model_id: str, keys: Sequence[str]) -> PostgresClaim:
        """Return an object that can lock *keys*. Nothing is locked yet."""
        return PostgresClaim(self._postgres, model_id, keys)

    def vector_engine(self, model: str, *, timeout_s: float) -> PgvectorEngine:
        """Return the vector engine for an embedding model."""
        return PgvectorEngine(self._postgres, model, timeout_s)

    def check_engine(self) -> None:
        """Create the extension and the tables of pgvector, if missing.

        Raises:
            StoreError: If the extension is missing or too old.
        """
        PgvectorEngine(self._postgres, "", 0).make()


class PostgresStore:
    """A `Store` in one schema of a PostgreSQL database, created when first needed.

    Args:
        url: ``postgresql://USER:PASSWORD@HOST:PORT/DATABASE``.
        schema: Schema of the tables, a separate one for each catalog.
        vectors: Store of the vectors; None is this schema.
        wall: Clock in seconds since the epoch.

    Raises:
        ConfigError: If *url* is not a valid address.
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
        """Return the address without user and password."""
        return f"<{self._database.place}>"

    def tables(self, schema: Schema) -> PostgresDatabase:
        """Return the database, in which the tables of *schema* are created if missing."""
        self._database.add(schema)
        return self._database

    def sign_in(self, key: str, keys: Sequence[bytes]) -> SqlTokens:
        """Return the encrypted storage of the sign-in *key*, as for `SqlTokens`."""
        return SqlTokens(self._database, key, keys)

    def watch(self, on_change: OnChange) -> Callable[[], None]:
        """Call *on_change* for changes by other processes. The returned function ends the watch."""
        return self._database.watch(on_change)

    def close(self) -> None:
        """Close all connections."""
        self.vectors.close()
        self.listings.close()


class SqlTokens:
    """A `TokenStore` in one table row.

    Args:
        database: Database with the table of `SIGN_INS`.
        key: Key of the sign-in and of its row.
        keys: Encryption keys of the host. The first encrypts, all decrypt.
    """

    def __init__(self, database: LockingDatabase, key: str, keys: Sequence[bytes]) -> None:
        self._database = database
        self._key = key
        self._keys = keys
        self.fault = ""

    def read(self) -> str | None:
        """Return the decrypted sign-in; None if it is missing or encrypted under another key."""
        rows = self._database.rows("SELECT sealed FROM sign_ins WHERE key = ?", (self._key,))
        text = decrypt(self._keys, rows[0][0], place=self._key) if rows else None
        self.fault = (
            "its sign-in was encrypted under another host_key: append that key after the new one, "
            "separated by a comma"
            if rows and text is None
            else ""
        )
        return text

    def write(self, text: str) -> None:
        """Encrypt and store the sign-in."""
        query = """INSERT INTO sign_ins VALUES (?, ?)
            ON CONFLICT (key) DO UPDATE SET sealed = excluded.sealed"""
        self._database.write(query, (self._key, encrypt(self._keys, text, place=self._key)))
        self.fault = ""

    def forget(self) -> None:
        """Delete the sign-in."""
        self._database.write("DELETE FROM sign_ins WHERE key = ?", (self._key,))

    def lock(self) -> AbstractContextManager[None]:
        """Hold the lock of this sign-in, across processes, while the block runs."""
        return self._database.lock(f"sign-in/{self._key}")
