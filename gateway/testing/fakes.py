"""A clock that tests advance, and a temporary store."""

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
    """A clock that advances only by `tick`. Any thread may read it."""

    def __init__(self, now: float = 0.0) -> None:
        self._now = now

    def __call__(self) -> float:
        """Return the time in seconds."""
        return self._now

    def tick(self, seconds: float) -> None:
        """Advance the time.

        Raises:
            InvalidRequestError: If *seconds* is negative.
        """
        if seconds < 0:
            raise InvalidRequestError(f"a clock does not go back: tick({seconds!r})")
        self._now += seconds


class TemporaryStore(SqliteStore):
    """A `Store` in a temporary folder, deleted together with the object.

    *wall* returns seconds since the epoch.
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
