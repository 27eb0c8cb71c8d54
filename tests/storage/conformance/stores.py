"""Where the suite runs: every `Store` there is. Another one is a line of `STORES`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from gateway.runtime.cache import Clock
from gateway.storage.protocol import SqliteStore, Store

Opener = Callable[[], Store]
"""Gives the store of one place; again, and it is the store of another process there."""


def _sqlite(folder: Path, wall: Clock) -> Opener:
    deep = folder / "deep"
    return lambda: SqliteStore(
        vectors=deep / "vectors.sqlite3",
        catalog=deep / "catalog.sqlite3",
        usage=deep / "usage.sqlite3",
        wall=wall,
    )


STORES: Mapping[str, Callable[[Path, Clock], Opener]] = {"sqlite": _sqlite}
