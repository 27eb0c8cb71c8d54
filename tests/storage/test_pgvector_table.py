"""The rows of entities in PostgreSQL: what happens while the server does not answer."""

from __future__ import annotations

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
    database = PostgresDatabase(postgres.url, "hung")
    table = PgvectorTable(database, "ab12", 0.2)
    table.count()
    with psycopg.connect(postgres.url, autocommit=True) as admin:
        query = """SELECT pid FROM pg_stat_activity
            WHERE application_name = 'tool-gateway' AND query <> '' AND state = 'idle'
            AND backend_start = (SELECT max(backend_start) FROM pg_stat_activity
                WHERE application_name = 'tool-gateway')"""
        row = admin.execute(query).fetchone()
    assert row is not None
    os.kill(row[0], signal.SIGSTOP)
    threads = [Thread(target=table.count, daemon=True) for _ in range(2)]
    try:
        for thread in threads:
            thread.start()
        while len([thread for thread in threads if thread.is_alive()]) > 1:
            threads[0].join(0.01)
        with pytest.raises(StoreError, match="does not answer"):
            list(starmap(table.count, repeat((), 10_000)))
    finally:
        os.kill(row[0], signal.SIGCONT)
        for thread in threads:
            thread.join()
    assert 0 == table.count()
    database.close()
