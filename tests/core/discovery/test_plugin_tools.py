"""Meta-tools of plugins: their position in tool lists, and answers to their calls."""

from __future__ import annotations

import json
from typing import Any

import pytest
from mcp import Client

from gateway import Middleware
from gateway.adapters.broker import ToolBroker, functions_of
from gateway.discovery import ToolListBuilder, ToolListRequest
from gateway.errors import ConfigError
from gateway.gateway import Gateway
from gateway.options import DiscoveryOptions, Options
from gateway.serve.mcp_server import mcp_server
from gateway.types import Caller
from tests.conftest import InstallPlugin, OpenGateway

SOURCE = """
from gateway.discovery.meta_tools import MetaTool
from gateway.errors import InvalidRequestError
from gateway.hookspecs import hookimpl

async def greet(call):
    if call.arguments["name"] == "nobody":
        raise InvalidRequestError("give the name of a person")
    if call.arguments["name"] == "bug":
        raise ZeroDivisionError("by zero")
    return f"Hello, {call.arguments['name']}, from {call.tools.caller.user or 'anyone'}!"

@hookimpl
def register_meta_tools(gateway):
    name = {"name": {"type": "string"}}
    tool = MetaTool(
        name="greet", description="Greet before {search} and {call}.", properties=name,
        required=("name",), answer=greet,
    )
    return [tool]
"""


def list_orders(customer: str) -> list[int]:
    """List the orders of a customer."""
    return [1, 2, 3]


def with_plugin(open_gateway: OpenGateway, **discovery: Any) -> Gateway:
    options = Options(plugins=("greeting_tool",), discovery=DiscoveryOptions(**discovery))
    gateway = open_gateway(options=options)
    gateway.add_tool(list_orders)
    return gateway


@pytest.fixture
def greeting(install_plugin: InstallPlugin, open_gateway: OpenGateway) -> Gateway:
    """Return a gateway with a plugin that adds a meta-tool."""
    install_plugin("greeting_tool", SOURCE)
    return with_plugin(open_gateway)


async def test_model_receives_the_meta_tool_of_a_plugin_with_its_schema(greeting: Gateway) -> None:
    listed = await ToolListBuilder(greeting).build(ToolListRequest(messages=()))

    function = functions_of(listed)[-1]
    assert listed.tool_names == ("search_tools", "call_tool", "greet")
    assert function["description"] == "Greet before search_tools and call_tool."
    assert function["parameters"]["required"] == ["name"]
    assert function["parameters"]["additionalProperties"] is False


@pytest.mark.parametrize(
    ("discovery", "request_options", "names"),
    [
        ({"mode": "stable"}, {}, ["search_tools", "call_tool", "greet"]),
        ({"min_tools": 9}, {}, ["greet", "list_orders"]),
        ({"mode": "native"}, {"wire_format": "responses"}, ["greet"]),
    ],
)
async def test_meta_tool_of_a_plugin_is_listed_in_every_mode(
    greeting: Gateway,
    open_gateway: OpenGateway,
    discovery: dict[str, Any],
    request_options: dict[str, Any],
    names: list[str],
) -> None:
    builder = ToolListBuilder(with_plugin(open_gateway, **discovery))
    listed = await builder.build(ToolListRequest(messages=(), **request_options))

    assert names == [*listed.tool_names]


async def test_host_tool_keeps_its_name_if_a_plugin_tool_has_the_same(greeting: Gateway) -> None:
    host = {"type": "function", "function": {"name": "greet"}}
    builder = ToolListBuilder(greeting)

    listed = await builder.build(ToolListRequest(messages=(), host_tools=[host]))

    assert listed.tool_names == ("greet", "search_tools", "call_tool", "gateway_greet")


@pytest.mark.parametrize(
    ("arguments", "text", "error"),
    [
        ({"name": "Ada"}, "Hello, Ada, from bob!", ""),
        ({"who": "Ada"}, "Hello, Ada, from bob!", ""),
        ({"name": "nobody"}, '{"error": "give the name of a person"}', "give the name of a person"),
        ({"name": "bug"}, '{"error": "ZeroDivisionError"}', "ZeroDivisionError"),
    ],
)
async def test_adapter_answers_calls_of_a_plugins_meta_tool(
    greeting: Gateway, arguments: dict[str, object], text: str, error: str
) -> None:
    broker = ToolBroker(greeting)
    tools = await broker.build_tools((), (), caller=Caller(user="bob"))

    answer = await broker.answer(tools, "greet", arguments)

    assert (text, error) == (answer.text, answer.error)


async def test_chat_client_answers_calls_of_a_plugins_meta_tool(greeting: Gateway) -> None:
    function = {"name": "greet", "arguments": json.dumps({"name": "Ada"})}
    call = {"id": "c", "type": "function", "function": function}
    turns: list[dict[str, Any]] = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "assistant", "content": "done"},
    ]
    bodies: list[dict[str, Any]] = []

    async def ask(body: dict[str, Any]) -> dict[str, Any]:
        bodies.append(body)
        return turns[len(bodies) - 1]

    messages = [{"role": "user", "content": "Say hello."}]
    await Middleware(greeting)({"model": "m", "messages": messages}, ask)

    assert bodies[-1]["messages"][-1]["content"] == "Hello, Ada, from anyone!"


async def test_mcp_server_lists_a_plugins_meta_tool_and_answers_its_calls(
    greeting: Gateway,
) -> None:
    async with Client(mcp_server(greeting)) as client:
        tool = (await client.list_tools()).tools[-1]
        (block,) = (await client.call_tool("greet", {"name": "Ada"})).content

    assert tool.name == "greet"
    assert tool.annotations is not None
    assert tool.annotations.read_only_hint is False
    assert getattr(block, "text", "") == "Hello, Ada, from anyone!"


async def test_meta_tool_of_a_plugin_refuses_unknown_keys_with_its_schema(
    greeting: Gateway,
) -> None:
    broker = ToolBroker(greeting)
    tools = await broker.build_tools((), ())

    answer = await broker.answer(tools, "greet", {"name": "Ada", "age": 3})

    assert answer.error.startswith("greet does not take age")
    assert json.loads(answer.text)["schema"]["additionalProperties"] is False


async def test_call_tool_cannot_call_the_meta_tool_of_a_plugin(greeting: Gateway) -> None:
    broker = ToolBroker(greeting)
    tools = await broker.build_tools((), ())

    answer = await broker.answer(tools, "call_tool", {"name": "greet", "arguments": {}})

    assert "called directly" in answer.error


def test_option_for_programs_requires_the_plugin_for_programs(open_gateway: OpenGateway) -> None:
    options = Options(plugins=(), discovery=DiscoveryOptions(programs=True))

    with pytest.raises(ConfigError, match="needs the plugin 'programs'"):
        ToolListBuilder(open_gateway(options=options))
