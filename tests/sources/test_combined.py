"""Wrappers beyond what `test_source_conformance` holds for every source."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.errors import ConfigError, InvalidRequestError, UpstreamError
from gateway.gateway import Gateway
from gateway.sources.combined import CombinedSource
from gateway.sources.transforms import Filter, Prefix, Rename, TransformedSource
from gateway.types import Content, InvokeResult, JsonObject, ToolDefinition
from gateway.types.listing import Listing, WatchCallbacks
from tests.conftest import OpenGateway
from tests.fakes import ListSource, names, tool, until


def pair() -> tuple[ListSource, ListSource]:
    return ListSource("a", [tool("x"), tool("y")]), ListSource("b", [tool("x"), tool("z")])


async def test_what_is_not_shown_cannot_be_called() -> None:
    """A filter is no hint to a model, it is a wall."""
    source = TransformedSource(
        ListSource("a", [tool("x"), tool("y")]), Filter(deny=("y",)), Prefix("p_")
    )

    assert ["p_x"] == [each.name for each in (await source.list_tools()).tools]
    assert "called x" == (await source.call("p_x", {}, tool_id="a/p_x")).text
    for name in ("x", "y", "p_y"):
        answer = await source.call(name, {}, tool_id="t")
        assert (True, f"unknown tool {name!r}") == (answer.is_error, answer.text)


def test_wrappers_pass_on_who_they_stand_for() -> None:
    """One that is not trusted makes none of the combination trusted."""
    trusted, other = ListSource("a", trusted=True), ListSource("b")

    assert ("a", True) == (
        TransformedSource(trusted).server,
        TransformedSource(trusted, Prefix("p_")).trusted,
    )
    assert [True, False] == [
        CombinedSource("c", [trusted]).trusted,
        CombinedSource("c", [trusted, other]).trusted,
    ]


@pytest.mark.parametrize("turn", [1, -1])
async def test_a_name_that_two_have_is_qualified_in_both(turn: int) -> None:
    """Whichever comes first; each call reaches its own."""
    first, second = pair()[::turn]
    combined = CombinedSource("c", [first, second])

    listed = {each.name for each in (await combined.list_tools()).tools}
    answers = {name: (await combined.call(name, {}, tool_id="t")).text for name in listed}

    assert {"a_x": "called x", "y": "called y", "b_x": "called x", "z": "called z"} == answers


async def test_a_name_that_stays_taken_is_told() -> None:
    """Names are unique, whatever the sources call themselves."""
    first, second = pair()
    second.tools.append(tool("a_x"))
    listing = await CombinedSource("c", [first, second]).list_tools()

    assert ["a_x", "y", "b_x", "z"] == [each.name for each in listing.tools]
    assert ["'b': tool 'a_x': another one is called 'a_x'"] == [
        note.detail for note in listing.diagnostics
    ]


async def test_one_source_that_fails_leaves_the_others_and_its_own_of_before() -> None:
    """And nothing but nothing is an error."""
    first, second = pair()
    combined = CombinedSource("c", [first, second])
    second.fail_with = UpstreamError("b", "is down")
    without = await combined.list_tools()
    second.fail_with = None
    await combined.list_tools()
    second.fail_with = RuntimeError("no")
    kept = await combined.list_tools()
    first.fail_with = UpstreamError("a", "is down too")

    assert ["x", "y"] == [each.name for each in without.tools]
    assert ["a_x", "y", "b_x", "z"] == [each.name for each in kept.tools]
    assert ["'b': is down", "'b': RuntimeError"] == [
        note.detail for each in (without, kept) for note in each.diagnostics
    ]
    with pytest.raises(UpstreamError, match="is down too"):
        await combined.list_tools()


async def test_a_part_that_failed_is_tried_again_by_the_gateway(
    open_gateway: OpenGateway,
) -> None:
    """As a whole source would be."""
    clock = [0.0]
    first, second = pair()
    second.fail_with = UpstreamError("b", "is down")
    gateway: Gateway = open_gateway(clock=lambda: clock[0])
    gateway.add_source(CombinedSource("c", [first, second]))
    without = await gateway.search()
    second.fail_with = None
    clock[0] = 31.0

    async def whole() -> bool:
        return ["a_x", "b_x", "y", "z"] == names(await gateway.search())

    await until(whole)
    assert ["x", "y"] == names(without)


@pytest.mark.parametrize("sources", [[], [ListSource("a"), ListSource("a")]])
def test_a_combination_needs_sources_of_different_names(sources: list[ListSource]) -> None:
    """Else nobody could tell them apart."""
    with pytest.raises(ConfigError, match="each of another name"):
        CombinedSource("c", sources)


async def test_a_shaped_source_is_found_and_called_by_what_it_shows(
    open_gateway: OpenGateway,
) -> None:
    """Through the whole gateway."""
    gateway = open_gateway()
    source = ListSource("a", [tool("send_mail", "Send an e-mail."), tool("drop_mail", "Drop it.")])
    gateway.add_source(
        TransformedSource(source, Filter(deny=("drop_*",)), Rename({"send_mail": "post_letter"}))
    )

    found = await gateway.search("e-mail")

    assert ["a/post_letter"] == [match.id for match in found.matches]
    assert "called send_mail" == (await gateway.invoke("a/post_letter", {})).text


def prompt(name: str) -> ToolDefinition:
    return ToolDefinition(kind="prompt", name=name)


def resource(uri: str) -> ToolDefinition:
    details = {"template": True} if "{" in uri else {}
    return ToolDefinition(kind="resource", name=uri, details=details)


class Shop(ListSource):
    """A source with more than tools; answers with what it was asked, under its own names."""

    def __init__(self, server: str, *things: ToolDefinition) -> None:
        super().__init__(server, [tool("x"), tool(f"of_{server}")])
        self.things = things
        self.watched: list[str] = []

    async def list_tools(self) -> Listing:
        things = self.things
        return replace(
            await super().list_tools(),
            things=things,
            digests={f"{each.kind}:{each.name}": each.name for each in things},
            suspicions={f"{each.kind}:{each.name}": ("talks",) for each in things[:1]},
        )

    async def call(self, tool: str, arguments: JsonObject, *, tool_id: str) -> InvokeResult:
        link = {"type": "resource_link", "uri": "file:///new", "name": "new"}
        told = await super().call(tool, arguments, tool_id=tool_id)
        block = Content(type="resource_link", text="", data=link)
        return replace(told, content=(*told.content, block))

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        told = {"asked": method, "of": self.server, **params}
        if method == "resources/read":
            return {**told, "contents": [{"uri": params["uri"]}, {"uri": "http://web"}, "odd"]}
        if method == "prompts/get":
            block = {"type": "resource", "resource": {"uri": "file:///a"}}
            return {**told, "messages": [{"role": "user", "content": block}, {"content": "odd"}]}
        return told

    async def watch(self, uri: str, callbacks: WatchCallbacks) -> None:
        callbacks.on_start()
        self.watched.append(uri)


SILENT = WatchCallbacks(on_start=lambda: None, on_change=lambda: None)


async def test_shapes_are_for_one_kind() -> None:
    """Tools, unless they say otherwise; the rest is passed through, from a source that has any."""
    shaped = TransformedSource(Shop("a", prompt("x")), Prefix("p_"))
    plain = TransformedSource(ListSource("b", [tool("x")]), Prefix("p_"))
    listing = await shaped.list_tools()

    assert (["p_x", "p_of_a"], ["x"]) == (
        [each.name for each in listing.tools],
        [each.name for each in listing.things],
    )
    assert "x" == (await shaped.ask("prompts/get", {"name": "x"}))["name"]
    with pytest.raises(InvalidRequestError, match="no resources and no prompts"):
        await plain.ask("prompts/get", {"name": "x"})


async def test_what_is_not_shown_cannot_be_read() -> None:
    """Neither listed, nor made of a template, nor watched; a prompt answers to its new name."""
    shop = Shop("a", prompt("x"), prompt("y"), resource("db://t/{id}"), resource("file:///a"))
    shaped = TransformedSource(
        shop,
        Filter(deny=("db://*",), kind="resource"),
        Rename({"y": "z"}, kind="prompt"),
        Prefix("p_", kind="prompt"),
    )
    listing = await shaped.list_tools()
    shown = [each.name for each in listing.things]
    completed = {"ref": {"type": "ref/prompt", "name": "p_z"}}

    assert ["p_x", "p_z", "file:///a"] == shown
    assert {"prompt:p_x": "x", "prompt:p_z": "y", "resource:file:///a": "file:///a"} == {
        key: value for key, value in listing.digests.items() if ":" in key
    }
    assert {"prompt:p_x": ("talks",)} == listing.suspicions
    assert "y" == (await shaped.ask("prompts/get", {"name": "p_z"}))["name"]
    assert {"type": "ref/prompt", "name": "y"} == (
        await shaped.ask("completion/complete", completed)
    )["ref"]
    for params in ({"uri": "db://t/5"}, {"name": "x"}):
        with pytest.raises(InvalidRequestError, match="shows no"):
            await shaped.ask("resources/read", params)
    with pytest.raises(InvalidRequestError, match="shows no resource"):
        await shaped.watch("db://t/5", SILENT)
    await shaped.watch("file:///a", SILENT)
    assert ["file:///a"] == shop.watched


def stores() -> CombinedSource:
    one = Shop(
        "a", prompt("x"), resource("file:///a"), resource("db://{id}"), resource("one://{n}")
    )
    two = Shop("b", prompt("x"), prompt("y"), resource("file:///a"), resource("db://{id}"))
    return CombinedSource("c", [one, two, ListSource("d", [tool("z")])])


async def test_things_of_several_sources_stand_behind_one_name() -> None:
    """What two have is qualified in both, a URI so that it stays one; pins and marks go along."""
    listing = await stores().list_tools()

    assert ["a_x", "of_a", "b_x", "of_b", "z"] == [each.name for each in listing.tools]
    assert [
        ("prompt", "a_x"),
        ("resource", "a+file:///a"),
        ("resource", "a+db://{id}"),
        ("resource", "one://{n}"),
        ("prompt", "b_x"),
        ("prompt", "y"),
        ("resource", "b+file:///a"),
        ("resource", "b+db://{id}"),
    ] == [(each.kind, each.name) for each in listing.things]
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
async def test_a_resource_of_several_sources_is_read_where_it_is(
    uri: str, of: str, own: str
) -> None:
    """And what comes back is called as it is here; an address of the web stays."""
    read = await stores().ask("resources/read", {"uri": uri})

    assert (of, own) == (read["of"], read["uri"])
    assert [{"uri": uri}, {"uri": "http://web"}, "odd"] == read["contents"]


async def test_a_template_wins_over_the_name_of_a_source() -> None:
    """A scheme may look like a qualified name; what fits no template is one."""
    forge = Shop("forge", resource("git+ssh://{host}/{repo}"), resource("{any}"))
    combined = CombinedSource("c", [Shop("git"), forge])
    uris = ("git+ssh://h/r", "git+file:///a", "forge+git+ssh://h/r")
    read = [await combined.ask("resources/read", {"uri": uri}) for uri in uris]

    assert [("forge", uris[0]), ("git", "file:///a"), ("forge", uris[0])] == [
        (each["of"], each["uri"]) for each in read
    ]


async def test_prompts_completions_and_links_lead_to_their_source() -> None:
    """Whatever they name can be read here."""
    combined = stores()
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
    ("params", "told"),
    [
        ({"uri": "db://5"}, "has no resource 'db://5'"),
        ({"name": "x"}, "has no prompt 'x'"),
        ({"uri": "d+file:///a"}, "server 'd' has no resources"),
    ],
)
async def test_what_nobody_or_more_than_one_may_have_is_refused(
    params: JsonObject, told: str
) -> None:
    """No source is asked for the others' things."""
    with pytest.raises(InvalidRequestError, match=told):
        await stores().ask("resources/read", params)


async def test_a_resource_of_several_sources_is_watched_where_it_is() -> None:
    """Under its own URI; one whose source tells nothing is refused."""
    shop = Shop("a", resource("file:///a"))
    combined = CombinedSource("c", [shop, ListSource("d", [tool("z")])])
    await combined.watch("file:///a", SILENT)

    assert ["file:///a"] == shop.watched
    with pytest.raises(InvalidRequestError, match="'d' reports no changes of 'x:y'"):
        await combined.watch("d+x:y", SILENT)


async def test_combined_things_are_found_and_read_through_the_gateway(
    open_gateway: OpenGateway,
) -> None:
    """By the address that the catalog gives them."""
    gateway = open_gateway()
    gateway.add_source(stores())
    found = {each.exposed_name: each for each in await gateway.library.entities("resource")}
    (read, *_) = await gateway.read("gateway:/c/b+file:///a")
    made = await gateway.read("gateway:/c/a+db://5")

    assert {"gateway:/c/a+file:///a", "gateway:/c/b+db://{id}"} < found.keys()
    assert "b+file:///a" == read.data["uri"]
    assert "a+db://5" == made[0].data["uri"]
