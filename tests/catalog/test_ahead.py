"""What a start asks of the records is read in one go, and is what one by one would give."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from gateway.catalog.approvals import LAUNCH
from gateway.sources.listing_store import Recorded
from gateway.sources.prefetch import Ahead
from gateway.storage.listing_store import SqliteRecords
from gateway.testing import ManualClock
from gateway.types.listing import Listing
from tests.fakes import tool

DAY_S = 24 * 3600.0


class CountedRecords(SqliteRecords):
    """Counts what is asked one by one."""

    asked = 0

    def listing(self, fingerprint: str) -> Recorded | None:
        self.asked += 1
        return super().listing(fingerprint)

    def see(self, owner: str, digests: Mapping[str, str]) -> frozenset[str]:
        self.asked += 1
        return super().see(owner, digests)


def listing(name: str, digest: str = "d") -> Listing:
    return Listing(tools=(tool(name),), digests={name: digest, "é": "e"})


class Room:
    """A store with three servers, and what is read of it ahead."""

    def __init__(self, path: Path) -> None:
        self.wall = ManualClock(1_000_000.0)
        self.store = CountedRecords(path, wall=self.wall)
        self.ahead = Ahead(self.store)
        for name in ("a", "b", "c"):
            self.store.keep(name, name, listing(name))
            self.store.see(f"file#{name}", listing(name).digests)
            self.store.see(f"file#{name}", {LAUNCH: "run"})
        self.store.asked = 0

    def expect(self, *names: str) -> None:
        for name in names:
            self.ahead.expect(name, f"file#{name}")

    def asked(self) -> int:
        asked, self.store.asked = self.store.asked, 0
        return asked


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    found = Room(tmp_path / "catalog.sqlite3")
    yield found
    found.ahead.close()


def test_what_is_expected_is_read_once_for_all(room: Room) -> None:
    """Lists, pins and pinned command lines, those that are not there too."""
    room.expect("a", "b", "d")

    found = [room.ahead.listing(name) for name in ("b", "a", "d")]
    changed = [room.ahead.see(f"file#{name}", listing(name).digests) for name in ("a", "b")]
    launched = [room.ahead.see(f"file#{name}", {LAUNCH: "run"}) for name in ("a", "b")]

    assert 0 == room.asked()
    assert [room.store.listing("b"), room.store.listing("a"), None] == found
    assert [frozenset()] * 4 == [*changed, *launched]


def test_what_was_given_once_is_asked_of_the_store(room: Room) -> None:
    """Another process may have written since."""
    room.expect("a")
    room.ahead.listing("a")
    room.ahead.see("file#a", listing("a").digests)
    room.store.keep("a", "a", listing("other"))

    found = room.ahead.listing("a")
    room.ahead.see("file#a", listing("a").digests)

    assert found is not None
    assert (["other"], 2) == ([each.name for each in found.listing.tools], room.asked())


@pytest.mark.parametrize(
    ("digests", "changed"),
    [({"a": "x", "é": "e"}, "a"), ({"a": "d"}, ""), ({"a": "d", "é": "e", "n": "f"}, "")],
)
def test_what_is_pinned_otherwise_is_noted_by_the_store(
    room: Room, digests: Mapping[str, str], changed: str
) -> None:
    """Changed, gone and new names alike."""
    room.expect("a")

    found = room.ahead.see("file#a", digests)

    assert (frozenset(changed), 1) == (found, room.asked())
    assert found == room.ahead.changed("file#a")


def test_what_waits_for_approval_is_told_each_time(room: Room) -> None:
    """A change that was seen already is a change until somebody approves it."""
    room.store.see("file#a", {"a": "x", "é": "e"})
    room.expect("a")
    before = room.ahead.see("file#a", {"a": "x", "é": "e"})
    room.expect("a")
    room.ahead.approve("file#a", ["a"])
    after = room.ahead.see("file#a", {"a": "x", "é": "e"})

    assert (frozenset("a"), frozenset()) == (before, after)


def test_what_is_written_meanwhile_counts(room: Room) -> None:
    """A list that was read ahead is not given when a newer one was kept, or none."""
    room.expect("a", "b", "c")
    room.ahead.listing("c")
    room.ahead.keep("a", "a", listing("other"))
    room.ahead.forget("b")
    newer, gone = room.ahead.listing("a"), room.ahead.listing("b")

    assert newer is not None
    assert (["other"], None) == ([each.name for each in newer.listing.tools], gone)


def test_who_is_used_is_noted_for_many_too(room: Room) -> None:
    """What nobody used for a month is forgotten; reading ahead is use."""
    room.wall.tick(20 * DAY_S)
    room.expect("a", "b")
    room.ahead.listing("a")
    room.wall.tick(20 * DAY_S)
    room.ahead.sweep()

    assert [True, True, False] == [room.store.listing(name) is not None for name in ("a", "b", "c")]
