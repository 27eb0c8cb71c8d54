"""The main path: the model searches, gets a proxy, calls it, and answers."""

from __future__ import annotations

import json
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from gateway import Gateway
from gateway.testing import Call, HashingEmbedder, Turn
from gateway.types import Strategy
from tests.conftest import OpenGateway
from tests.core.chat.stage import ASK, WAYS, Speaker, Stage, Way, find, function, text

STRATEGIES: tuple[Strategy, ...] = ("graph", "embeddings", "auto")
TIME_SERVER = str(Path(sys.executable).parent / "mcp-server-time")
CONVERT = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}


def gateway_with_strategy(open_gateway: OpenGateway, strategy: Strategy) -> Gateway:
    embedder = None if strategy == "graph" else HashingEmbedder()
    return open_gateway(strategy=strategy, embedder=embedder)


@pytest.mark.requirement("auto:rule-9")
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("way", WAYS)
async def test_model_finds_and_calls_a_python_function(
    stage: Stage, speaker: Speaker, open_gateway: OpenGateway, way: Way, strategy: Strategy
) -> None:
    """The first request has the two meta-tools; later ones also have the found tool with its
    schema.
    """
    charged: list[tuple[str, int]] = []

    def send_invoice(customer: str, amount: int) -> str:
        """Send an invoice to a customer."""
        charged.append((customer, amount))
        return "sent as number 17"

    gateway = gateway_with_strategy(open_gateway, strategy)
    gateway.add_tool(send_invoice)
    role = stage.cast(
        find("send an invoice to a customer"),
        Turn(calls=(Call("send_invoice", {"customer": "Ada", "amount": 5}),)),
        lambda request: Turn(f"Done: {request.last_tool_results()[0]['content']}."),
    )

    answer = await speaker.ask(way, gateway, role)

    assert "Done: sent as number 17." == text(answer)
    assert [("Ada", 5)] == charged
    meta = ("search_tools", "call_tool")
    assert [meta, (*meta, "send_invoice"), (*meta, "send_invoice")] == role.tool_names
    assert {
        "name": "send_invoice",
        "description": "Send an invoice to a customer.",
        "parameters": {
            "type": "object",
            "properties": {"customer": {"type": "string"}, "amount": {"type": "integer"}},
            "required": ["customer", "amount"],
            "additionalProperties": False,
        },
    } == role.requests[-1].functions["send_invoice"]


@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_model_finds_and_calls_a_tool_of_a_real_server(
    stage: Stage, speaker: Speaker, open_gateway: OpenGateway, strategy: Strategy
) -> None:
    """The MCP server is a child process. One gateway serves all four ways to call the wrapper."""
    gateway = gateway_with_strategy(open_gateway, strategy)
    gateway.add_server("time", command=TIME_SERVER)
    real, _ = [entity.definition for entity in await gateway.list_tools()]
    for way in WAYS:
        role = stage.cast(
            find("convert a time between timezones"),
            Turn(calls=(Call("convert_time", CONVERT),)),
            lambda request: Turn(str(request.last_tool_results()[0]["content"])),
        )

        answer = await speaker.ask(way, gateway, role)

        target = json.loads(text(answer))["target"]
        proxies = role.requests[-1].functions["convert_time"]
        assert ("Asia/Tokyo", "T21:00:00+09:00") == (target["timezone"], target["datetime"][10:])
        assert (real.input_schema, real.description) == (
            proxies["parameters"],
            proxies["description"],
        )


async def test_blocking_async_and_streamed_calls_send_identical_requests(
    stage: Stage, speaker: Speaker, functions: Gateway
) -> None:
    """The four ways are blocking or async, whole or streamed. The model must not notice a
    difference.

    Streamed calls contain the index of their fragments, which services refuse in a message.
    """
    sent = []
    for way in WAYS:
        role = stage.cast(
            Turn("Let me see.", find("add two numbers").calls),
            Turn(calls=(Call("add", {"a": 1, "b": 2}), Call("greet", {"name": "Ada"}))),
            Turn("3"),
        )
        await speaker.ask(way, functions, role)
        bodies = [dict(request.body) for request in role.requests]
        for body in bodies:
            body.pop("model")
            body.pop("stream", None)
        sent.append(json.dumps(bodies))

    assert [sent[0]] * 4 == sent


@pytest.mark.requirement("auto:rule-9")
async def test_tool_list_only_grows_at_its_end_during_a_conversation(
    stage: Stage, speaker: Speaker, functions: Gateway
) -> None:
    """Tools are at the beginning of the prompt, so any other change would invalidate the prompt
    cache.
    """
    role = stage.cast(
        find("add two numbers"), find("greet a person"), find("divide a number"), Turn("Done.")
    )
    host = [function("mine", zone={"type": "string"}), function("other")]

    await speaker.ask("whole", functions, role, tools=host)

    lists = [[json.dumps(tool) for tool in request.tools] for request in role.requests]
    assert [json.dumps(tool) for tool in host] == lists[0][:2]
    assert ("mine", "other", "search_tools", "call_tool") == role.tool_names[0]
    assert all(earlier == later[: len(earlier)] for earlier, later in pairwise(lists))
    assert {"add", "greet", "divide"} == set(role.tool_names[-1][4:])


async def test_digest_changes_only_with_the_catalog(
    stage: Stage, speaker: Speaker, functions: Gateway
) -> None:
    """The digest (a summary of the catalog) is at the beginning of every prompt, so each change
    costs the prompt cache.
    """

    def book_flight(city: str) -> str:
        """Book a flight."""
        return city

    role = stage.act(lambda _: Turn("Hi."))
    await speaker.ask("whole", functions, role)
    await speaker.ask("async whole", functions, role, messages=[*ASK, *ASK])
    functions.add_tool(book_flight)
    await speaker.ask("whole", functions, role)

    first, second, third = [
        str(request.functions["search_tools"]["description"]) for request in role.requests
    ]
    assert first == second
    assert "The catalog holds 3 tools: local (3: " in first
    assert "The catalog holds 4 tools: local (4: " in third
    assert "flight" in third


@pytest.mark.parametrize("meta", ["search_tools", "call_tool"])
async def test_meta_tools_are_neither_found_nor_called_through_each_other(
    stage: Stage, speaker: Speaker, functions: Gateway, meta: str
) -> None:
    role = stage.cast(
        find(meta), Turn(calls=(Call("call_tool", {"name": meta, "arguments": {}}),)), Turn("Oh.")
    )

    await speaker.ask("whole", functions, role)

    rows = role.result(1)["tools"]
    assert [] == [row for row in rows if row["name"] == meta]
    assert f"{meta!r} is called directly, not through call_tool" == role.result(2)["error"]
