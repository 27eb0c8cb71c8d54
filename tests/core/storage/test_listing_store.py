"""What is remembered of servers between two starts."""

from __future__ import annotations

import contextlib
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.errors import StoreError
from gateway.sources import decode, digest_of, encode
from gateway.storage import SqlCatalog
from gateway.testing import ManualClock
from gateway.types import Diagnostic
from tests.core.storage.listings import LISTING


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "catalog.sqlite3"


def test_tools_that_are_torn_are_listed_anew(path: Path) -> None:
    """They are parsed late, so that they are checked early."""
    records = SqlCatalog.in_files(path)
    records.keep("f", "srv", LISTING)
    with sqlite3.connect(path) as file:
        file.execute("UPDATE listings SET listing = replace(listing, 'Pay', 'pay')")
    file.close()

    assert records.listing("f") is None


def test_definitions_are_parsed_late_and_once(path: Path) -> None:
    """They are what a tuple of them would be."""
    store = SqlCatalog.in_files(path)
    store.keep("f", "srv", LISTING)
    found = store.listing("f")
    assert found is not None
    definitions, (first, *_) = found.listing.definitions, LISTING.definitions

    assert (4, tuple(LISTING.definitions)) == (len(definitions), tuple(definitions))
    assert next(iter(definitions)) is next(iter(definitions))
    assert first in definitions


def test_a_listing_has_one_digest_whether_it_is_stored_or_fresh() -> None:
    """And another one if any definition is another; none if it is doubted or was never stored."""
    first, *others = LISTING.definitions
    doubt = Diagnostic(stage="catalog", code="tool_suspicious")
    changed, doubted = (
        replace(LISTING, definitions=(item, *others))
        for item in (replace(first, title="Other"), replace(first, diagnostics=(doubt,)))
    )

    assert digest_of(LISTING) == digest_of(decode(encode(LISTING))) != digest_of(changed) != ""
    assert "" == digest_of(doubted) == digest_of(replace(LISTING, digests={}))


@pytest.mark.parametrize("text", ["{", "[]", '{"tools": [{"name": "x"}]}', '{"tools": 7}'])
def test_a_row_that_cannot_be_read_is_no_listing(path: Path, text: str) -> None:
    """Of an older or newer version, say; it is listed anew."""
    records = SqlCatalog.in_files(path)
    records.keep("f", "srv", LISTING)
    with sqlite3.connect(path) as other:
        other.execute("UPDATE listings SET listing = ?", (text,))

    assert records.listing("f") is None


def test_what_changed_is_told_of_though_nobody_can_write_it_down(path: Path) -> None:
    """A full disk, or a file that may only be read: here one that somebody else holds."""
    SqlCatalog.in_files(path).record_seen("o", {"a": "1", "b": "1"})
    records = SqlCatalog.in_files(path, busy_s=0)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")

        changed = records.record_seen("o", {"a": "2", "b": "1", "c": "1"})
        with pytest.raises(StoreError, match="locked"):
            records.record_seen("o", {"b": "1", "c": "1"})

    assert {"a"} == changed
    assert frozenset() == records.changed("o")


def test_a_start_writes_nothing_that_is_known(path: Path) -> None:
    """Many processes may start at once over one file."""
    store = SqlCatalog.in_files(path)
    store.keep("f", "srv", LISTING)
    store.record_seen("o", {"a": "1"})
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        start = SqlCatalog.in_files(path, busy_s=0)

        assert frozenset() == start.record_seen("o", {"a": "1"})
        assert start.listing("f") is not None


def test_the_use_of_a_listing_is_recorded_when_the_store_closes(path: Path) -> None:
    """A listing that some process reads now and then is not deleted."""
    wall = ManualClock(0.0)
    store = SqlCatalog.in_files(path, wall=wall)
    store.keep("f", "srv", LISTING)
    for _ in range(2):
        wall.tick(20 * 24 * 3600)
        assert store.listing("f") is not None
        store.close()
    store.sweep()

    assert store.listing("f") is not None
