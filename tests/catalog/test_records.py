"""What is remembered of servers between two starts."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Mapping
from pathlib import Path

import pytest

from gateway.errors import StoreError
from gateway.sources.listing_codec import LateDigests, seen_of
from gateway.storage.listing_store import SqliteRecords
from gateway.storage.migrations import CATALOG
from gateway.storage.sqlite import Database
from gateway.types.listing import Listing
from tests.catalog.listed import LISTING


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "catalog.sqlite3"


def test_tools_that_are_torn_are_listed_anew(path: Path) -> None:
    """They are read late, so that they are looked at early."""
    records = SqliteRecords(path)
    records.keep("f", "srv", LISTING)
    with sqlite3.connect(path) as file:
        file.execute("UPDATE listings SET listing = replace(listing, 'Pay', 'pay')")
    file.close()

    assert records.listing("f") is None


def test_late_tools_are_read_once_and_never_counted_by_reading(path: Path) -> None:
    """A slice, one of them, and a comparison give what a tuple would."""
    records = SqliteRecords(path)
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
    records = SqliteRecords(path)
    records.keep("f", "srv", LISTING)
    with sqlite3.connect(path) as other:
        other.execute("UPDATE listings SET listing = ?", (text,))

    assert records.listing("f") is None


def test_a_file_that_is_no_database_is_set_aside_and_begun_anew(path: Path) -> None:
    """Tool lists can be read again."""
    path.parent.mkdir()
    path.write_bytes(b"not a database" * 500)
    records = SqliteRecords(path)

    with pytest.raises(StoreError, match=r"catalog store 'catalog\.sqlite3' was corrupt") as caught:
        records.listing("f")

    assert caught.value.rebuilt
    records.keep("f", "srv", LISTING)
    assert records.listing("f") is not None


def test_digests_are_read_when_somebody_looks_at_one() -> None:
    """A start of hundreds of servers compares what they come to, and reads none."""
    reads: list[str] = []

    def read() -> Mapping[str, str]:
        reads.append("read")
        return {"a": "1"}

    found = LateDigests(1, "seen", read)
    before = len(found), bool(found), seen_of(found), len(reads)

    assert (1, True, "seen", 0) == before
    assert ({"a": "1"}, ["a"], 1) == (dict(found), list(found), len(reads))


def test_what_pins_come_to_is_kept_until_somebody_writes_one(path: Path) -> None:
    """Also a version of this package that knows nothing of it, and has the same file open."""
    records = SqliteRecords(path)
    records.see("o", {"a": "1", "b": "2"})
    before = [records.pins(["o"]) for _ in range(2)]
    with sqlite3.connect(path) as file:
        kept = file.execute("SELECT owner FROM approved").fetchall()
        file.execute("UPDATE pins SET seen = '3' WHERE name = 'b'")
    changed = records.pins(["o"])
    records.approve("o", ["b"])
    approved = records.pins(["o"])
    with sqlite3.connect(path) as file:
        file.execute("DELETE FROM pins WHERE name = 'b'")
    file.close()

    assert [{("o", False): seen_of({"a": "1", "b": "2"})}] * 2 == before
    assert [("o",)] == kept
    assert ({}, {("o", False): seen_of({"a": "1", "b": "3"})}) == (changed, approved)
    assert {("o", False): seen_of({"a": "1"})} == records.pins(["o"])


def test_a_start_writes_nothing_that_is_known(path: Path) -> None:
    """Many processes may start at once over one file."""
    records = SqliteRecords(path)
    records.see("o", {"a": "1"})
    records.pins(["o"])
    with sqlite3.connect(path) as file:
        file.execute("BEGIN IMMEDIATE")
        found = SqliteRecords(Database(path, CATALOG, busy_s=0)).pins(["o"])
    file.close()

    assert {("o", False): seen_of({"a": "1"})} == found


def test_tools_of_many_lists_are_read_late_and_only_as_they_were(path: Path) -> None:
    """A start that finds its index reads none of them."""
    records = SqliteRecords(path)
    records.keep("f", "srv", LISTING)
    same, other, gone = (records.listings(["f"])["f"].listing.tools for _ in range(3))

    assert LISTING.tools == same
    records.keep("f", "srv", Listing())
    with pytest.raises(StoreError, match="others by now"):
        list(other)
    records.forget("f")
    with pytest.raises(StoreError, match="not there any more"):
        list(gone)


def test_a_head_is_made_anew_of_what_somebody_else_wrote(path: Path) -> None:
    """A version of this package that knows of no heads may have the same file open."""
    records = SqliteRecords(path)
    records.keep("f", "srv", LISTING)
    records.keep("g", "srv", Listing(instructions="Other."))
    with sqlite3.connect(path) as file:
        file.execute(
            "UPDATE listings SET listing = (SELECT listing FROM listings WHERE fingerprint = 'g') "
            "WHERE fingerprint = 'f'"
        )
        left = file.execute("SELECT fingerprint FROM heads").fetchall()
    file.close()

    found = records.listings(["f", "g"])

    assert [("g",)] == left
    assert ["Other."] * 2 == [each.listing.instructions for each in found.values()]


def test_what_changed_is_told_of_though_nobody_can_write_it_down(path: Path) -> None:
    """A full disk, or a file that may only be read: here one that somebody else holds."""
    SqliteRecords(path).see("o", {"a": "1", "b": "1"})
    records = SqliteRecords(Database(path, CATALOG, busy_s=0))
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")

        changed = records.see("o", {"a": "2", "b": "1", "c": "1"})
        with pytest.raises(StoreError, match="locked"):
            records.see("o", {"b": "1", "c": "1"})

    assert {"a"} == changed
    assert frozenset() == records.changed("o")
