"""Anthropic's tool definitions and references, written and read without its library."""

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


async def answered(
    gateway: Gateway, name: str, tools: ToolList = TOOLS, /, **arguments: object
) -> dict[str, object]:
    """What answers a call of the model."""
    call = tool_call({"type": "tool_use", "id": "toolu_1", "name": name, "input": arguments})
    return tool_result(await handle_call(gateway, tools, call), OPTIONS)


async def test_a_found_tool_is_a_reference_to_a_deferred_definition(gateway: Gateway) -> None:
    """The service shows what is referred to, with its real schema."""
    entities = await gateway.list_tools()
    deferred = {str(each["name"]): each for each in (definition(e, OPTIONS) for e in entities)}

    block = await answered(gateway, "search_tools", query="look up an invoice")

    content = block["content"]
    assert isinstance(content, list)
    assert {"type": "tool_reference", "tool_name": "find_invoice"} == content[0]
    shown = deferred["find_invoice"]
    assert (schema_of("find_invoice", entities), True) == (
        shown["input_schema"],
        shown["defer_loading"],
    )
    assert "is_error" not in block
    assert "defer_loading" not in definition(entities[0], OPTIONS, deferred=False)


async def test_a_caller_is_shown_and_answered_what_its_scopes_allow(gateway: Gateway) -> None:
    """Definitions, references and calls; whatever else is not there."""
    gateway.set_rules({"local/find_invoice": Access(scopes=frozenset({"billing"}))})
    shown = []
    for caller in (Caller(scopes=frozenset({"billing"})), ANYONE):
        tools = replace(TOOLS, caller=caller)
        names = [each.exposed_name for each in await gateway.list_tools(caller=caller)]
        found = await answered(gateway, "search_tools", tools, query="look up an invoice")
        called = await answered(gateway, "find_invoice", tools, number="INV-7")
        shown.append(["find_invoice" in str(part) for part in (names, found, called)])
        shown[-1].append("is_error" not in called)

    # The last answer names the tool that was called, as it names any that is not there.
    assert [[True, True, False, True], [False, False, True, False]] == shown


async def test_a_search_that_finds_nothing_says_so(gateway: Gateway) -> None:
    """A list of references may not be empty."""
    block = await answered(gateway, "search_tools", query="xylophonq")

    assert "No tool matches" in str(block["content"])


async def test_a_call_is_answered_as_text_and_a_failure_marked(gateway: Gateway) -> None:
    """A wrong call brings the schema."""
    played = await answered(gateway, "play_music", song="Yesterday")
    failed = await answered(gateway, "play_music")

    assert "playing Yesterday" == played["content"]
    assert (True, True) == (failed["is_error"], "schema" in json.loads(str(failed["content"])))


async def test_names_of_the_host_are_not_referred_to(gateway: Gateway) -> None:
    """A reference to them would show the host's tool for ours."""
    found = await gateway.search("look up an invoice")

    hidden = references(found, OPTIONS, hidden={"find_invoice"})

    assert "find_invoice" not in [block["tool_name"] for block in hidden]


def test_a_function_is_written_whole() -> None:
    """Nothing is lost between the two spellings."""
    search, _ = meta_tools(TOOLS.names, "The catalog holds 3 tools.")
    function = {"name": "a", "description": "b", "parameters": {}, "strict": True}

    assert {"name", "description", "input_schema"} == to_anthropic(search).keys()
    assert {"name": "a", "description": "b", "input_schema": {}, "strict": True} == to_anthropic(
        {"type": "function", "function": function}
    )


def test_what_is_no_function_is_refused() -> None:
    """Tools that the service runs have no schema."""
    with pytest.raises(InvalidRequestError, match="function tools"):
        to_anthropic({"type": "web_search"})
    with pytest.raises(InvalidRequestError, match="tool_use"):
        tool_call({"type": "text", "text": "hello"})
