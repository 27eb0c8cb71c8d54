"""Tests of all implementations of `ListingStore`."""

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
def listing_store(store: Store) -> ListingStore:
    """Return the part of the store for listings."""
    return store.listings


def test_listing_is_read_unchanged_by_other_processes(opened: Opener, wall: ManualClock) -> None:
    """Compared are all fields that a search or a call reads."""
    first = opened()
    first.listings.keep("f", "srv", LISTING)
    now = wall()
    first.close()
    wall.tick(5)

    stored = opened().listings.listing("f")

    assert stored is not None
    definitions = tuple(stored.listing.definitions)
    assert (LISTING, now) == (replace(stored.listing, definitions=definitions), stored.listed_at)


def test_listing_store_reads_the_data_of_several_servers_at_once(
    listing_store: ListingStore,
) -> None:
    """Listings are stored by the fingerprint of the configuration, pins (approved, last seen) by
    owner. Servers that were not requested are absent.
    """
    listing_store.keep("f", "srv", LISTING)
    listing_store.keep("other", "srv", LISTING)
    listing_store.record_seen("o", {"a": "1"})
    listing_store.record_seen("o", {"a": "2"})
    listing_store.record_seen("p", {"a": "9"})

    servers = listing_store.read({"f": "o", "absent": "q"})

    assert ["f", "absent"] == list(servers)
    stored, absent = servers.values()
    assert stored.listing is not None
    assert LISTING.tools == stored.listing.listing.tools
    assert {"a": ("1", "2")} == stored.pins
    assert (None, {}) == (absent.listing, absent.pins)
    assert {} == listing_store.read({})


def test_newer_stored_listing_replaces_the_older(
    listing_store: ListingStore, wall: ManualClock
) -> None:
    listing_store.keep("f", "srv", LISTING)
    wall.tick(9)
    listing_store.keep("f", "srv", Listing())

    stored = listing_store.listing("f")

    assert stored is not None
    assert (0, wall()) == (len(stored.listing.tools), stored.listed_at)


def test_each_configuration_has_its_own_listing(listing_store: ListingStore) -> None:
    listing_store.keep("f", "srv", LISTING)

    assert listing_store.listing("g") is None
    listing_store.forget("f")
    listing_store.forget("never there")
    assert listing_store.listing("f") is None


def test_listing_unused_for_a_month_is_deleted(
    listing_store: ListingStore, wall: ManualClock
) -> None:
    """Otherwise each change of a server's configuration would leave a listing behind."""
    listing_store.keep("old", "a", LISTING)
    listing_store.keep("used", "b", LISTING)
    wall.tick(20 * DAY_S)
    listing_store.listing("used")
    wall.tick(11 * DAY_S)
    listing_store.keep("new", "c", Listing())
    listing_store.sweep()

    assert [True, False, False] == [
        listing_store.listing(name) is None for name in ("old", "used", "new")
    ]


def test_first_listing_of_a_configuration_deletes_old_listings(
    listing_store: ListingStore, wall: ManualClock
) -> None:
    """A short-lived process starts no other sweep. A listing of a known configuration starts
    none.
    """
    listing_store.keep("old", "a", LISTING)
    listing_store.keep("known", "b", LISTING)
    wall.tick(31 * DAY_S)
    listing_store.keep("known", "b", Listing())
    remaining = {fingerprint for fingerprint in ("old",) if listing_store.listing(fingerprint)}
    wall.tick(31 * DAY_S)
    listing_store.keep("new", "c", Listing())

    assert {"old"} == remaining
    assert {"new"} == {
        fingerprint for fingerprint in ("old", "known", "new") if listing_store.listing(fingerprint)
    }


def test_first_definition_is_approved_and_changes_are_reported(listing_store: ListingStore) -> None:
    """A change is reported again until a person approves it."""
    first = listing_store.record_seen("o", {"a": "1", "b": "1"})
    changed = listing_store.record_seen("o", {"a": "2", "b": "1", "c": "9"})
    other = listing_store.record_seen("p", {"a": "2"})
    gone = listing_store.record_seen("o", {"b": "1"})
    listing_store.approve("o", ["a"])

    assert [[], ["a"], [], []] == [sorted(name) for name in (first, changed, other, gone)]
    assert set() == listing_store.changed("o")
    assert set() == listing_store.record_seen("o", {"a": "2"})
    assert {"a"} == listing_store.record_seen("o", {"a": "1"})
    assert set() == listing_store.record_seen("o", {})


def test_approve_ignores_definitions_changed_since_the_review(listing_store: ListingStore) -> None:
    """A server may change a definition between review and approval."""
    listing_store.record_seen("o", {"a": "1"})
    listing_store.record_seen("o", {"a": "3"})

    listing_store.approve("o", ["a"], seen="2")
    before = listing_store.pins("o")
    listing_store.approve("o", ["a"], seen="3")

    assert {"a": ("1", "3")} == before
    assert {"a": ("3", "3")} == listing_store.pins("o")


def test_definition_is_available_by_digest_while_approved(listing_store: ListingStore) -> None:
    """A person compares the approved definition with the one that the server lists now."""
    (pay, look, *_), digests = LISTING.definitions, LISTING.digests
    listing_store.keep("f", "srv", LISTING)
    listing_store.record_seen("o", digests)
    changed = replace(pay, description="Pay twice.")
    listing_store.keep(
        "f", "srv", Listing(definitions=(changed, look), digests={**digests, "pay": "d3"})
    )
    listing_store.record_seen("o", {"pay": "d3"})
    definitions = [listing_store.definition(digest) for digest in ("d1", "d3", "d2", "none")]
    listing_store.approve("o", ["pay"])
    listing_store.sweep()

    assert [pay, changed, look, None] == definitions
    assert None is listing_store.definition("d1")


def test_approval_applies_to_other_processes(opened: Opener) -> None:
    """`gateway approve` runs in another process than the waiting gateway."""
    gateway, person = opened(), opened()
    gateway.listings.record_seen("o", {"a": "1"})
    assert {"a"} == gateway.listings.record_seen("o", {"a": "2"})

    person.listings.approve("o", ["a", "never there"])

    assert set() == gateway.listings.record_seen("o", {"a": "2"})
    assert set() == person.listings.changed("nobody")
