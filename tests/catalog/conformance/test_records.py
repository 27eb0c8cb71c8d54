"""What every `Records` promises: tool lists, and what was approved of them."""

from __future__ import annotations

import pytest

from gateway.catalog.records import Records
from gateway.catalog.store import Store
from gateway.testing import ManualClock
from gateway.types import Diagnostic, Hints, ToolDefinition
from gateway.upstream.source import Listing
from tests.catalog.conformance.stores import Opener
from tests.fakes import tool

LISTING = Listing(
    tools=(
        ToolDefinition(
            name="pay",
            title="Pay",
            description="Pay é.",
            input_schema={"type": "object", "properties": {"to": {"type": "string"}}},
            output_schema={"type": "object"},
            hints=Hints(read_only=False, destructive=True),
        ),
        tool("look"),
    ),
    things=(
        ToolDefinition(
            kind="resource", name="a://b", title="B", details={"mimeType": "text/plain"}
        ),
        ToolDefinition(kind="prompt", name="pay", input_schema={"type": "object"}),
    ),
    diagnostics=(Diagnostic(stage="catalog", code="tool_quarantined", detail="'x': no"),),
    digests={"pay": "d1", "look": "d2"},
    suspicions={"pay": ("hidden text",)},
)
DAY_S = 24 * 3600.0


@pytest.fixture
def records(store: Store) -> Records:
    return store.records


def test_a_listing_comes_back_as_it_was_also_in_another_process(
    opened: Opener, wall: ManualClock
) -> None:
    """All that a search and a call read of it."""
    first = opened()
    first.records.keep("f", "srv", LISTING)
    now = wall()
    first.close()
    wall.tick(5)

    found = opened().records.listing("f")

    assert found is not None
    assert (LISTING, now) == (found.listing, found.listed_at)


def test_a_newer_listing_takes_the_place(records: Records, wall: ManualClock) -> None:
    """A server is listed again and again."""
    records.keep("f", "srv", LISTING)
    wall.tick(9)
    records.keep("f", "srv", Listing())

    found = records.listing("f")

    assert found is not None
    assert (0, wall()) == (len(found.listing.tools), found.listed_at)


def test_another_configuration_is_another_server(records: Records) -> None:
    """And what is forgotten is gone."""
    records.keep("f", "srv", LISTING)

    assert records.listing("g") is None
    records.forget("f")
    records.forget("never there")
    assert records.listing("f") is None


def test_what_nobody_used_for_a_month_is_forgotten_when_something_is_kept(
    records: Records, wall: ManualClock
) -> None:
    """A store must not grow with every configuration that ever was."""
    records.keep("old", "a", LISTING)
    records.keep("used", "b", LISTING)
    wall.tick(20 * DAY_S)
    records.listing("used")
    wall.tick(11 * DAY_S)
    records.keep("new", "c", Listing())

    assert [True, False, False] == [
        records.listing(name) is None for name in ("old", "used", "new")
    ]


def test_a_definition_is_approved_when_it_is_first_seen_and_a_change_is_told(
    records: Records,
) -> None:
    """Until somebody approves it."""
    first = records.see("o", {"a": "1", "b": "1"})
    changed = records.see("o", {"a": "2", "b": "1", "c": "9"})
    other = records.see("p", {"a": "2"})
    gone = records.see("o", {"b": "1"})
    records.approve("o", ["a"])

    assert [[], ["a"], [], []] == [sorted(each) for each in (first, changed, other, gone)]
    assert set() == records.changed("o")
    assert set() == records.see("o", {"a": "2"})
    assert {"a"} == records.see("o", {"a": "1"})
    assert set() == records.see("o", {})


def test_what_one_process_approves_is_approved_for_the_others(opened: Opener) -> None:
    """`gateway approve` is another process than the gateway that waits for it."""
    gateway, person = opened(), opened()
    gateway.records.see("o", {"a": "1"})
    assert {"a"} == gateway.records.see("o", {"a": "2"})

    person.records.approve("o", ["a", "never there"])

    assert set() == gateway.records.see("o", {"a": "2"})
    assert set() == person.records.changed("nobody")
