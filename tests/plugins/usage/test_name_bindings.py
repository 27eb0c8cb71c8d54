"""Tool names if the store of listings fails."""

from __future__ import annotations

from pathlib import Path

from gateway.embed import MemoryVectorStore
from gateway.gateway import Gateway
from gateway.plugins.usage import USAGE, SqlCallLog
from gateway.storage import SqlCatalog, SqliteDatabase
from tests.core.sources.live_source import BrokenStore
from tests.core.sources.test_name_bindings import names
from tests.fakes import Shelf, tool


async def test_names_last_only_for_the_process_if_listings_cannot_be_stored(tmp_path: Path) -> None:

    class Store:
        def __init__(self) -> None:
            whole = SqlCatalog.in_files(tmp_path / "entries.sqlite3")
            self.vectors, self.entries, self.listings = MemoryVectorStore(), whole, BrokenStore()
            database = SqliteDatabase(tmp_path / "usage.sqlite3", USAGE)
            self.call_log = SqlCallLog(database)

        def close(self) -> None:
            self.entries.close()

    gateway = Gateway(strategy="graph", store=Store())
    gateway.add_server("zeta", server=Shelf([tool("pay")]).server)
    before = await gateway.report()
    gateway.add_server("alpha", server=Shelf([tool("pay")]).server)
    exposed = await names(gateway)
    gateway.close()

    assert ["names are not stored for the next start: full"] == [
        note.detail for note in before.diagnostics if note.code == "catalog_unavailable"
    ]
    assert {"zeta/pay": "pay", "alpha/pay": "alpha_pay"} == exposed
