"""What is remembered of servers between two starts."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

import pytest

from gateway.errors import StoreError
from gateway.storage.listing_store import SqliteListingStore
from gateway.storage.migrations import CATALOG
from gateway.storage.sqlite import Database
from gateway.testing import ManualClock
from tests.storage.listings import LISTING


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "catalog.sqlite3"


def test_tools_that_are_torn_are_listed_anew(path: Path) -> None:
    """They are parsed late, so that they are checked early."""
    records = SqliteListingStore(path)
    records.keep("f", "srv", LISTING)
    with sqlite3.connect(path) as file:
        file.execute("UPDATE listings SET listing = replace(listing, 'Pay', 'pay')")
    file.close()

    assert records.listing("f") is None


def test_lazy_tools_are_parsed_once_and_not_to_be_counted(path: Path) -> None:
    """A slice, one of them, and a comparison give what a tuple would."""
    records = SqliteListingStore(path)
    records.keep("f", "srv", LISTING)
    found = records.listing("f")
    assert found is not None
    tools = found.listing.tools

    assert (2, LISTING.tools[:1], LISTING.tools[1]) == (len(tools), tools[:1], tools[1])
    assert tools[0] is tools[0]
    assert tools != LISTING.tools[:1]


@pytest.mark.parametrize("text", ["{", "[]", '{"tools": [{"name": "x"}]}', '{"tools": 7}'])
def test_a_row_that_cannot_be_read_is_no_listing(path: Path, text: str) -> None:
    """Of an older or newer version, say; it is listed anew."""
    records = SqliteListingStore(path)
    records.keep("f", "srv", LISTING)
    with sqlite3.connect(path) as other:
        other.execute("UPDATE listings SET listing = ?", (text,))

    assert records.listing("f") is None


def test_a_file_that_is_no_database_is_set_aside_and_begun_anew(path: Path) -> None:
    """Tool lists can be read again."""
    path.parent.mkdir()
    path.write_bytes(b"not a database" * 500)
    records = SqliteListingStore(path)

    with pytest.raises(StoreError, match=r"catalog store 'catalog\.sqlite3' was corrupt") as caught:
        records.listing("f")

    assert caught.value.rebuilt
    records.keep("f", "srv", LISTING)
    assert records.listing("f") is not None


def test_what_changed_is_told_of_though_nobody_can_write_it_down(path: Path) -> None:
    """A full disk, or a file that may only be read: here one that somebody else holds."""
    SqliteListingStore(path).record_seen("o", {"a": "1", "b": "1"})
    records = SqliteListingStore(Database(path, CATALOG, busy_s=0))
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")

        changed = records.record_seen("o", {"a": "2", "b": "1", "c": "1"})
        with pytest.raises(StoreError, match="locked"):
            records.record_seen("o", {"b": "1", "c": "1"})

    assert {"a"} == changed
    assert frozenset() == records.changed("o")


def test_a_start_writes_nothing_that_is_known(path: Path) -> None:
    """Many processes may start at once over one file."""
    store = SqliteListingStore(path)
    store.keep("f", "srv", LISTING)
    store.record_seen("o", {"a": "1"})
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        start = SqliteListingStore(Database(path, CATALOG, busy_s=0))

        assert frozenset() == start.record_seen("o", {"a": "1"})
        assert start.listing("f") is not None


def test_the_use_of_a_listing_is_recorded_when_the_store_closes(path: Path) -> None:
    """A listing that some process reads now and then is not deleted."""
    wall = ManualClock(0.0)
    store = SqliteListingStore(path, wall=wall)
    store.keep("f", "srv", LISTING)
    for _ in range(2):
        wall.tick(20 * 24 * 3600)
        assert store.listing("f") is not None
        store.close()
    store.sweep()

    assert store.listing("f") is not None
