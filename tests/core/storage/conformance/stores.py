"""Where the suite runs: every `Store` that is installed. Another one is a line of `STORES`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from gateway.runtime.cache import Clock
from gateway.storage import SqliteStore, Store
from tests.postgres_server import PostgresServer

Opener = Callable[[], Store]
"""Gives the store of one place; again, and it is the store of another process there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a test keeps its store."""

    folder: Path
    """Empty, and of no other test."""
    postgres: Callable[[], PostgresServer]
    """Starts the server that all tests share, where a test needs it."""


def _sqlite(place: Place, wall: Clock) -> Opener:
    deep = place.folder / "deep"
    return lambda: SqliteStore(
        vectors=deep / "vectors.sqlite3",
        catalog=deep / "catalog.sqlite3",
        usage=deep / "usage.sqlite3",
        wall=wall,
    )


def _postgres(place: Place, wall: Clock) -> Opener:
    from gateway.plugins.postgres import PostgresStore  # noqa: PLC0415  (it may not be installed)

    url, schema = place.postgres().url, place.folder.name
    return lambda: PostgresStore(url, schema=schema, wall=wall)


STORES: Mapping[str, Callable[[Place, Clock], Opener]] = {"postgres": _postgres, "sqlite": _sqlite}
