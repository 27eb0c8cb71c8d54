"""Listings of resources and prompts, whose failures do not affect tools."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from mcp import MCPError, types
from mcp.server import Server

from gateway.errors import InvalidRequestError, UpstreamError, UpstreamTimeoutError
from gateway.mcp.validation import hide_raw, keep_raw
from gateway.options import UpstreamOptions
from gateway.runtime.background_loop import Bridge
from tests.apps.serve.upstream import piped
from tests.core.mcp.conftest import opened

Page = Callable[[Any, Any], Awaitable[types.ListPromptsResult]]


async def one_tool(_context: object, _params: object) -> types.ListToolsResult:
    """Return the tool that must stay in every listing."""
    return types.ListToolsResult(tools=[types.Tool(name="tool", input_schema={"type": "object"})])


async def endless(_context: object, params: Any) -> types.ListPromptsResult:
    """Return another page of prompts each time."""
    number = int(params.cursor or 0) if params is not None else 0
    return types.ListPromptsResult(
        prompts=[types.Prompt(name=f"p{number}")], next_cursor=str(number + 1)
    )


async def circling(_context: object, _params: object) -> types.ListPromptsResult:
    """Return the same page of prompts each time, with a cursor for another page."""
    return types.ListPromptsResult(prompts=[types.Prompt(name="p")], next_cursor="1")


async def broken(_context: object, _params: object) -> types.ListPromptsResult:
    """Raise an error."""
    raise MCPError(types.INTERNAL_ERROR, "secret-token is wrong")


async def unknown(_context: object, _params: object) -> types.ListPromptsResult:
    """Raise the error of a server that declares prompts but has none."""
    raise MCPError(types.METHOD_NOT_FOUND, "no such method")


async def silent(_context: object, _params: object) -> types.ListPromptsResult:
    """Never answer."""
    await asyncio.Event().wait()
    raise AssertionError


@pytest.mark.parametrize(
    ("page", "prompts", "codes"),
    [
        (endless, 4, ["listing_truncated"]),
        (circling, 1, ["tool_quarantined", "listing_truncated"]),
        (broken, 0, ["listing_incomplete"]),
        (unknown, 0, []),
        (silent, 0, ["listing_incomplete"]),
    ],
)
@pytest.mark.parametrize("over", ["object", "modern", "legacy"])
async def test_tools_are_listed_although_listing_prompts_fails(
    bridge: Bridge, page: Page, prompts: int, codes: list[str], over: str
) -> None:
    server: Server[Any] = Server("s", on_list_tools=one_tool, on_list_prompts=page)
    target: object = server if over == "object" else piped(server, legacy=over == "legacy")
    options = UpstreamOptions(max_pages=4, list_timeout_s=60 if page is not silent else 1)
    async with opened(bridge, target, options) as source:
        listing = await source.list_tools()

    assert ["tool"] == [item.name for item in listing.tools]
    assert prompts == len(listing.definitions) - 1
    assert codes == [note.code for note in listing.diagnostics]
    assert "secret" not in repr(listing)


async def test_prompts_are_listed_after_endlessly_repeated_pages_of_resources(
    bridge: Bridge,
) -> None:
    """The server repeats one page of resources, which are read before prompts."""

    async def resources(_context: object, _params: object) -> types.ListResourcesResult:
        return types.ListResourcesResult(
            resources=[types.Resource(uri="a:b", name="b")], next_cursor="1"
        )

    async def prompts(_context: object, _params: object) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=[types.Prompt(name="p")])

    server: Server[Any] = Server(
        "s", on_list_tools=one_tool, on_list_resources=resources, on_list_prompts=prompts
    )
    async with opened(bridge, server) as source:
        listing = await source.list_tools()

    assert ["resource", "prompt"] == [
        item.kind for item in listing.definitions if item.kind != "tool"
    ]


async def test_server_without_tools_is_not_asked_for_tools(bridge: Bridge) -> None:
    """Its refusal would make the whole listing fail, so that its prompts would be lost."""

    async def prompts(_context: object, _params: object) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=[types.Prompt(name="p")])

    async with opened(bridge, Server("s", on_list_prompts=prompts)) as source:
        listing = await source.list_tools()

    assert ["p"] == [item.name for item in listing.definitions]


async def odd_prompt(_context: object, params: Any) -> types.GetPromptResult:
    """Return or raise another faulty answer for each prompt name."""
    if params.name == "late":
        await asyncio.Event().wait()
    if params.name == "none":
        raise MCPError(types.INVALID_PARAMS, "no such \x00prompt")
    if params.name == "fails":
        raise MCPError(types.INTERNAL_ERROR, "secret-token is wrong")
    text = "x" * (3000 if params.name == "long" else 3)
    message = {"role": "user", "content": {"type": "text", "text": text}}
    return types.GetPromptResult.model_validate({"messages": [message]})


@pytest.mark.parametrize(
    ("method", "key"),
    [
        ("prompts/list", "prompts"),
        ("prompts/get", "messages"),
        ("resources/list", "resources"),
        ("resources/templates/list", "resourceTemplates"),
        ("resources/read", "contents"),
    ],
)
def test_lists_that_the_sdk_could_reject_are_hidden_from_it(method: str, key: str) -> None:
    items = [{"name": "good"}, {"name": 5}]
    strange = {key: "no list"}
    with keep_raw() as raw:
        hidden = hide_raw(method, {key: items, "_meta": {"a": 1}})

    assert {key: [], "_meta": {"a": 1}} == hidden
    assert {key: items} == raw
    assert strange == hide_raw(method, {**strange, "_meta": "odd"})
    assert strange == hide_raw(method, strange)


@pytest.mark.parametrize(
    ("name", "error", "detail"),
    [
        ("none", InvalidRequestError, "no such prompt"),
        ("fails", UpstreamError, "error -32603"),
        ("long", UpstreamError, "max_result_bytes"),
        ("late", UpstreamTimeoutError, "call_timeout_s"),
    ],
)
async def test_failed_request_for_a_prompt_raises_an_error_with_its_reason(
    bridge: Bridge, name: str, error: type[Exception], detail: str
) -> None:
    """The error contains the server's message only if the request was wrong."""
    server: Server[Any] = Server("s", on_list_tools=one_tool, on_get_prompt=odd_prompt)
    options = UpstreamOptions(call_timeout_s=1, max_result_bytes=1024)
    async with opened(bridge, piped(server, legacy=False), options) as source:
        with pytest.raises(error, match=detail) as raised:
            await source.ask("prompts/get", {"name": name})

    assert "secret" not in str(raised.value)
