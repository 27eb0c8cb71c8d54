"""Anthropic's tool definitions and references, tested without Anthropic's library."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from gateway import Gateway
from gateway.adapters.anthropic import definition, references, to_anthropic, tool_call, tool_result
from gateway.discovery import ToolList, meta_names
from gateway.discovery.call_handler import handle_call
from gateway.discovery.meta_tools import meta_tools
from gateway.errors import InvalidRequestError
from gateway.options import DiscoveryOptions
from gateway.types import ANYONE, Access, Caller
from tests.apps.adapters.conformance import schema_of

OPTIONS = DiscoveryOptions()
TOOLS = ToolList(names=meta_names(OPTIONS, ()))


async def answer_to(
    gateway: Gateway, name: str, tools: ToolList = TOOLS, /, **arguments: object
) -> dict[str, object]:
    """Return the answer to a call of the tool *name* by the model, as a content block."""
    call = tool_call({"type": "tool_use", "id": "toolu_1", "name": name, "input": arguments})
    return tool_result(await handle_call(gateway, tools, call), OPTIONS)


async def test_search_returns_references_to_deferred_definitions(gateway: Gateway) -> None:
    """The service shows the model each referenced definition with its real schema."""
    entities = await gateway.list_tools()
    deferred = {str(item["name"]): item for item in (definition(e, OPTIONS) for e in entities)}

    block = await answer_to(gateway, "search_tools", query="look up an invoice")

    content = block["content"]
    assert isinstance(content, list)
    assert {"type": "tool_reference", "tool_name": "find_invoice"} == content[0]
    output = deferred["find_invoice"]
    assert (schema_of("find_invoice", entities), True) == (
        output["input_schema"],
        output["defer_loading"],
    )
    assert "is_error" not in block
    assert "defer_loading" not in definition(entities[0], OPTIONS, deferred=False)


async def test_caller_gets_only_definitions_and_answers_that_its_scopes_allow(
    gateway: Gateway,
) -> None:
    gateway.set_rules({"local/find_invoice": Access(scopes=frozenset({"billing"}))})
    output = []
    for caller in (Caller(scopes=frozenset({"billing"})), ANYONE):
        tools = replace(TOOLS, caller=caller)
        names = [tool.exposed_name for tool in await gateway.list_tools(caller=caller)]
        result = await answer_to(gateway, "search_tools", tools, query="look up an invoice")
        called = await answer_to(gateway, "find_invoice", tools, number="INV-7")
        output.append(["find_invoice" in str(part) for part in (names, result, called)])
        output[-1].append("is_error" not in called)

    # The last answer contains the name of the called tool, like the answer for any unknown tool.
    assert [[True, True, False, True], [False, False, True, False]] == output


async def test_search_without_matches_is_answered_as_text(gateway: Gateway) -> None:
    """The service refuses an empty list of references."""
    block = await answer_to(gateway, "search_tools", query="xylophonq")

    assert "No tool matches" in str(block["content"])


async def test_call_is_answered_as_text_and_a_failed_call_is_marked(gateway: Gateway) -> None:
    """The answer to a call with wrong arguments contains the schema."""
    played = await answer_to(gateway, "play_music", song="Yesterday")
    failed = await answer_to(gateway, "play_music")

    assert "playing Yesterday" == played["content"]
    assert (True, True) == (failed["is_error"], "schema" in json.loads(str(failed["content"])))


async def test_search_returns_no_reference_to_a_name_of_a_host_tool(gateway: Gateway) -> None:
    """The reference would mean the host's tool."""
    result = await gateway.search("look up an invoice")

    hidden = references(result, OPTIONS, hidden={"find_invoice"})

    assert "find_invoice" not in [block["tool_name"] for block in hidden]


def test_to_anthropic_converts_every_field_of_a_function_tool() -> None:
    search, _ = meta_tools(TOOLS.names, "The catalog holds 3 tools.")
    function = {"name": "a", "description": "b", "parameters": {}, "strict": True}

    assert {"name", "description", "input_schema"} == to_anthropic(search).keys()
    assert {"name": "a", "description": "b", "input_schema": {}, "strict": True} == to_anthropic(
        {"type": "function", "function": function}
    )


def test_to_anthropic_refuses_tools_that_are_not_functions() -> None:
    """Tools that the model service runs have no schema to convert."""
    with pytest.raises(InvalidRequestError, match="function tools"):
        to_anthropic({"type": "web_search"})
    with pytest.raises(InvalidRequestError, match="tool_use"):
        tool_call({"type": "text", "text": "hello"})
