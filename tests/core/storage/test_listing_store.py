"""Stored listings in SQLite."""

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
    """Return the path of a catalog file that does not exist yet."""
    return tmp_path / "deep" / "catalog.sqlite3"


def test_damaged_listing_is_discarded(path: Path) -> None:
    """Definitions are parsed late, so damage must be detected when the row is read."""
    records = SqlCatalog.in_files(path)
    records.keep("f", "srv", LISTING)
    with sqlite3.connect(path) as file:
        file.execute("UPDATE listings SET listing = replace(listing, 'Pay', 'pay')")
    file.close()

    assert records.listing("f") is None


def test_stored_definitions_are_parsed_only_when_needed_and_once(path: Path) -> None:
    """The stored listing is equal to a fresh one before and after its definitions are parsed."""
    store = SqlCatalog.in_files(path)
    store.keep("f", "srv", LISTING)
    stored = store.listing("f")
    assert stored is not None
    definitions, (first, *_) = stored.listing.definitions, LISTING.definitions

    assert (4, tuple(LISTING.definitions)) == (len(definitions), tuple(definitions))
    assert next(iter(definitions)) is next(iter(definitions))
    assert first in definitions


def test_stored_and_fresh_listing_have_the_same_digest() -> None:
    """The digest changes with any definition. A listing that is suspicious or not stored has no
    digest.
    """
    first, *others = LISTING.definitions
    doubt = Diagnostic(stage="catalog", code="tool_suspicious")
    changed, doubted = (
        replace(LISTING, definitions=(item, *others))
        for item in (replace(first, title="Other"), replace(first, diagnostics=(doubt,)))
    )

    assert digest_of(LISTING) == digest_of(decode(encode(LISTING))) != digest_of(changed) != ""
    assert "" == digest_of(doubted) == digest_of(replace(LISTING, digests={}))


@pytest.mark.parametrize("text", ["{", "[]", '{"tools": [{"name": "x"}]}', '{"tools": 7}'])
def test_unreadable_listing_counts_as_missing(path: Path, text: str) -> None:
    """Another version of this package may have written the row; the server is listed again."""
    records = SqlCatalog.in_files(path)
    records.keep("f", "srv", LISTING)
    with sqlite3.connect(path) as other:
        other.execute("UPDATE listings SET listing = ?", (text,))

    assert records.listing("f") is None


def test_changed_definition_is_reported_even_if_it_cannot_be_stored(path: Path) -> None:
    """In practice the disk is full or the file read-only; in this test another connection has the
    lock.
    """
    SqlCatalog.in_files(path).record_seen("o", {"a": "1", "b": "1"})
    records = SqlCatalog.in_files(path, busy_s=0)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")

        changed = records.record_seen("o", {"a": "2", "b": "1", "c": "1"})
        with pytest.raises(StoreError, match="locked"):
            records.record_seen("o", {"b": "1", "c": "1"})

    assert {"a"} == changed
    assert frozenset() == records.changed("o")


def test_start_with_stored_listings_writes_nothing(path: Path) -> None:
    """Many processes may start at once with one file, and writers would wait for each other."""
    store = SqlCatalog.in_files(path)
    store.keep("f", "srv", LISTING)
    store.record_seen("o", {"a": "1"})
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        start = SqlCatalog.in_files(path, busy_s=0)

        assert frozenset() == start.record_seen("o", {"a": "1"})
        assert start.listing("f") is not None


def test_close_records_the_use_of_listings(path: Path) -> None:
    """Otherwise listings that are only read would be deleted."""
    wall = ManualClock(0.0)
    store = SqlCatalog.in_files(path, wall=wall)
    store.keep("f", "srv", LISTING)
    for _ in range(2):
        wall.tick(20 * 24 * 3600)
        assert store.listing("f") is not None
        store.close()
    store.sweep()

    assert store.listing("f") is not None
