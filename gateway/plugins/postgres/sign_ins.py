"""Sign-ins in a database, encrypted under a key that is not there."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager

from gateway.storage.database import LockingDatabase, Schema
from gateway.storage.encryption import decrypt, encrypt

SIGN_INS = Schema(
    name="sign_ins",
    what="store of sign-ins",
    postgres={
        3: ('CREATE TABLE sign_ins (key text COLLATE "C" PRIMARY KEY, sealed bytea NOT NULL)',)
    },
)
"""Without a database that has locks, each sign-in is in a file of its own."""


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
