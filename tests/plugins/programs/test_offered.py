"""Programs in the chat wrapper, over MCP and in frameworks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from mcp import Client, types

from gateway import Middleware
from gateway.adapters.broker import ToolBroker, functions_of, tool_calls_message
from gateway.discovery import ToolListBuilder, ToolListRequest
from gateway.gateway import Gateway
from gateway.options import DiscoveryOptions, Options, ProgramsOptions
from gateway.serve.mcp_server import mcp_server
from tests.conftest import OpenGateway

LIMITS = ProgramsOptions(seconds=20, wall_s=120)


def list_orders(customer: str) -> list[int]:
    """List the orders of a customer."""
    return [1, 2, 3]


def offering(open_gateway: OpenGateway, **discovery: Any) -> Gateway:
    discovery.setdefault("programs", True)
    gateway = open_gateway(
        options=Options(discovery=DiscoveryOptions(**discovery), programs=LIMITS)
    )
    gateway.add_tool(list_orders)
    return gateway


def reply(name: str, **arguments: object) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"id": f"call-{name}", "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


async def test_conversation_searches_and_runs_a_program_in_three_turns(
    open_gateway: OpenGateway,
) -> None:
    bodies: list[Mapping[str, Any]] = []
    turns = [
        reply("search_tools", query="orders of a customer"),
        reply(
            "run_program",
            code="sum([sum(await list_orders(customer=name)) for name in ['a', 'b']])",
        ),
        {"role": "assistant", "content": "12"},
    ]

    async def ask(body: dict[str, Any]) -> dict[str, Any]:
        bodies.append(body)
        return turns[len(bodies) - 1]

    messages = [{"role": "user", "content": "How many?"}]
    await Middleware(offering(open_gateway))({"model": "m", "messages": messages}, ask)

    answers = [
        message["content"] for message in bodies[-1]["messages"] if message["role"] == "tool"
    ]
    assert json.loads(answers[-1]) == {"result": 12, "calls": 2}
    listed = [tool["function"]["name"] for tool in bodies[0]["tools"]]
    assert listed == ["search_tools", "call_tool", "run_program"]


async def test_programs_are_off_by_default_and_tools_of_the_host_keep_their_names(
    open_gateway: OpenGateway,
) -> None:
    host = {"type": "function", "function": {"name": "run_program"}}
    off, on = offering(open_gateway, programs=False), offering(open_gateway)
    whole = offering(open_gateway, min_tools=9)

    without = await ToolListBuilder(off).build(ToolListRequest(messages=()))
    beside = await ToolListBuilder(on).build(ToolListRequest(messages=(), host_tools=[host]))
    few = await ToolListBuilder(whole).build(ToolListRequest(messages=()))

    assert without.tool_names == ("search_tools", "call_tool")
    assert beside.tool_names[-1] == next(iter(beside.names.added)) == "gateway_run_program"
    assert few.tool_names == ("run_program", "list_orders")
    assert few.found == ("list_orders",)


async def test_stable_tool_list_runs_programs_over_found_tools(open_gateway: OpenGateway) -> None:
    """In a stable tool list, found tools are not added to the list, but programs can still call
    them.
    """
    gateway = offering(open_gateway, mode="stable")
    broker = ToolBroker(gateway)
    tools = await broker.build_tools((), ())
    searched = await broker.answer(tools, "search_tools", {"query": "orders"})
    messages = [
        tool_calls_message([("s", "search_tools", "{}")]),
        {"role": "tool", "tool_call_id": "s", "content": searched.text},
    ]

    tools = await broker.build_tools(messages, ())
    ran = await broker.answer(tools, "run_program", {"code": "await list_orders(customer='a')"})

    assert [definition["name"] for definition in functions_of(tools)][-1] == "run_program"
    assert json.loads(ran.text)["result"] == [1, 2, 3]


@pytest.mark.parametrize("extra", [{"code": "1", "timeout": 3}, {"program": "1", "resume": "key"}])
async def test_run_program_refuses_unknown_argument_keys(
    open_gateway: OpenGateway, extra: dict[str, object]
) -> None:
    broker = ToolBroker(offering(open_gateway))

    answer = await broker.answer(await broker.build_tools((), ()), "run_program", extra)

    assert "run_program does not take " in answer.error


async def test_mcp_program_may_use_all_tools_that_it_names(open_gateway: OpenGateway) -> None:
    """An MCP server does not see the conversation."""
    async with Client(mcp_server(offering(open_gateway))) as client:
        tools = (await client.list_tools()).tools
        ran = await client.call_tool(
            "run_program", {"code": "len(await list_orders(customer='a'))"}
        )
        wrong = await client.call_tool("run_program", {"code": "await list_orders(customer=1)"})

    (text,) = ran.content
    assert isinstance(text, types.TextContent)
    assert json.loads(text.text) == {"result": 3, "calls": 1}
    assert wrong.is_error
    assert tools[-1].name == "run_program"
    assert tools[-1].annotations is not None
    assert tools[-1].annotations.read_only_hint is False
