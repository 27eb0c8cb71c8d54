"""Servers that stand in the catalog, and what is done beside the searches."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from gateway.errors import StoreError
from gateway.gateway import Gateway
from gateway.storage import CATALOG, SqlCatalog, SqliteDatabase
from gateway.testing import ManualClock, TemporaryStore
from gateway.types import Listing
from tests.conftest import OpenGateway
from tests.fakes import until

MONTH_S = 31 * 24 * 3600.0


class Swept(SqlCatalog):
    """Tells when it is swept."""

    def __init__(self, folder: Path, *, wall: ManualClock, fault: Exception | None = None) -> None:
        super().__init__(SqliteDatabase(folder / "catalog.sqlite3", CATALOG), wall=wall)
        self.sweeps = 0
        self.done = threading.Event()
        self.fault = fault

    def sweep(self) -> None:
        """Sweep, or fail."""
        super().sweep()
        self.sweeps += 1
        self.done.set()
        if self.fault:
            raise self.fault

    async def swept(self) -> int:
        """Wait for the next end of a sweep; how many there were."""
        assert await asyncio.to_thread(self.done.wait, 60)
        self.done.clear()
        return self.sweeps


def swept_by(open_gateway: OpenGateway, records: Swept, clock: ManualClock) -> Gateway:
    store = TemporaryStore()
    store.listings = records
    return open_gateway(store=store, vector_store=None, clock=clock)


async def test_every_five_minutes_a_search_has_the_forgotten_swept_away(
    open_gateway: OpenGateway, tmp_path: Path
) -> None:
    """And none in between; nobody waits for it."""
    clock, wall = ManualClock(), ManualClock()
    records = Swept(tmp_path, wall=wall)
    gateway = swept_by(open_gateway, records, clock)
    records.keep("gone", "gone", Listing())
    assert 1 == await records.swept()  # what is new has the file swept at once
    wall.tick(MONTH_S)

    for seconds in (299, 2, 299):
        clock.tick(seconds)
        await gateway.search("a")

    assert 2 == await records.swept()
    assert records.listing("gone") is None


@pytest.mark.parametrize("fault", [None, StoreError("the disk is full"), StopIteration()], ids=repr)
async def test_a_store_that_cannot_be_swept_costs_no_search(
    open_gateway: OpenGateway, fault: Exception | None, tmp_path: Path
) -> None:
    """It is tried again when its time has come."""
    clock = ManualClock()
    records = Swept(tmp_path, wall=ManualClock(), fault=fault)
    gateway = swept_by(open_gateway, records, clock)

    async def tried_again() -> bool:
        # Who asks while a sweep still ends has none begun.
        clock.tick(301)
        found = await gateway.search("a")
        assert not found.degraded
        return records.sweeps > 1

    await until(tried_again)
