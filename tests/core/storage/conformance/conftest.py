"""A store, and other stores on the same data."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.storage import Store
from gateway.testing import ManualClock
from tests.core.storage.conformance.stores import STORES, Opener, Place
from tests.postgres_server import DATABASES


@pytest.fixture
def wall() -> ManualClock:
    """A clock for the time of day."""
    return ManualClock(20_000 * 24 * 3600.0 + 100)


@pytest.fixture(params=DATABASES)
def opened(request: pytest.FixtureRequest, tmp_path: Path, wall: ManualClock) -> Iterator[Opener]:
    """Yield a function that opens stores of the same data."""
    place = Place(folder=tmp_path, postgres=lambda: request.getfixturevalue("postgres"))
    opener = STORES[request.param](place, wall)
    stores: list[Store] = []

    def another() -> Store:
        stores.append(opener())
        return stores[-1]

    yield another
    for store in stores:
        store.close()


@pytest.fixture
def store(opened: Opener) -> Store:
    return opened()
