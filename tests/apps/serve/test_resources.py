"""Resources, prompts and completions of upstream servers, with clients of both protocol eras."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest
from mcp import Client, MCPError, types

from gateway.errors import InvalidRequestError
from gateway.gateway import Gateway
from gateway.serve.mcp_server import mcp_server
from gateway.serve.resources import readable_block
from gateway.sources import Filter, Rename
from gateway.types import JsonObject
from tests.apps.serve.upstream import ERAS, Fixture
from tests.conftest import OpenGateway
from tests.core.call.test_resources import Shop, thing
from tests.fakes import suspicious


def filled(content: object) -> JsonObject:
    """Return the answer of an upstream server that fills in a prompt with *content*."""
    return {"messages": [{"role": "user", "content": content}]}


@pytest.fixture
def fixture(open_gateway: OpenGateway) -> Gateway:
    """A gateway in front of the fixture server."""
    gateway = open_gateway()
    gateway.add_server("fixture", server=Fixture().server())
    return gateway


@pytest.mark.parametrize("mode", ERAS)
async def test_listed_resources_can_be_read(fixture: Gateway, mode: str) -> None:
    texts = {}
    async with Client(mcp_server(fixture), mode=mode) as client:
        for resource in (await client.list_resources()).resources:
            (read,) = (await client.read_resource(resource.uri)).contents
            assert resource.uri == read.uri
            texts[resource.name] = getattr(read, "text", "blob")

    assert {
        "pixel": "blob",
        "static-text": "This is the content of the static text resource.",
        "watched-resource": "Somebody may watch this.",
    } == texts


@pytest.mark.parametrize("mode", ERAS)
async def test_suspicious_resources_are_not_listed_but_can_be_read(
    open_gateway: OpenGateway, mode: str
) -> None:
    """Clients give the texts of a list to their model."""
    things = [thing("resource", "a://x"), thing("resource", "a://{id}"), thing("prompt", "p")]
    things[1] = replace(things[1], details={"template": True})
    odd = [suspicious(replace(item, name=f"odd-{item.name}")) for item in things]
    shop = Shop("shop", *things, *odd)
    shop.answer = {**filled({"type": "text", "text": "Hello."}), "contents": []}
    gateway = open_gateway()
    gateway.add_source(shop)
    async with Client(mcp_server(gateway), mode=mode) as client:
        await client.read_resource("gateway:/shop/odd-a://x")
        await client.get_prompt("shop/odd-p")
        (resource,) = (await client.list_resources()).resources
        (template,) = (await client.list_resource_templates()).resource_templates
        (prompt,) = (await client.list_prompts()).prompts

    assert ("gateway:/shop/a://x", "gateway:/shop/a://{id}", "shop/p") == (
        resource.uri,
        template.uri_template,
        prompt.name,
    )
    assert ["resources/read", "prompts/get"] == [method for method, _ in shop.asked]


@pytest.mark.parametrize("mode", ERAS)
async def test_client_reads_an_expanded_uri_template(fixture: Gateway, mode: str) -> None:
    async with Client(mcp_server(fixture), mode=mode) as client:
        (template,) = (await client.list_resource_templates()).resource_templates
        uri = template.uri_template
        (read,) = (await client.read_resource(uri.replace("{id}", "42"))).contents
        reference = types.ResourceTemplateReference(uri=uri)
        completed = await client.complete(reference, {"name": "id", "value": "p"})

    assert "gateway:/fixture/test://template/{id}/data" == uri
    assert "Data for ID: 42" in getattr(read, "text", "")
    assert ["paris", "parma"] == completed.completion.values


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize(
    "name", ["fixture/test_prompt_with_arguments", "test_prompt_with_arguments"]
)
async def test_prompt_is_filled_in_by_full_or_unique_name(
    fixture: Gateway, mode: str, name: str
) -> None:
    async with Client(mcp_server(fixture), mode=mode) as client:
        prompts = {prompt.name: prompt for prompt in (await client.list_prompts()).prompts}
        (message,) = (await client.get_prompt(name, {"arg1": "hello", "arg2": "world"})).messages
        reference = types.PromptReference(name=name)
        completed = await client.complete(reference, {"name": "arg1", "value": "par"})

    prompt = prompts["fixture/test_prompt_with_arguments"]
    assert "A prompt that greets in two words." == prompt.description
    assert [("arg1", True), ("arg2", True)] == [
        (argument.name, argument.required) for argument in prompt.arguments or ()
    ]
    assert isinstance(message.content, types.TextContent)
    assert "Prompt with arguments: arg1='hello', arg2='world'" == message.content.text
    assert ["paris", "parma"] == completed.completion.values


async def test_links_in_prompts_and_tools_are_rewritten(fixture: Gateway) -> None:
    """The client can then read the linked resources, even if no list contains them."""
    async with Client(mcp_server(fixture)) as client:
        prompt = await client.get_prompt(
            "test_prompt_with_embedded_resource", {"resourceUri": "test://static-text"}
        )
        called = await client.call_tool("call_tool", {"name": "test_embedded_resource"})

    held_call = [prompt.messages[0].content, called.content[0]]
    assert ["gateway:/fixture/test://static-text", "gateway:/fixture/test://embedded-resource"] == [
        block.resource.uri for block in held_call if isinstance(block, types.EmbeddedResource)
    ]


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize(
    "uri", ["test://none", "gateway:/fixture/test://none", "gateway:/x/a", "y"]
)
async def test_unknown_resource_is_a_protocol_error(fixture: Gateway, mode: str, uri: str) -> None:
    async with Client(mcp_server(fixture), mode=mode) as client:
        with pytest.raises(MCPError) as raised:
            await client.read_resource(uri)
        with pytest.raises(MCPError, match="no server has the prompt"):
            await client.get_prompt(uri)
        with pytest.raises(MCPError, match="no server has the prompt"):
            await client.complete(types.PromptReference(name=uri), {"name": "a", "value": "b"})

    error = raised.value.error
    assert (types.INVALID_PARAMS, {"uri": uri}) == (error.code, error.data)


async def test_failed_server_is_an_internal_error(open_gateway: OpenGateway) -> None:
    gateway = open_gateway()
    gateway.add_server("gone", command="no-such-program-anywhere")
    async with Client(mcp_server(gateway)) as client:
        with pytest.raises(MCPError) as raised:
            await client.read_resource("gateway:/gone/a://b")

    assert types.INTERNAL_ERROR == raised.value.error.code


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
async def test_malformed_answer_names_its_server(
    open_gateway: OpenGateway, mode: str, fault: str
) -> None:
    ask, method, answer = MALFORMED[fault]
    shop = Shop("shop", thing("resource", "a://b"), thing("prompt", "p"))
    shop.answer = answer
    gateway = open_gateway()
    gateway.add_source(shop)
    async with Client(mcp_server(gateway), mode=mode) as client:
        with pytest.raises(MCPError) as raised:
            await ask(client)

    error = raised.value.error
    assert types.INTERNAL_ERROR == error.code
    assert f"'shop': answered {method} in a form that MCP does not define" == error.message
    assert error.data


async def test_content_block_of_an_unknown_type_in_a_prompt_becomes_text(
    open_gateway: OpenGateway,
) -> None:
    shop = Shop("shop", thing("prompt", "p"))
    shop.answer = filled({"type": "sketch", "lines": [1, 2]})
    gateway = open_gateway()
    gateway.add_source(shop)
    async with Client(mcp_server(gateway)) as client:
        (message,) = (await client.get_prompt("p")).messages

    assert isinstance(message.content, types.TextContent)
    assert {"type": "sketch", "lines": [1, 2]} == json.loads(message.content.text)


async def test_resources_are_listed_in_pages(open_gateway: OpenGateway) -> None:
    gateway = open_gateway()
    gateway.add_source(Shop("shop", *(thing("resource", f"a://{n}") for n in range(250))))
    pages: list[list[str]] = []
    cursor: str | None = ""
    async with Client(mcp_server(gateway)) as client:
        while cursor is not None:
            page = await client.list_resources(cursor=cursor or None)
            pages.append([resource.uri for resource in page.resources])
            cursor = page.next_cursor

    assert [100, 100, 50] == [len(page) for page in pages]
    assert 250 == len({uri for page in pages for uri in page})


async def test_list_passes_on_valid_details_of_a_resource(open_gateway: OpenGateway) -> None:
    """If the details are invalid, they are dropped, and the resource is still listed."""
    good = {"mimeType": "text/plain", "size": 3, "annotations": {"priority": 0.5}}
    bad = {"annotations": {"priority": "high"}}
    shop = Shop(
        "shop",
        replace(thing("resource", "a://good"), title="N", details=good),
        replace(thing("resource", "b://bad"), details=bad),
    )
    gateway = open_gateway()
    gateway.add_source(shop)
    async with Client(mcp_server(gateway)) as client:
        first, second = (await client.list_resources()).resources

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
def test_uri_of_a_resource_link_is_rewritten_unless_it_is_a_web_address(
    uri: str, address: str
) -> None:
    block = readable_block({"type": "resource_link", "name": "b", "uri": uri}, "srv")

    assert address == block["uri"]


@pytest.mark.parametrize("mode", ERAS)
async def test_resource_is_read_under_its_alias(fixture: Gateway, mode: str) -> None:
    fixture.add_virtual_server(
        "work",
        {"answer": "fixture/test_embedded_resource"},
        resources={
            "docs:today": "fixture/test://static-text",
            "docs:{id}/data": "fixture/test://template/{id}/data",
        },
        prompts={"hello": "fixture/test_prompt_with_arguments"},
    )
    addresses = ["gateway:/work/docs:today", "gateway:/work/docs:7/data", "test://static-text"]
    async with Client(mcp_server(fixture), mode=mode) as client:
        listed = {resource.uri for resource in (await client.list_resources()).resources}
        templates = (await client.list_resource_templates()).resource_templates
        read = [(await client.read_resource(uri)).contents[0].uri for uri in addresses]
        with pytest.raises(MCPError, match="virtual server 'work' has no resource"):
            await client.read_resource("gateway:/work/else:where")
        prompt = await client.get_prompt("work/hello", {"arg1": "a", "arg2": "b"})
        call = {"name": "work/answer", "arguments": {}}
        (block,) = (await client.call_tool("call_tool", call)).content

    assert addresses[0] in listed
    assert "gateway:/work/docs:{id}/data" in {resource.uri_template for resource in templates}
    assert addresses == read
    assert 1 == len(prompt.messages)
    assert isinstance(block, types.EmbeddedResource)
    assert "gateway:/fixture/test://embedded-resource" == block.resource.uri


async def test_alias_refers_to_hidden_and_renamed_entities(open_gateway: OpenGateway) -> None:
    """An alias refers to the name at the server, and not to the name after hiding or renaming."""
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
        with pytest.raises(InvalidRequestError, match=r"no server has|does not expose"):
            await gateway.read(name)
