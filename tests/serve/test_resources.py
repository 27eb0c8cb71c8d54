"""Resources, prompts and completions of servers behind us, read by clients of both eras."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, TypeVar

import pytest
from mcp import Client, MCPError, types

from gateway.errors import InvalidRequestError
from gateway.gateway import Gateway
from gateway.serve.mcp_server import mcp_server
from gateway.serve.resources import readable_block
from gateway.sources.transforms import Filter, Rename, TransformedSource
from gateway.types import JsonObject
from tests.conftest import OpenGateway
from tests.fakes import suspicious
from tests.search.test_resources import Shop, thing
from tests.serve.upstream import Fixture

T = TypeVar("T")
ERAS = ["auto", "legacy"]


def served(gateway: Gateway, talk: Callable[[Client], Awaitable[T]], mode: str = "auto") -> T:
    """What *talk* says of a client of *gateway*."""

    async def run() -> T:
        async with Client(mcp_server(gateway), mode=mode) as client:
            return await asyncio.wait_for(talk(client), 60)

    return asyncio.run(run())


def filled(content: object) -> JsonObject:
    """What a server answers that fills in a prompt."""
    return {"messages": [{"role": "user", "content": content}]}


@pytest.fixture
def fixture(open_gateway: OpenGateway) -> Gateway:
    """A gateway before a real server."""
    gateway = open_gateway()
    gateway.add_server("fixture", server=Fixture().server())
    return gateway


@pytest.mark.parametrize("mode", ERAS)
def test_what_is_listed_can_be_read(fixture: Gateway, mode: str) -> None:
    """Under the address that it was listed under, which its answer bears too."""

    async def talk(client: Client) -> dict[str, str]:
        listed = (await client.list_resources()).resources
        texts = {}
        for each in listed:
            (read,) = (await client.read_resource(each.uri)).contents
            assert each.uri == read.uri
            texts[each.name] = read.text if isinstance(read, types.TextResourceContents) else "blob"
        return texts

    assert {
        "pixel": "blob",
        "static-text": "This is the content of the static text resource.",
        "watched-resource": "Somebody may watch this.",
    } == served(fixture, talk, mode)


@pytest.mark.parametrize("mode", ERAS)
def test_what_is_suspicious_is_in_no_list_and_can_be_read(
    open_gateway: OpenGateway, mode: str
) -> None:
    """A client would give its texts to its model, as it would those of a tool."""
    things = [thing("resource", "a://x"), thing("resource", "a://{id}"), thing("prompt", "p")]
    things[1] = replace(things[1], details={"template": True})
    odd = [suspicious(replace(each, name=f"odd-{each.name}")) for each in things]
    shop = Shop("shop", *things, *odd)
    shop.answer = {**filled({"type": "text", "text": "Hello."}), "contents": []}
    gateway = open_gateway()
    gateway.add_source(shop)

    async def talk(client: Client) -> list[str]:
        await client.read_resource("gateway:/shop/odd-a://x")
        await client.get_prompt("shop/odd-p")
        return [
            *(each.uri for each in (await client.list_resources()).resources),
            *(
                each.uri_template
                for each in (await client.list_resource_templates()).resource_templates
            ),
            *(each.name for each in (await client.list_prompts()).prompts),
        ]

    assert ["gateway:/shop/a://x", "gateway:/shop/a://{id}", "shop/p"] == served(
        gateway, talk, mode
    )
    assert ["resources/read", "prompts/get"] == [method for method, _ in shop.asked]


@pytest.mark.parametrize("mode", ERAS)
def test_a_template_is_expanded_by_the_client(fixture: Gateway, mode: str) -> None:
    """It does not know that the address is ours."""

    async def talk(client: Client) -> tuple[str, Any, list[str]]:
        (one,) = (await client.list_resource_templates()).resource_templates
        (read,) = (await client.read_resource(one.uri_template.replace("{id}", "42"))).contents
        ref = types.ResourceTemplateReference(uri=one.uri_template)
        done = await client.complete(ref, {"name": "id", "value": "p"})
        return one.uri_template, read, done.completion.values

    uri, read, values = served(fixture, talk, mode)

    assert "gateway:/fixture/test://template/{id}/data" == uri
    assert "Data for ID: 42" in read.text
    assert ["paris", "parma"] == values


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize(
    "name", ["fixture/test_prompt_with_arguments", "test_prompt_with_arguments"]
)
def test_a_prompt_is_filled_in(fixture: Gateway, mode: str, name: str) -> None:
    """By its full name, or its own if one server alone has it."""

    async def talk(client: Client) -> tuple[list[types.Prompt], types.GetPromptResult, list[str]]:
        prompts = (await client.list_prompts()).prompts
        filled = await client.get_prompt(name, {"arg1": "hello", "arg2": "world"})
        done = await client.complete(
            types.PromptReference(name=name), {"name": "arg1", "value": "par"}
        )
        return prompts, filled, done.completion.values

    prompts, filled, values = served(fixture, talk, mode)
    (one,) = [each for each in prompts if each.name == "fixture/test_prompt_with_arguments"]
    content = filled.messages[0].content

    assert "A prompt that greets in two words." == one.description
    assert [("arg1", True), ("arg2", True)] == [
        (each.name, each.required) for each in one.arguments or ()
    ]
    assert isinstance(content, types.TextContent)
    assert "Prompt with arguments: arg1='hello', arg2='world'" == content.text
    assert ["paris", "parma"] == values


def test_what_a_prompt_embeds_has_our_address(fixture: Gateway) -> None:
    """So that a client can read it again."""

    async def talk(client: Client) -> types.GetPromptResult:
        name = "test_prompt_with_embedded_resource"
        return await client.get_prompt(name, {"resourceUri": "test://static-text"})

    held, _ = (message.content for message in served(fixture, talk).messages)

    assert isinstance(held, types.EmbeddedResource)
    assert "gateway:/fixture/test://static-text" == held.resource.uri


def test_what_a_tool_links_to_has_our_address(fixture: Gateway) -> None:
    """And can be read, though it is in no list."""

    async def talk(client: Client) -> types.CallToolResult:
        return await client.call_tool("call_tool", {"name": "test_embedded_resource"})

    (held,) = served(fixture, talk).content

    assert isinstance(held, types.EmbeddedResource)
    assert "gateway:/fixture/test://embedded-resource" == held.resource.uri


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize(
    "uri", ["test://none", "gateway:/fixture/test://none", "gateway:/x/a", "y"]
)
def test_what_is_not_there_is_said_by_the_protocols_error(
    fixture: Gateway, mode: str, uri: str
) -> None:
    """With what was asked for (SEP-2164)."""

    async def talk(client: Client) -> MCPError:
        with pytest.raises(MCPError) as raised:
            await client.read_resource(uri)
        with pytest.raises(MCPError, match="no server has the prompt"):
            await client.get_prompt(uri)
        with pytest.raises(MCPError, match="no server has the prompt"):
            await client.complete(types.PromptReference(name=uri), {"name": "a", "value": "b"})
        return raised.value

    error = served(fixture, talk, mode)

    assert types.INVALID_PARAMS == error.error.code
    assert {"uri": uri} == error.error.data


def test_a_server_that_fails_is_said_by_another_error(open_gateway: OpenGateway) -> None:
    """The client did nothing wrong."""
    gateway = open_gateway()
    gateway.add_server("gone", command="no-such-program-anywhere")

    async def talk(client: Client) -> MCPError:
        with pytest.raises(MCPError) as raised:
            await client.read_resource("gateway:/gone/a://b")
        return raised.value

    assert types.INTERNAL_ERROR == served(gateway, talk).error.code


Ask = Callable[[Client], Awaitable[object]]
READ: Ask = lambda client: client.read_resource("gateway:/shop/a://b")  # noqa: E731  (a table's row)
FILL: Ask = lambda client: client.get_prompt("p")  # noqa: E731
MEND: Ask = lambda client: client.complete(  # noqa: E731
    types.PromptReference(name="p"), {"name": "a", "value": "b"}
)
MALFORMED: dict[str, tuple[Ask, str, JsonObject]] = {
    "neither text nor blob": (READ, "resources/read", {"contents": [{"uri": "a://b"}]}),
    "no uri": (READ, "resources/read", {"contents": [{"text": "a"}]}),
    "a hint": (READ, "resources/read", {"contents": [], "ttlMs": "soon"}),
    "no text": (FILL, "prompts/get", filled({"type": "text"})),
    "no data": (FILL, "prompts/get", filled({"type": "image", "mimeType": "image/png"})),
    "no kind": (FILL, "prompts/get", filled({"text": "a"})),
    "no block": (FILL, "prompts/get", filled("a")),
    "no role": (FILL, "prompts/get", {"messages": [{"content": {"type": "text", "text": "a"}}]}),
    "no values": (MEND, "completion/complete", {"completion": {"values": "paris"}}),
}


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize("fault", MALFORMED)
def test_an_answer_that_is_malformed_is_its_servers_fault(
    open_gateway: OpenGateway, mode: str, fault: str
) -> None:
    """As that of a tool is: it says which server answered what."""
    ask, method, answer = MALFORMED[fault]
    shop = Shop("shop", thing("resource", "a://b"), thing("prompt", "p"))
    shop.answer = answer
    gateway = open_gateway()
    gateway.add_source(shop)

    async def talk(client: Client) -> MCPError:
        with pytest.raises(MCPError) as raised:
            await ask(client)
        return raised.value

    error = served(gateway, talk, mode).error

    assert types.INTERNAL_ERROR == error.code
    assert f"'shop': answered {method} in a form that MCP does not know" == error.message
    assert error.data


def test_a_block_of_a_prompt_that_mcp_does_not_know_is_a_text(open_gateway: OpenGateway) -> None:
    """As one of a tool's is."""
    shop = Shop("shop", thing("prompt", "p"))
    shop.answer = filled({"type": "sketch", "lines": [1, 2]})
    gateway = open_gateway()
    gateway.add_source(shop)

    (message,) = served(gateway, lambda client: client.get_prompt("p")).messages

    assert isinstance(message.content, types.TextContent)
    assert {"type": "sketch", "lines": [1, 2]} == json.loads(message.content.text)


def test_many_come_in_pages(open_gateway: OpenGateway) -> None:
    """Each once."""
    gateway = open_gateway()
    gateway.add_source(Shop("shop", *(thing("resource", f"a://{n}") for n in range(250))))

    async def talk(client: Client) -> list[list[str]]:
        pages: list[list[str]] = []
        cursor: str | None = None
        while True:
            page = await client.list_resources(cursor=cursor)
            pages.append([each.uri for each in page.resources])
            cursor = page.next_cursor
            if cursor is None:
                return pages

    pages = served(gateway, talk)

    assert [100, 100, 50] == [len(page) for page in pages]
    assert 250 == len({uri for page in pages for uri in page})


def test_details_that_the_protocol_knows_are_passed_on(open_gateway: OpenGateway) -> None:
    """Others cost the details, never the thing."""
    good = {"mimeType": "text/plain", "size": 3, "annotations": {"priority": 0.5}}
    bad = {"annotations": {"priority": "high"}}
    shop = Shop(
        "shop",
        replace(thing("resource", "a://good"), title="N", details=good),
        replace(thing("resource", "b://bad"), details=bad),
    )
    gateway = open_gateway()
    gateway.add_source(shop)

    first, second = served(gateway, lambda client: client.list_resources()).resources

    assert ("N", "text/plain", 3) == (first.name, first.mime_type, first.size)
    assert ("gateway:/shop/b://bad", None) == (second.uri, second.annotations)


@pytest.mark.parametrize(
    ("uri", "address"),
    [
        ("https://a.example/b", "https://a.example/b"),
        ("data:text/plain,b", "data:text/plain,b"),
        ("a://b", "gateway:/srv/a://b"),
    ],
)
def test_what_anybody_can_read_keeps_its_address(uri: str, address: str) -> None:
    """A client needs nobody for it."""
    block = readable_block({"type": "resource_link", "name": "b", "uri": uri}, "srv")

    assert address == block["uri"]


@pytest.mark.parametrize("mode", ERAS)
def test_what_has_an_alias_is_read_under_it(fixture: Gateway, mode: str) -> None:
    """Listed by the virtual server, read and completed at the server that has it."""
    fixture.add_virtual_server(
        "work",
        {"answer": "fixture/test_embedded_resource"},
        resources={
            "docs:today": "fixture/test://static-text",
            "docs:{id}/data": "fixture/test://template/{id}/data",
        },
        prompts={"hello": "fixture/test_prompt_with_arguments"},
    )

    async def talk(client: Client) -> dict[str, object]:
        listed = [each.uri for each in (await client.list_resources()).resources]
        made = [
            each.uri_template
            for each in (await client.list_resource_templates()).resource_templates
        ]
        asked = ("gateway:/work/docs:today", "gateway:/work/docs:7/data", "test://static-text")
        read = [(await client.read_resource(uri)).contents[0].uri for uri in asked]
        with pytest.raises(MCPError, match="virtual server 'work' has no resource"):
            await client.read_resource("gateway:/work/else:where")
        prompt = await client.get_prompt("work/hello", {"arg1": "a", "arg2": "b"})
        name = {"name": "work/answer", "arguments": {}}
        (block,) = (await client.call_tool("call_tool", name)).content
        assert isinstance(block, types.EmbeddedResource)
        return {
            "listed": "gateway:/work/docs:today" in listed,
            "made": "gateway:/work/docs:{id}/data" in made,
            "read": read == list(asked),
            "prompt": len(prompt.messages),
            "block": block.resource.uri,
        }

    assert {
        "listed": True,
        "made": True,
        "read": True,
        "prompt": 1,
        "block": "gateway:/fixture/test://embedded-resource",
    } == served(fixture, talk, mode)


async def test_an_alias_leads_to_what_shapes_hide_or_rename(open_gateway: OpenGateway) -> None:
    """It is of the server's own name; by that name itself nothing is shown."""
    gateway = open_gateway()
    hide = Filter(allow=(), kind="resource")
    rename = Rename({"test_prompt_with_arguments": "greet"}, kind="prompt")
    gateway.add_server("fixture", server=Fixture().server(), transforms=[hide, rename])
    gateway.add_virtual_server(
        "work",
        {},
        resources={"docs:today": "fixture/test://static-text"},
        prompts={"hello": "fixture/test_prompt_with_arguments"},
    )
    words = {"arg1": "a", "arg2": "b"}
    (read,) = await gateway.read("docs:today")
    filled = [await gateway.prompt(name, words) for name in ("work/hello", "fixture/greet")]

    assert "This is the content of the static text resource." == read.text
    assert filled[0] == filled[1]
    for name in ("test://static-text", "gateway:/fixture/test://static-text"):
        with pytest.raises(InvalidRequestError, match=r"no server has|shows no"):
            await gateway.read(name)


async def test_the_hosts_own_shapes_hold_for_aliases_too(open_gateway: OpenGateway) -> None:
    """A source that is given shaped has no other names."""
    gateway = open_gateway()
    shop = Shop("shop", thing("prompt", "p"))
    gateway.add_source(TransformedSource(shop, Rename({"p": "q"}, kind="prompt")))
    gateway.add_virtual_server("work", {}, prompts={"hello": "shop/q"})
    for name in ("work/hello", "shop/q"):
        await gateway.prompt(name)

    assert ["p", "p"] == [params["name"] for _, params in shop.asked]
