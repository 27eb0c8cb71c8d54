"""What a shape shows of a listing, and what its names mean."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import permutations

import pytest

from gateway.errors import ConfigError
from gateway.mcp.naming import check_tool_name
from gateway.sources.protocol import Transform
from gateway.sources.transforms import (
    Describe,
    Filter,
    Prefix,
    Rename,
    apply_transforms,
    original_name,
)
from gateway.types import ToolDefinition
from gateway.types.listing import Listing
from tests.fakes import tool

LISTING = Listing(
    tools=(tool("get_x", "Get."), tool("set_x", "Set."), tool("delete_x", "Delete.")),
    digests={"get_x": "1", "set_x": "2", "delete_x": "3"},
    suspicions={"set_x": ("talks",)},
)
OWN = ("get_x", "set_x", "delete_x")


def names(listing: Listing) -> list[str]:
    return [each.name for each in listing.tools]


def told(listing: Listing) -> list[str]:
    return [note.detail for note in listing.diagnostics]


def test_a_prefix_stands_before_every_name_and_is_taken_off_again() -> None:
    """Digests and suspicions go with their tool."""
    found = apply_transforms(LISTING, (Prefix("crm_"),), server="srv")

    assert ["crm_get_x", "crm_set_x", "crm_delete_x"] == names(found)
    assert {"crm_get_x": "1", "crm_set_x": "2", "crm_delete_x": "3"} == found.digests
    assert {"crm_set_x": ("talks",)} == found.suspicions
    assert "get_x" == original_name("crm_get_x", (Prefix("crm_"),))
    assert original_name("get_x", (Prefix("crm_"),)) is None


@pytest.mark.parametrize(
    ("shape", "left"),
    [
        (Filter(), list(OWN)),
        (Filter(allow=("get_*", "set_x")), ["get_x", "set_x"]),
        (Filter(allow=()), []),
        (Filter(deny=("delete_?",)), ["get_x", "set_x"]),
        (Filter(allow=("*_x",), deny=("[ds]*",)), ["get_x"]),
    ],
)
def test_a_filter_shows_what_is_allowed_and_not_denied(shape: Filter, left: list[str]) -> None:
    """And what is not shown cannot be called."""
    found = apply_transforms(LISTING, (shape,), server="srv")

    assert left == names(found) == [name for name in OWN if shape.original_name(name) == name]
    assert left == list(found.digests)
    assert [] == told(found)


def test_a_pattern_that_meets_nothing_is_told() -> None:
    """A misspelt deny shows what it should hide."""
    found = apply_transforms(LISTING, (Filter(deny=("remove_*",)),), server="srv")

    assert list(OWN) == names(found)
    assert ["'srv': no tool is called like 'remove_*'"] == told(found)


def test_renamed_tools_answer_to_their_new_names_alone() -> None:
    """Two may even change places."""
    shape = Rename({"get_x": "read", "set_x": "delete_x", "delete_x": "set_x"})
    found = apply_transforms(LISTING, (shape,), server="srv")

    assert ["read", "delete_x", "set_x"] == names(found)
    assert {"read": "1", "delete_x": "2", "set_x": "3"} == found.digests
    assert ["get_x", "set_x", "delete_x", None, "other"] == [
        shape.original_name(name) for name in ("read", "delete_x", "set_x", "get_x", "other")
    ]


@pytest.mark.parametrize("old", ["get_x", "gone"])
def test_who_had_a_name_that_was_given_away_is_hidden_and_told(old: str) -> None:
    """Whether the other one is there or not: a name must not change its meaning by that."""
    shape = Rename({old: "set_x"})
    found = apply_transforms(LISTING, (shape,), server="srv")

    assert "'srv': tool 'set_x' is hidden: another was given its name" in told(found)
    assert ("2" in found.digests.values(), shape.original_name("set_x")) == (False, old)


def test_rules_for_tools_that_are_not_there_are_told() -> None:
    """A server may have dropped them."""
    transforms = (Rename({"gone": "x"}), Describe({"lost": "Text."}))

    assert [
        "'srv': no tool 'gone' is there to be renamed",
        "'srv': no tool 'lost' is there to be described",
    ] == told(apply_transforms(LISTING, transforms, server="srv"))


def test_a_description_is_the_hosts_own() -> None:
    """All else of the tool stays the server's."""
    found = apply_transforms(LISTING, (Describe({"get_x": "Read the X."}),), server="srv")

    assert ["Read the X.", "Set.", "Delete."] == [each.description for each in found.tools]
    assert LISTING.tools[1] is found.tools[1]
    assert LISTING.digests == found.digests


def test_every_shown_name_leads_back_to_its_tool_in_any_order_of_shapes() -> None:
    """Whatever is composed, a call reaches the tool that was seen."""
    every: tuple[Transform, ...] = (
        Prefix("a_"),
        Filter(deny=("*delete_x",)),
        Rename({"get_x": "set_x", "a_set_x": "a_get_x"}),
        Describe({"get_x": "Read."}),
    )
    for transforms in permutations(every):
        found = apply_transforms(LISTING, transforms, server="srv")
        own = [original_name(name, transforms) for name in names(found)]

        assert [LISTING.digests[str(name)] for name in own] == [
            found.digests[name] for name in names(found)
        ]


@pytest.mark.parametrize("name", ["", "a b", "é", "x" * 129])
def test_a_name_that_no_tool_may_have_is_refused(name: str) -> None:
    """Before anything is listed."""
    for make in (check_tool_name, Prefix, lambda each: Rename({"a": each})):
        with pytest.raises(ConfigError, match="cannot be used"):
            make(name)


def test_two_tools_cannot_get_one_name() -> None:
    """Nobody could tell which is called."""
    with pytest.raises(ConfigError, match="2 tools would be called 'c'"):
        Rename({"a": "c", "b": "c"})


@pytest.mark.parametrize(
    "make", [lambda: Prefix("a_", kind="resource"), lambda: Rename({}, kind="resource")]
)
def test_a_resource_keeps_its_uri(make: Callable[[], Transform]) -> None:
    """It leads back to its server."""
    with pytest.raises(ConfigError, match="keeps its URI"):
        make()


def test_things_are_described_and_rules_that_meet_none_are_told() -> None:
    """By their own kind: a tool of that name is another thing."""
    notes = ToolDefinition(kind="resource", name="file:///notes", description="Notes.")
    prompt = ToolDefinition(kind="prompt", name="get_x", description="Prompt.")
    transforms = (
        Describe({"file:///notes": "My notes.", "get_x": "?"}, kind="resource"),
        Filter(allow=("set_*",), kind="prompt"),
    )
    found = apply_transforms(replace(LISTING, things=(notes, prompt)), transforms, server="srv")

    assert ["My notes."] == [each.description for each in found.things]
    assert list(OWN) == names(found)
    assert [
        "'srv': no resource 'get_x' is there to be described",
        "'srv': no prompt is called like 'set_*'",
    ] == told(found)
