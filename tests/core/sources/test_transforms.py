"""Transforms of listings and of names."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from itertools import permutations

import pytest

from gateway.errors import ConfigError, InvalidRequestError
from gateway.runtime.naming import check_tool_name
from gateway.sources import Describe, Filter, Prefix, Rename, Transform, TransformedSource
from gateway.types import Listing, ToolDefinition
from tests.conftest import OpenGateway
from tests.core.sources.live_source import SILENT, Shop, details, names, prompt, resource
from tests.fakes import ListSource, tool

LISTING = Listing(
    definitions=(tool("get_x", "Get."), tool("set_x", "Set."), tool("delete_x", "Delete.")),
    digests={"get_x": "1", "set_x": "2", "delete_x": "3"},
    suspicions={"set_x": ("talks",)},
)
NAMES = ["get_x", "set_x", "delete_x"]


class FixedSource(ListSource):
    """A source with a fixed listing."""

    def __init__(self, listing: Listing) -> None:
        super().__init__("srv")
        self.listing = listing

    async def list_tools(self) -> Listing:
        return self.listing


def transformed(*transforms: Transform, listing: Listing = LISTING) -> Listing:
    return asyncio.run(TransformedSource(FixedSource(listing), *transforms).list_tools())


def test_prefix_is_added_to_every_name_and_removed_for_calls() -> None:
    """Digests and suspicions stay with their tool, under its new name."""
    listing = transformed(Prefix("crm_"))

    assert ["crm_get_x", "crm_set_x", "crm_delete_x"] == names(listing)
    assert {"crm_get_x": "1", "crm_set_x": "2", "crm_delete_x": "3"} == listing.digests
    assert {"crm_set_x": ("talks",)} == listing.suspicions
    assert ("get_x", None) == tuple(map(Prefix("crm_").original_name, ("crm_get_x", "get_x")))


@pytest.mark.parametrize(
    ("transform", "left"),
    [
        (Filter(), NAMES),
        (Filter(allow=("get_*", "set_x")), ["get_x", "set_x"]),
        (Filter(allow=()), []),
        (Filter(deny=("delete_?",)), ["get_x", "set_x"]),
        (Filter(allow=("*_x",), deny=("[ds]*",)), ["get_x"]),
    ],
)
def test_filter_keeps_allowed_items_that_are_not_denied(transform: Filter, left: list[str]) -> None:
    listing = transformed(transform)

    assert (
        left == names(listing) == [name for name in NAMES if transform.original_name(name) == name]
    )
    assert (left, []) == (list(listing.digests), details(listing))


def test_renamed_tools_have_only_their_new_names() -> None:
    """Two tools may exchange their names."""
    transform = Rename({"get_x": "read", "set_x": "delete_x", "delete_x": "set_x"})
    listing = transformed(transform)

    assert ["read", "delete_x", "set_x"] == names(listing)
    assert {"read": "1", "delete_x": "2", "set_x": "3"} == listing.digests
    assert ["get_x", "set_x", "delete_x", None, "other"] == [
        transform.original_name(name) for name in ("read", "delete_x", "set_x", "get_x", "other")
    ]


@pytest.mark.parametrize("old", ["get_x", "gone"])
def test_tool_whose_name_is_reused_is_hidden_with_a_diagnostic(old: str) -> None:
    """It is hidden even if the renamed tool does not exist, so that a name always means the same
    tool.
    """
    transform = Rename({old: "set_x"})
    listing = transformed(transform)

    assert "'srv': tool 'set_x' is hidden: another tool got its name" in details(listing)
    assert ("2" in listing.digests.values(), transform.original_name("set_x")) == (False, old)


def test_transform_rule_without_a_match_causes_a_diagnostic() -> None:
    """A misspelt ``deny`` would expose a tool that it should hide."""
    assert [
        "'srv': tool 'gone' cannot be renamed, because it does not exist",
        "'srv': tool 'lost' cannot be described, because it does not exist",
        "'srv': no tool matches 'remove_*'",
    ] == details(
        transformed(Rename({"gone": "x"}), Describe({"lost": "Text."}), Filter(deny=("remove_*",)))
    )


def test_describe_changes_only_the_description() -> None:
    listing = transformed(Describe({"get_x": "Read the X."}))

    assert ["Read the X.", "Set.", "Delete."] == [item.description for item in listing.tools]
    assert LISTING.tools[1] is listing.tools[1]
    assert LISTING.digests == listing.digests


def test_exposed_name_maps_to_its_tool_in_any_order_of_transforms() -> None:
    every: tuple[Transform, ...] = (
        Prefix("a_"),
        Filter(deny=("*delete_x",)),
        Rename({"get_x": "set_x", "a_set_x": "a_get_x"}),
        Describe({"get_x": "Read."}),
    )
    for transforms in permutations(every):
        source = TransformedSource(FixedSource(LISTING), *transforms)
        listing = asyncio.run(source.list_tools())

        assert [LISTING.digests[source.original_name("tool", name)] for name in names(listing)] == [
            listing.digests[name] for name in names(listing)
        ]


@pytest.mark.parametrize(
    ("make", "fault"),
    [
        (lambda: check_tool_name("é"), "cannot be used"),
        (lambda: Prefix(""), "cannot be used"),
        (lambda: Prefix("a b"), "cannot be used"),
        (lambda: Rename({"a": "x" * 129}), "cannot be used"),
        (lambda: Rename({"a": "c", "b": "c"}), "2 tools would be called 'c'"),
        (lambda: Prefix("a_", kind="resource"), "keeps its URI"),
        (lambda: Rename({}, kind="resource"), "keeps its URI"),
    ],
)
def test_transform_with_an_invalid_name_is_refused(make: Callable[[], object], fault: str) -> None:
    with pytest.raises(ConfigError, match=fault):
        make()


def test_transform_applies_to_one_kind() -> None:
    notes = ToolDefinition(kind="resource", name="file:///notes", description="Notes.")
    listing = transformed(
        Describe({"file:///notes": "My notes.", "get_x": "?"}, kind="resource"),
        Filter(allow=("set_*",), kind="prompt"),
        listing=replace(LISTING, definitions=(*LISTING.definitions, notes, prompt("get_x"))),
    )

    assert [*NAMES, "file:///notes"] == names(listing)
    assert "My notes." == list(listing.definitions)[-1].description
    assert [
        "'srv': resource 'get_x' cannot be described, because it does not exist",
        "'srv': no prompt matches 'set_*'",
    ] == details(listing)


async def test_hidden_items_cannot_be_called_read_or_watched() -> None:
    """A URI made from a hidden template is hidden too."""
    shop = Shop("a", prompt("x"), prompt("y"), resource("db://t/{id}"), resource("file:///a"))
    source = TransformedSource(
        shop,
        Filter(deny=("of_*",)),
        Prefix("p_"),
        Filter(deny=("db://*",), kind="resource"),
        Rename({"y": "z"}, kind="prompt"),
        Prefix("p_", kind="prompt"),
    )
    listing = await source.list_tools()
    completed = await source.ask("completion/complete", {"ref": {"name": "p_z"}})

    assert ["p_x", "p_x", "p_z", "file:///a"] == names(listing)
    assert {"prompt:p_x": "x", "prompt:p_z": "y", "resource:file:///a": "file:///a"} == (
        listing.digests
    )
    assert {"prompt:p_x": ("talks",)} == listing.suspicions
    assert "called x" == (await source.call("p_x", {}, tool_id="a/p_x")).text
    for name in ("x", "of_a", "p_of_a"):
        answer = await source.call(name, {}, tool_id="t")
        assert (True, f"unknown tool {name!r}") == (answer.is_error, answer.text)
    assert "y" == (await source.ask("prompts/get", {"name": "p_z"}))["name"]
    assert {"name": "y"} == completed["ref"]
    for params in ({"uri": "db://t/5"}, {"name": "x"}):
        with pytest.raises(InvalidRequestError, match="does not expose"):
            await source.ask("resources/read", params)
    with pytest.raises(InvalidRequestError, match="does not expose resource"):
        await source.watch("db://t/5", SILENT)
    await source.watch("file:///a", SILENT)
    assert ["file:///a"] == shop.watched


async def test_source_with_only_tools_refuses_requests_for_resources() -> None:
    plain = TransformedSource(ListSource("b", [tool("x")]), Prefix("p_"))

    with pytest.raises(InvalidRequestError, match="no resources and no prompts"):
        await plain.ask("prompts/get", {"name": "x"})
    with pytest.raises(InvalidRequestError, match="does not report changes"):
        await plain.watch("a:b", SILENT)


async def test_transformed_source_is_found_and_called_by_its_new_names(
    open_gateway: OpenGateway,
) -> None:
    gateway = open_gateway()
    source = ListSource("a", [tool("send_mail", "Send an e-mail."), tool("drop_mail", "Drop it.")])
    gateway.add_source(
        TransformedSource(source, Filter(deny=("drop_*",)), Rename({"send_mail": "post_letter"}))
    )

    result = await gateway.search("e-mail")

    assert ["a/post_letter"] == [match.id for match in result.matches]
    assert "called send_mail" == (await gateway.invoke("a/post_letter", {})).text


@pytest.mark.parametrize(
    ("rules", "uri", "is_shown"),
    [
        ({"deny": ("note://secret",)}, "note://%73ecret", False),
        ({"deny": ("note://Shop/*",)}, "note://Sh%6fp/a", False),
        ({"deny": ("*Team*",)}, "note://Te%61m/a", False),
        ({"deny": ("note://secret",)}, "NOTE://secret", False),
        ({"deny": ("note://%73ecret",)}, "note://secret", False),
        ({"allow": ("note://open/*",)}, "note://open/x/../../b", True),
        ({"allow": ("note://open/a/*",)}, "note://open/a/%2e%2e/b", False),
        ({"allow": ("*Team*",)}, "note://TeamA/x", True),
        ({"allow": ("note://[äö]*",)}, "note://äb", True),
        ({"deny": ("note://a/x",)}, "note://a/X", True),
    ],
)
def test_filter_matches_every_spelling_of_a_uri(
    rules: dict[str, tuple[str, ...]], uri: str, is_shown: bool
) -> None:
    """The server may treat all spellings as the same resource."""
    transform = Filter(kind="resource", **rules)

    assert (uri if is_shown else None) == transform.original_name(uri)
