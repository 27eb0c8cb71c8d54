"""The rows of entities in PostgreSQL: what happens while the server does not answer."""

from __future__ import annotations

import contextlib
import os
import signal
from itertools import repeat, starmap
from threading import Thread

import psycopg
import pytest

from gateway.errors import StoreError
from gateway.storage.pgvector_table import PgvectorTable
from gateway.storage.postgres_database import PostgresDatabase
from tests.postgres_server import PostgresServer


def test_while_the_server_hangs_one_search_waits(postgres: PostgresServer) -> None:
    """Others fail at once until it answers."""
    database = PostgresDatabase(f"{postgres.url}&application_name=hung", "hung")
    table = PgvectorTable(database, "ab12", 2)
    table.count()
    with psycopg.connect(postgres.url, autocommit=True) as admin:
        query = "SELECT pid FROM pg_stat_activity WHERE application_name = 'hung'"
        # On a busy machine the pool opens a second connection while it waits for the first one.
        hung = [pid for (pid,) in admin.execute(query)]

    def count() -> None:
        with contextlib.suppress(StoreError):
            table.count()

    for pid in hung:
        os.kill(pid, signal.SIGSTOP)
    # One more than hung connections: the last one gets a connection of its own, and ends.
    threads = [Thread(target=count, daemon=True) for _ in [*hung, None]]
    try:
        for thread in threads:
            thread.start()
        while all(thread.is_alive() for thread in threads):
            threads[0].join(0.01)
        with pytest.raises(StoreError, match="does not answer"):
            list(starmap(table.count, repeat((), 100_000)))
    finally:
        for pid in hung:
            os.kill(pid, signal.SIGCONT)
        for thread in threads:
            thread.join()
    assert 0 == table.count()
    database.close()
