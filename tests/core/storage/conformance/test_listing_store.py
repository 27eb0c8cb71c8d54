"""What every `ListingStore` promises: tool lists, and what was approved of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.sources import ListingStore
from gateway.storage import Store
from gateway.testing import ManualClock
from gateway.types import Listing
from tests.core.storage.conformance.stores import Opener
from tests.core.storage.listings import LISTING

DAY_S = 24 * 3600.0


@pytest.fixture
def records(store: Store) -> ListingStore:
    return store.listings


def test_a_listing_comes_back_as_it_was_also_in_another_process(
    opened: Opener, wall: ManualClock
) -> None:
    """All that a search and a call read of it."""
    first = opened()
    first.listings.keep("f", "srv", LISTING)
    now = wall()
    first.close()
    wall.tick(5)

    found = opened().listings.listing("f")

    assert found is not None
    definitions = tuple(found.listing.definitions)
    assert (LISTING, now) == (replace(found.listing, definitions=definitions), found.listed_at)


def test_what_is_stored_of_many_servers_is_read_together(records: ListingStore) -> None:
    """Lists by configuration, pins by owner: approved first, then seen; of no other server."""
    records.keep("f", "srv", LISTING)
    records.keep("other", "srv", LISTING)
    records.record_seen("o", {"a": "1"})
    records.record_seen("o", {"a": "2"})
    records.record_seen("p", {"a": "9"})

    found = records.read({"f": "o", "absent": "q"})

    assert ["f", "absent"] == list(found)
    stored, absent = found.values()
    assert stored.listing is not None
    assert LISTING.tools == stored.listing.listing.tools
    assert {"a": ("1", "2")} == stored.pins
    assert (None, {}) == (absent.listing, absent.pins)
    assert {} == records.read({})


def test_a_newer_listing_takes_the_place(records: ListingStore, wall: ManualClock) -> None:
    """A server is listed again and again."""
    records.keep("f", "srv", LISTING)
    wall.tick(9)
    records.keep("f", "srv", Listing())

    found = records.listing("f")

    assert found is not None
    assert (0, wall()) == (len(found.listing.tools), found.listed_at)


def test_another_configuration_is_another_server(records: ListingStore) -> None:
    """And what is forgotten is gone."""
    records.keep("f", "srv", LISTING)

    assert records.listing("g") is None
    records.forget("f")
    records.forget("never there")
    assert records.listing("f") is None


def test_what_nobody_used_for_a_month_is_swept_away(
    records: ListingStore, wall: ManualClock
) -> None:
    """A store must not grow with every configuration that ever was."""
    records.keep("old", "a", LISTING)
    records.keep("used", "b", LISTING)
    wall.tick(20 * DAY_S)
    records.listing("used")
    wall.tick(11 * DAY_S)
    records.keep("new", "c", Listing())
    records.sweep()

    assert [True, False, False] == [
        records.listing(name) is None for name in ("old", "used", "new")
    ]


def test_a_new_configuration_sweeps_too(records: ListingStore, wall: ManualClock) -> None:
    """A process that lives for one search comes to no sweep; what it knows costs it none."""
    records.keep("old", "a", LISTING)
    records.keep("known", "b", LISTING)
    wall.tick(31 * DAY_S)
    records.keep("known", "b", Listing())
    left = {each for each in ("old",) if records.listing(each)}
    wall.tick(31 * DAY_S)
    records.keep("new", "c", Listing())

    assert {"old"} == left
    assert {"new"} == {each for each in ("old", "known", "new") if records.listing(each)}


def test_a_definition_is_approved_when_it_is_first_seen_and_a_change_is_told(
    records: ListingStore,
) -> None:
    """Until somebody approves it."""
    first = records.record_seen("o", {"a": "1", "b": "1"})
    changed = records.record_seen("o", {"a": "2", "b": "1", "c": "9"})
    other = records.record_seen("p", {"a": "2"})
    gone = records.record_seen("o", {"b": "1"})
    records.approve("o", ["a"])

    assert [[], ["a"], [], []] == [sorted(each) for each in (first, changed, other, gone)]
    assert set() == records.changed("o")
    assert set() == records.record_seen("o", {"a": "2"})
    assert {"a"} == records.record_seen("o", {"a": "1"})
    assert set() == records.record_seen("o", {})


def test_what_nobody_looked_at_is_not_approved(records: ListingStore) -> None:
    """A server may change a definition between the look and the approval."""
    records.record_seen("o", {"a": "1"})
    records.record_seen("o", {"a": "3"})

    records.approve("o", ["a"], seen="2")
    before = records.pins("o")
    records.approve("o", ["a"], seen="3")

    assert {"a": ("1", "3")} == before
    assert {"a": ("3", "3")} == records.pins("o")


def test_a_definition_is_known_by_its_digest_as_long_as_it_is_approved(
    records: ListingStore,
) -> None:
    """A person sees what was approved beside what is listed now."""
    (pay, look, *_), digests = LISTING.definitions, LISTING.digests
    records.keep("f", "srv", LISTING)
    records.record_seen("o", digests)
    changed = replace(pay, description="Pay twice.")
    records.keep("f", "srv", Listing(definitions=(changed, look), digests={**digests, "pay": "d3"}))
    records.record_seen("o", {"pay": "d3"})
    found = [records.definition(digest) for digest in ("d1", "d3", "d2", "none")]
    records.approve("o", ["pay"])
    records.sweep()

    assert [pay, changed, look, None] == found
    assert None is records.definition("d1")


def test_what_one_process_approves_is_approved_for_the_others(opened: Opener) -> None:
    """`gateway approve` is another process than the gateway that waits for it."""
    gateway, person = opened(), opened()
    gateway.listings.record_seen("o", {"a": "1"})
    assert {"a"} == gateway.listings.record_seen("o", {"a": "2"})

    person.listings.approve("o", ["a", "never there"])

    assert set() == gateway.listings.record_seen("o", {"a": "2"})
    assert set() == person.listings.changed("nobody")
