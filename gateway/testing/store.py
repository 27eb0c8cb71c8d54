"""A store in a temporary folder, which is removed with it."""

from __future__ import annotations

import shutil
import time
import weakref
from pathlib import Path
from tempfile import mkdtemp

from gateway.embed.cache import MemoryVectorStore
from gateway.runtime.cache import Clock
from gateway.storage.protocol import SqliteStore


class TemporaryStore(SqliteStore):
    """A `Store` that ends with its object: `Gateway(store=TemporaryStore())` leaves nothing behind.

    Args:
        wall: Seconds since the epoch.
    """

    def __init__(self, *, wall: Clock = time.time) -> None:
        folder = Path(mkdtemp(prefix="gateway-"))
        super().__init__(
            vectors=MemoryVectorStore(),
            catalog=folder / "catalog.sqlite3",
            usage=folder / "usage.sqlite3",
            wall=wall,
        )
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
