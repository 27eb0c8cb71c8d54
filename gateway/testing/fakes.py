"""A clock that stands still until it is moved, and a store that is removed with its object."""

from __future__ import annotations

import shutil
import time
import weakref
from pathlib import Path
from tempfile import mkdtemp

from gateway.embed.cache import MemoryVectorStore
from gateway.errors import InvalidRequestError
from gateway.runtime.cache import Clock
from gateway.storage.protocol import SqliteStore


class ManualClock:
    """Pass it wherever a ``clock`` is asked for. Any thread may read it."""

    def __init__(self, now: float = 0.0) -> None:
        self._now = now

    def __call__(self) -> float:
        """Read the time, in seconds."""
        return self._now

    def tick(self, seconds: float) -> None:
        """Move the time forward.

        Raises:
            InvalidRequestError: *seconds* is negative.
        """
        if seconds < 0:
            raise InvalidRequestError(f"a clock does not go back: tick({seconds!r})")
        self._now += seconds


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
