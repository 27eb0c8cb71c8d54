"""Sweeps of the catalog store, which delete unused listings, started by searches."""

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


class SweptCatalog(SqlCatalog):
    """A store that counts its sweeps."""

    def __init__(self, folder: Path, *, wall: ManualClock, fault: Exception | None = None) -> None:
        super().__init__(SqliteDatabase(folder / "catalog.sqlite3", CATALOG), wall=wall)
        self.sweeps = 0
        self.done = threading.Event()
        self.fault = fault

    def sweep(self) -> None:
        """Sweep, or raise the error of the test."""
        super().sweep()
        self.sweeps += 1
        self.done.set()
        if self.fault:
            raise self.fault

    async def swept(self) -> int:
        """Wait for the end of the next sweep, and return the number of sweeps."""
        assert await asyncio.to_thread(self.done.wait, 60)
        self.done.clear()
        return self.sweeps


def gateway_with_records(
    open_gateway: OpenGateway, records: SweptCatalog, clock: ManualClock
) -> Gateway:
    store = TemporaryStore()
    store.listings = records
    return open_gateway(store=store, vector_store=None, clock=clock)


async def test_search_starts_a_sweep_of_the_store_every_five_minutes(
    open_gateway: OpenGateway, tmp_path: Path
) -> None:
    """A search within five minutes of the last sweep starts none. A search does not wait for a
    sweep.
    """
    clock, wall = ManualClock(), ManualClock()
    records = SweptCatalog(tmp_path, wall=wall)
    gateway = gateway_with_records(open_gateway, records, clock)
    records.keep("gone", "gone", Listing())
    assert 1 == await records.swept()  # a new configuration is swept at once
    wall.tick(MONTH_S)

    for seconds in (299, 2, 299):
        clock.tick(seconds)
        await gateway.search("a")

    assert 2 == await records.swept()
    assert records.listing("gone") is None


@pytest.mark.parametrize("fault", [None, StoreError("the disk is full"), StopIteration()], ids=repr)
async def test_failing_sweep_of_the_store_does_not_affect_searches(
    open_gateway: OpenGateway, fault: Exception | None, tmp_path: Path
) -> None:
    """After the usual interval, another search starts the next sweep."""
    clock = ManualClock()
    records = SweptCatalog(tmp_path, wall=ManualClock(), fault=fault)
    gateway = gateway_with_records(open_gateway, records, clock)

    async def tried_again() -> bool:
        # A sweep that is still running prevents a new one.
        clock.tick(301)
        result = await gateway.search("a")
        assert not result.degraded
        return records.sweeps > 1

    await until(tried_again)
