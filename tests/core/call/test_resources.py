"""Resources and prompts: search, reads, access."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, overload

import pytest

from gateway.call import ResourceLibrary
from gateway.errors import InvalidRequestError
from gateway.gateway import Gateway
from gateway.index import Snapshot
from gateway.sources import ClientCapabilities, CombinedSource, Registration, Registry
from gateway.sync import SyncGateway
from gateway.testing import HashingEmbedder
from gateway.types import (
    Access,
    Caller,
    Entity,
    Filters,
    Hints,
    JsonObject,
    Kind,
    Listing,
    ToolDefinition,
)
from tests.apps.serve.upstream import Fixture
from tests.conftest import CatalogOf, OpenGateway
from tests.fakes import ListSource, every_id, tool


class Shop(ListSource):
    """A source of tools, resources and prompts, which answers with the requests it receives."""

    def __init__(self, server: str, *things: ToolDefinition, tools: tuple[str, ...] = ()) -> None:
        super().__init__(server, [tool(name) for name in tools])
        self.things = things
        self.answer: JsonObject = {}
        self.asked: list[tuple[str, JsonObject]] = []

    async def list_tools(self) -> Listing:
        listing = await super().list_tools()
        return Listing(definitions=(*listing.definitions, *self.things))

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        self.asked.append((method, params))
        return self.answer


def thing(kind: Kind, name: str, description: str = "") -> ToolDefinition:
    """Return the definition of a resource or a prompt."""
    return ToolDefinition(kind=kind, name=name, description=description)


def kinds(kind: Kind) -> Filters:
    """Return filters for entities of one kind."""
    return Filters(kinds=frozenset({kind}))


@pytest.fixture
def gateway_and_shops(open_gateway: OpenGateway) -> tuple[Gateway, Shop, Shop]:
    """Return a gateway and two servers, which share a resource and a prompt."""
    common = (thing("resource", "a://both"), thing("prompt", "both", "Review the quarter."))
    first = Shop(
        "one", *common, thing("resource", "a://mine/{id}", "Invoices of a year."), tools=("both",)
    )
    second = Shop("two", *common, thing("prompt", "yours", "Draft a letter."))
    gateway = open_gateway(strategy="auto", embedder=HashingEmbedder())
    gateway.add_source(first)
    gateway.add_source(second)
    return gateway, first, second


async def test_search_returns_only_the_requested_kinds(
    gateway_and_shops: tuple[Gateway, Shop, Shop],
) -> None:
    gateway, *_ = gateway_and_shops
    tools = await gateway.search("review both of the quarter")
    prompts = await gateway.search("review the quarter", filters=kinds("prompt"))
    resources = await gateway.search("the invoices of a year", filters=kinds("resource"))

    assert {"one/both"} == set(every_id(tools))
    assert {"prompt:one/both", "prompt:two/both"} == {match.id for match in prompts.matches[:2]}
    assert {"prompt"} == {match.partition(":")[0] for match in every_id(prompts)}
    assert "resource:one/a://mine/{id}" == resources.matches[0].id
    assert "gateway:/one/a://mine/{id}" == resources.matches[0].name
    assert ["both"] == [match.exposed_name for match in await gateway.list_tools()]


async def test_only_tools_can_be_called(gateway_and_shops: tuple[Gateway, Shop, Shop]) -> None:
    """A prompt may have the same name as a tool."""
    gateway, *_ = gateway_and_shops

    assert "called both" == (await gateway.invoke("both")).text
    with pytest.raises(InvalidRequestError, match="unknown tool"):
        await gateway.invoke("prompt:one/both")


@pytest.mark.parametrize(
    ("name", "server", "source_name"),
    [
        ("gateway:/two/a://both", "two", "a://both"),
        ("resource:two/a://both", "two", "a://both"),
        ("gateway:/two/b://in-no-list", "two", "b://in-no-list"),
        ("a://mine/{id}", "one", "a://mine/{id}"),
        ("a://mine/7", "one", "a://mine/7"),
    ],
)
async def test_resource_is_read_by_id_address_or_unique_uri(
    gateway_and_shops: tuple[Gateway, Shop, Shop], name: str, server: str, source_name: str
) -> None:
    gateway, *shops = gateway_and_shops
    (shop,) = [item for item in shops if item.server == server]
    shop.answer = {"contents": [{"uri": source_name, "text": "inner"}, "nothing", {"blob": "AA=="}]}
    read = await gateway.read(name)

    assert [("resources/read", {"uri": source_name})] == shop.asked
    assert [("resource", "inner"), ("resource", "")] == [(item.type, item.text) for item in read]
    assert {"blob": "AA=="} == read[1].data


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a://both", "gateway:/one/a://both, gateway:/two/a://both"),
        ("a://none", "no server has the resource"),
        ("gateway:/three/a://both", "no server has"),
        ("", "no server has"),
    ],
)
async def test_unknown_or_ambiguous_resource_is_refused(
    gateway_and_shops: tuple[Gateway, Shop, Shop], name: str, message: str
) -> None:
    with pytest.raises(InvalidRequestError, match=message):
        await gateway_and_shops[0].read(name)


async def test_prompt_is_filled_in_by_its_server(
    gateway_and_shops: tuple[Gateway, Shop, Shop],
) -> None:
    """Images and resources in the prompt are complete."""
    gateway, _, second = gateway_and_shops
    block = {"type": "resource", "resource": {"uri": "a://b", "text": "inner"}}
    second.answer = {
        "description": "a letter",
        "messages": [
            {"role": "user", "content": {"type": "text", "text": "Dear Ada"}},
            {"role": "assistant", "content": block},
            {"role": "user", "content": "none"},
            "none",
        ],
    }
    filled = await gateway.prompt("yours", {"to": "Ada"})

    assert [("prompts/get", {"name": "yours", "arguments": {"to": "Ada"}})] == second.asked
    assert "a letter" == filled.description
    assert ["Dear Ada", "inner", ""] == [message.content.text for message in filled.messages]
    assert block == filled.messages[1].content.data
    with pytest.raises(InvalidRequestError, match="one/both, two/both"):
        await gateway.prompt("both")
    await gateway.prompt("two/both")
    assert {"name": "both", "arguments": {}} == second.asked[-1][1]


async def test_completions_are_requested_from_the_server_of_the_prompt_or_template(
    gateway_and_shops: tuple[Gateway, Shop, Shop],
) -> None:
    """The request contains the name of the prompt or template that this server uses."""
    gateway, first, second = gateway_and_shops
    argument: Mapping[str, Any] = {"argument": {"name": "id", "value": "4"}}
    await gateway.library.complete("resource", "gateway:/one/a://mine/{id}", argument)
    await gateway.library.complete("prompt", "two/yours", argument)

    assert [
        (
            "completion/complete",
            {**argument, "ref": {"type": "ref/resource", "uri": "a://mine/{id}"}},
        )
    ] == first.asked
    assert [
        ("completion/complete", {**argument, "ref": {"type": "ref/prompt", "name": "yours"}})
    ] == second.asked


async def test_source_with_only_tools_refuses_resources(open_gateway: OpenGateway) -> None:
    gateway = open_gateway((tool("a"),))

    with pytest.raises(InvalidRequestError, match="has no resources"):
        await gateway.read("gateway:/shelf/a://b")
    assert not gateway.library.has_resources("shelf")
    assert not gateway.library.has_resources("nobody")


async def test_library_watch_reports_changes_of_the_catalog(open_gateway: OpenGateway) -> None:
    gateway = open_gateway()
    reports: list[str] = []
    end = gateway.library.watch(lambda: reports.append("changed"))
    gateway.add_source(ListSource("srv", [tool("a")]))
    await gateway.remove_server("srv")
    end()
    gateway.add_source(ListSource("srv", [tool("a")]))

    assert ["changed", "changed"] == reports


def test_blocking_gateway_reads_resources(open_gateway: OpenGateway) -> None:
    gateway = open_gateway()
    gateway.add_server("fixture", server=Fixture().server())
    twin = SyncGateway(gateway)
    (read,) = twin.read("test://static-text")
    filled = twin.prompt("test_prompt_with_arguments", {"arg1": "a", "arg2": "b"})

    assert "This is the content of the static text resource." == read.text
    assert "Prompt with arguments: arg1='a', arg2='b'" == filled.messages[0].content.text


async def test_hidden_resource_is_not_read_by_its_address(open_gateway: OpenGateway) -> None:
    """Links may refer to unlisted resources, but not to resources that the host hides."""
    hidden = Hints(enabled=False)
    shop = Shop(
        "one",
        thing("resource", "a://open/{id}"),
        ToolDefinition(kind="resource", name="a://open/secret", hints=hidden),
        ToolDefinition(kind="resource", name="b://{id}", hints=hidden),
        ToolDefinition(kind="prompt", name="plan", hints=hidden),
    )
    gateway = open_gateway()
    gateway.add_source(shop)

    for name in ("a://open/secret", "gateway:/one/a://open/secret", "gateway:/one/b://7", "b://7"):
        with pytest.raises(InvalidRequestError, match="no server has the resource"):
            await gateway.read(name)
    with pytest.raises(InvalidRequestError, match="no server has the prompt"):
        await gateway.prompt("plan")
    for name in ("a://open/7", "gateway:/one/a://open/7", "gateway:/one/c://linked"):
        await gateway.read(name)

    assert ["a://open/7", "a://open/7", "c://linked"] == [
        request["uri"] for _, request in shop.asked
    ]


DISABLED = Access(enabled=False)
PAID = Access(scopes=frozenset({"billing"}))
SECRETS = ("note://of/secret", "note://of/Bob", "note://of/café")
SPELLINGS = (
    "note://of/%73ecret",
    "note://of/s%65%63ret",
    "note://of/x/../secret",
    "note://of/x/%2E%2e/%73ecret",
    "note://of/./secret",
    "NOTE://OF/secret",
    "note://of/B%6fb",
    "note://of/caf%C3%a9",
)


def notes(server: str = "notes") -> Shop:
    """Return a server with three notes and a template for all notes."""
    return Shop(
        server,
        *(thing("resource", uri, "Of few.") for uri in SECRETS),
        thing("resource", "note://of/{name}", "Of anybody."),
    )


async def refusal(gateway: Gateway, uri: str, caller: Caller = Caller()) -> str:  # noqa: B008
    """Return the message of the error for a refused read of *uri*, without the URI."""
    with pytest.raises(InvalidRequestError) as caught:
        await gateway.read(uri, caller=caller)
    return str(caught.value).replace(repr(uri), "NAME")


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("access", [DISABLED, PAID], ids=["disabled", "a scope"])
async def test_other_spelling_of_a_uri_does_not_reveal_a_hidden_resource(
    open_gateway: OpenGateway, spelling: str, access: Access
) -> None:
    """The server may treat both spellings as equal, and a visible template matches both."""
    shop, gateway = notes(), open_gateway()
    gateway.add_source(shop)
    gateway.add_virtual_server("desk", {}, resources={"desk:{name}": "notes/note://of/{name}"})
    gateway.set_rules({f"notes/{uri}": access for uri in SECRETS})
    virtual = f"desk:{spelling[len('note://of/') :]}"

    refused = {
        await refusal(gateway, name)
        for name in ("nowhere", spelling, f"gateway:/notes/{spelling}", f"gateway:/desk/{virtual}")
    }
    await gateway.read("gateway:/notes/note://of/s", caller=Caller(scopes=PAID.scopes))

    assert 1 == len(refused)
    assert ["note://of/s"] == [params["uri"] for _, params in shop.asked]


async def test_each_listed_spelling_of_a_uri_is_a_separate_resource(
    open_gateway: OpenGateway,
) -> None:
    """An unlisted spelling can be read if all listed spellings can."""
    upper, lower, third = "note://A/x", "note://a/x", "NOTE://a/x"
    shop = Shop("notes", thing("resource", upper), thing("resource", lower))
    gateway = open_gateway()
    gateway.add_source(shop)
    await gateway.read(f"gateway:/notes/{third}")
    gateway.set_rules({f"notes/{upper}": DISABLED})

    await gateway.read(f"gateway:/notes/{lower}")
    for hidden in (upper, third):
        await refusal(gateway, f"gateway:/notes/{hidden}")

    assert [third, lower] == [params["uri"] for _, params in shop.asked]


async def test_most_specific_template_decides_whether_a_resource_is_visible(
    open_gateway: OpenGateway,
) -> None:
    """A less specific template neither reveals nor hides the resource."""
    wide, narrow = "note://{+path}", "note://of/{name}"
    shop, gateway = (
        Shop("notes", *(thing("resource", uri) for uri in (wide, narrow))),
        open_gateway(),
    )
    gateway.add_source(shop)
    gateway.set_rules({"notes/note://of/{*": DISABLED})
    await refusal(gateway, "gateway:/notes/note://of/bob")
    await gateway.read("gateway:/notes/note://all")
    gateway.set_rules({"notes/note://{*": DISABLED})
    await gateway.read("gateway:/notes/note://of/bob")

    assert ["note://all", "note://of/bob"] == [params["uri"] for _, params in shop.asked]


async def test_alias_of_a_template_does_not_reveal_hidden_resources(
    open_gateway: OpenGateway,
) -> None:
    """A URI of the template refers to a resource with access rules of its own."""
    shop, gateway = notes(), open_gateway()
    gateway.add_source(shop)
    gateway.add_virtual_server("desk", {}, resources={"desk:{name}": "notes/note://of/{name}"})
    gateway.set_rules({"notes/note://of/secret": DISABLED})

    await gateway.read("gateway:/desk/desk:open")
    refused = {await refusal(gateway, uri) for uri in ("gateway:/desk/desk:secret", "nowhere")}

    assert 1 == len(refused)
    assert [{"uri": "note://of/open"}] == [params for _, params in shop.asked]


@pytest.mark.parametrize("spelling", ["note://of/secret", "note://of/%73ecret"])
async def test_qualified_uri_of_a_virtual_server_does_not_reveal_hidden_resources(
    open_gateway: OpenGateway, spelling: str
) -> None:
    """A unique resource is listed by its unqualified URI, which the access rules name."""
    shop, gateway = notes("shop"), open_gateway()
    gateway.add_source(CombinedSource("office", [shop, ListSource("other")]))
    gateway.set_rules({"office/note://of/secret": DISABLED})

    await gateway.read("gateway:/office/shop+note://linked")
    for uri in (spelling, f"shop+{spelling}"):
        with pytest.raises(InvalidRequestError):
            await gateway.read(f"gateway:/office/{uri}")

    assert [{"uri": "note://linked"}] == [params for _, params in shop.asked]


class Counted(Sequence[Entity]):
    """A sequence of entities that counts each access."""

    def __init__(self, entities: Sequence[Entity]) -> None:
        self._entities = entities
        self.visits = 0

    @overload
    def __getitem__(self, index: int) -> Entity: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Entity]: ...
    def __getitem__(self, index: int | slice) -> Entity | Sequence[Entity]:
        self.visits += 1
        return self._entities[index]

    def __iter__(self) -> Iterator[Entity]:
        for index in range(len(self)):
            yield self[index]

    def __len__(self) -> int:
        return len(self._entities)


@pytest.mark.parametrize("uri", ["gateway:/notes/note://of/bob", "note://of/bob"])
@pytest.mark.parametrize("size", [10, 300])
async def test_read_examines_only_entities_of_its_server(
    open_gateway: OpenGateway, catalog_of: CatalogOf, size: int, uri: str
) -> None:
    shop, gateway = notes(), open_gateway(catalog_of(size))
    gateway.add_source(shop)
    whole = await gateway.snapshot()
    counted = Counted(whole.entities)

    async def snapshot() -> Snapshot:
        return replace(whole, entities=counted)

    registry = Registry()
    registry.add(Registration(shop))
    library = ResourceLibrary(registry, snapshot, ClientCapabilities(), gateway.hooks)
    await library.read(uri)

    assert counted.visits <= 3 * (len(SECRETS) + 1)
