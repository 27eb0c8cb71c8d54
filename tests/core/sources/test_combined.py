"""Combined sources: names, failures, and requests to the source that owns an item."""

from __future__ import annotations

import pytest

from gateway.errors import ConfigError, InvalidRequestError, UpstreamError
from gateway.gateway import Gateway
from gateway.sources import CombinedSource
from gateway.types import JsonObject
from tests.conftest import OpenGateway
from tests.core.sources.live_source import SILENT, Shop, details, names, prompt, resource
from tests.fakes import ListSource, tool, until
from tests.fakes import names as matches


def two_sources() -> tuple[ListSource, ListSource]:
    return ListSource("a", [tool("x"), tool("y")]), ListSource("b", [tool("x"), tool("z")])


def test_combined_source_is_untrusted_if_one_source_is_untrusted() -> None:
    trusted, other = ListSource("a", trusted=True), ListSource("b")

    assert [True, False] == [
        CombinedSource("c", [trusted]).trusted,
        CombinedSource("c", [trusted, other]).trusted,
    ]


@pytest.mark.parametrize("turn", [1, -1])
async def test_name_of_two_sources_is_qualified_in_both(turn: int) -> None:
    """The order of the sources has no effect."""
    first, second = two_sources()[::turn]
    combined = CombinedSource("c", [first, second])

    listed = names(await combined.list_tools())
    answers = {name: (await combined.call(name, {}, tool_id="t")).text for name in listed}

    assert {"a_x": "called x", "y": "called y", "b_x": "called x", "z": "called z"} == answers


async def test_tool_whose_qualified_name_is_taken_is_left_out_with_a_diagnostic() -> None:
    first, second = two_sources()
    second.tools.append(tool("a_x"))
    listing = await CombinedSource("c", [first, second]).list_tools()

    assert ["a_x", "y", "b_x", "z"] == names(listing)
    assert ["'b': tool 'a_x': the name 'a_x' is already used"] == details(listing)


async def test_failed_source_of_a_combination_keeps_its_last_tools() -> None:
    """If all sources fail, the listing raises an error."""
    first, second = two_sources()
    combined = CombinedSource("c", [first, second])
    second.fail_with = UpstreamError("b", "is down")
    without = await combined.list_tools()
    second.fail_with = None
    await combined.list_tools()
    second.fail_with = RuntimeError("no")
    after = await combined.list_tools()
    first.fail_with = UpstreamError("a", "is down too")

    assert ["x", "y"] == names(without)
    assert ["a_x", "y", "b_x", "z"] == names(after)
    assert ["'b': is down", "'b': RuntimeError"] == [*details(without), *details(after)]
    with pytest.raises(UpstreamError, match="is down too"):
        await combined.list_tools()


async def test_gateway_lists_a_failed_part_of_a_combined_source_again(
    open_gateway: OpenGateway,
) -> None:
    clock = [0.0]
    first, second = two_sources()
    second.fail_with = UpstreamError("b", "is down")
    gateway: Gateway = open_gateway(clock=lambda: clock[0])
    gateway.add_source(CombinedSource("c", [first, second]))
    without = await gateway.search()
    second.fail_with = None
    clock[0] = 31.0

    async def whole() -> bool:
        return ["a_x", "b_x", "y", "z"] == matches(await gateway.search())

    await until(whole)
    assert ["x", "y"] == matches(without)


@pytest.mark.parametrize("sources", [[], [ListSource("a"), ListSource("a")]])
def test_combined_source_requires_sources_with_different_names(sources: list[ListSource]) -> None:
    with pytest.raises(ConfigError, match="with different names"):
        CombinedSource("c", sources)


def combined_shops() -> CombinedSource:
    first = Shop(
        "a", prompt("x"), resource("file:///a"), resource("db://{id}"), resource("one://{n}")
    )
    second = Shop("b", prompt("x"), prompt("y"), resource("file:///a"), resource("db://{id}"))
    return CombinedSource("c", [first, second, ListSource("d", [tool("z")])])


async def test_resources_and_prompts_of_combined_sources_get_unique_names() -> None:
    """A qualified URI is a valid URI. Digests and suspicions stay with their definition."""
    listing = await combined_shops().list_tools()

    assert [
        "tool a_x", "tool of_a", "prompt a_x", "resource a+file:///a", "resource a+db://{id}",
        "resource one://{n}", "tool b_x", "tool of_b", "prompt b_x", "prompt y",
        "resource b+file:///a", "resource b+db://{id}", "tool z",
    ] == [f"{item.kind} {item.name}" for item in listing.definitions]  # fmt: skip
    assert ("x", "file:///a") == tuple(
        listing.digests[key] for key in ("prompt:b_x", "resource:a+file:///a")
    )
    assert {"prompt:a_x", "prompt:b_x"} == listing.suspicions.keys()


@pytest.mark.parametrize(
    ("uri", "of", "own"),
    [
        ("a+file:///a", "a", "file:///a"),
        ("b+db://5", "b", "db://5"),
        ("one://7", "a", "one://7"),
        ("b+file:///in/no/list", "b", "file:///in/no/list"),
        ("b+http://x/y", "b", "http://x/y"),
    ],
)
async def test_resource_of_a_combined_source_is_read_from_its_owner(
    uri: str, of: str, own: str
) -> None:
    """The answer contains the requested URI. Web addresses stay unchanged."""
    read = await combined_shops().ask("resources/read", {"uri": uri})

    assert (of, own) == (read["of"], read["uri"])
    assert [{"uri": uri}, {"uri": "http://web"}, "odd"] == read["contents"]


async def test_prompts_completions_and_links_use_the_names_of_the_combined_source() -> None:
    combined = combined_shops()
    got = await combined.ask("prompts/get", {"name": "b_x"})
    ref = {"ref": {"type": "ref/resource", "uri": "a+db://{id}"}}
    completed = await combined.ask("completion/complete", ref)
    called = await combined.call("of_b", {}, tool_id="c/of_b")
    plain = await combined.call("z", {}, tool_id="c/z")

    assert ("b", "x") == (got["of"], got["name"])
    block = {"type": "resource", "resource": {"uri": "b+file:///a"}}
    assert [{"role": "user", "content": block}, {"content": "odd"}] == got["messages"]
    assert {"type": "ref/resource", "uri": "db://{id}"} == completed["ref"]
    assert "b+file:///new" == called.content[1].data["uri"]
    assert "called z" == plain.text


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"uri": "db://5"}, "has no resource 'db://5'"),
        ({"name": "x"}, "has no prompt 'x'"),
        ({"uri": "d+file:///a"}, "server 'd' has no resources"),
    ],
)
async def test_request_for_an_unknown_or_ambiguous_item_is_refused(
    params: JsonObject, message: str
) -> None:
    with pytest.raises(InvalidRequestError, match=message):
        await combined_shops().ask("resources/read", params)


async def test_resource_of_a_combined_source_is_watched_on_its_owner() -> None:
    shop = Shop("a", resource("file:///a"))
    combined = CombinedSource("c", [shop, ListSource("d", [tool("z")])])
    await combined.watch("file:///a", SILENT)

    assert ["file:///a"] == shop.watched
    with pytest.raises(InvalidRequestError, match="'d' does not report changes of 'x:y'"):
        await combined.watch("d+x:y", SILENT)


async def test_combined_resources_are_found_and_read_through_the_gateway(
    open_gateway: OpenGateway,
) -> None:
    gateway = open_gateway()
    gateway.add_source(combined_shops())
    addresses = {item.exposed_name for item in await gateway.library.entities("resource")}
    (read, *_) = await gateway.read("gateway:/c/b+file:///a")
    from_template = await gateway.read("gateway:/c/a+db://5")

    assert {"gateway:/c/a+file:///a", "gateway:/c/b+db://{id}"} < addresses
    assert "b+file:///a" == read.data["uri"]
    assert "a+db://5" == from_template[0].data["uri"]
