"""Implementations of `Store` under test. `STORES` lists them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from gateway.runtime.cache import Clock
from gateway.storage import SqliteStore, Store
from tests.postgres_server import PostgresServer

Opener = Callable[[], Store]
"""Opens the store; later calls open the same data as another process would."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Location of a test's store."""

    folder: Path
    """Empty folder of this test."""
    postgres: Callable[[], PostgresServer]
    """Starts the PostgreSQL server that all tests share, if a test needs it."""


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
