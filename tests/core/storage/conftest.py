"""Tables for tests, in each kind of database."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TypeAlias

import pytest

from gateway.storage import Database, Schema, SqliteDatabase
from tests.postgres_server import DATABASES

OpenDatabase: TypeAlias = Callable[[Schema], Database]


@pytest.fixture(params=DATABASES)
def open_database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OpenDatabase]:
    """Return a function that opens the tables of one `Schema`, always with the same data."""
    with ExitStack() as opened:

        def another(tables: Schema) -> Database:
            database: Database
            if request.param == "sqlite":
                database = SqliteDatabase(tmp_path / "tables.sqlite3", tables)
            else:
                from gateway.plugins.postgres import PostgresDatabase  # noqa: PLC0415  (it may not be installed)

                url = request.getfixturevalue("postgres").url
                database = PostgresDatabase(url, tmp_path.name, (tables,))
            opened.callback(database.close)
            return database

        yield another
