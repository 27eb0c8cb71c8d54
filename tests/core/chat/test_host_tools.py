"""Tools of the host: name conflicts, calls, and unchanged objects."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from openai.types.chat import ChatCompletionMessageParam

from gateway import Gateway
from gateway.testing import Call, Turn
from tests.core.chat.stage import (
    ASK,
    SUM,
    WAYS,
    Speaker,
    Stage,
    Way,
    calls,
    find,
    function,
    look,
    message,
    text,
)

MINE = [function("mine", zone={"type": "string"})]


@pytest.mark.parametrize("way", WAYS)
async def test_call_of_a_host_tool_is_returned_to_the_caller(
    stage: Stage, speaker: Speaker, functions: Gateway, way: Way
) -> None:
    """The reply is the same as from the bare client, and the conversation can continue."""
    role = stage.cast(Turn("One moment.", (Call("mine", {"zone": "CET"}, id="c1"),)), Turn("Noon."))

    answer = await speaker.ask(way, functions, role, tools=MINE)
    again = [*ASK, message(answer), {"role": "tool", "tool_call_id": "c1", "content": "12:00"}]
    final = await speaker.ask(way, functions, role, tools=MINE, messages=again)

    assert [("mine", '{"zone": "CET"}')] == calls(answer)
    assert "tool_calls" == answer["choices"][0]["finish_reason"]
    assert "One moment." == text(answer)
    assert "Noon." == text(final)
    assert ["12:00"] == role.results()


@pytest.mark.parametrize("way", WAYS)
async def test_turn_with_host_and_gateway_calls_returns_only_host_calls(
    stage: Stage, speaker: Speaker, functions: Gateway, way: Way
) -> None:
    """The caller cannot answer gateway calls, but the service requires an answer to every call. So
    the gateway calls are removed from the reply, and the model repeats them.
    """
    cet, utc = (Call("mine", {"zone": zone}, id=zone) for zone in ("CET", "UTC"))
    both = Turn("Both.", (look("add"), cet, Call("add", {"a": 1, "b": 2}), utc))
    role = stage.cast(both, find("add two numbers"), Turn("Done."))

    answer = await speaker.ask(way, functions, role, tools=MINE)
    results = [
        {"role": "tool", "tool_call_id": call_id, "content": "12"} for call_id in ("CET", "UTC")
    ]
    again = [*ASK, message(answer), *results]
    final = await speaker.ask(way, functions, role, tools=MINE, messages=again)

    assert [("mine", '{"zone": "CET"}'), ("mine", '{"zone": "UTC"}')] == calls(answer)
    assert "tool_calls" == answer["choices"][0]["finish_reason"]
    assert "Both." == text(answer)
    assert "Done." == text(final)
    assert ["12", "12"] == role.results(1)


@pytest.mark.parametrize("way", ["whole", "async stream"])
@pytest.mark.parametrize("taken", ["search_tools", "call_tool"])
async def test_host_tool_keeps_the_name_of_a_meta_tool(
    stage: Stage, speaker: Speaker, functions: Gateway, way: Way, taken: str
) -> None:
    """The meta-tool gets another name and still works."""
    search, call = (
        f"gateway_{name}" if name == taken else name for name in ("search_tools", "call_tool")
    )
    role = stage.cast(
        Turn(calls=(Call(search, {"query": "add two numbers"}),)),
        Turn(calls=(Call(call, {"name": "add", "arguments": {"a": 1, "b": 2}}),)),
        Turn(calls=(Call(taken, {"x": 1}),)),
    )

    answer = await speaker.ask(way, functions, role, tools=[function(taken)])

    assert (taken, search, call) == role.tool_names[0]
    assert "add" in role.tool_names[1]
    assert ["3"] == role.results(2)
    assert [(taken, '{"x": 1}')] == calls(answer)


@pytest.mark.parametrize("way", WAYS)
async def test_host_tool_keeps_the_name_of_a_found_tool(
    stage: Stage, speaker: Speaker, functions: Gateway, way: Way
) -> None:
    """The search result says that the found tool must be called through the call tool."""
    role = stage.cast(
        find("add two numbers"),
        Turn(calls=(Call("call_tool", {"name": "add", "arguments": {"a": 1, "b": 2}}),)),
        Turn(calls=(Call("add", {"own": True}),)),
    )

    answer = await speaker.ask(way, functions, role, tools=[function("add")])

    assert ("add", "search_tools", "call_tool") == role.tool_names[0] == role.tool_names[1][:3]
    assert 1 == role.tool_names[1].count("add")
    assert False is role.result(1)["tools"][0]["direct"]
    assert ["3"] == role.results(2)
    assert [("add", '{"own": true}')] == calls(answer)


@pytest.mark.parametrize("way", WAYS)
async def test_objects_of_the_caller_are_not_changed(
    stage: Stage, speaker: Speaker, functions: Gateway, way: Way
) -> None:
    """Hosts store and reuse the lists that they pass, and their elements."""
    role = stage.cast(find("add"), SUM, Turn("3"))
    messages: list[ChatCompletionMessageParam] = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "Add."}]},
    ]
    options: dict[str, Any] = {"tools": copy.deepcopy(MINE), "stop": ["x"], "metadata": {"a": "b"}}
    before = copy.deepcopy((messages, options))

    await speaker.ask(way, functions, role, messages=messages, **options)

    assert before == (messages, options)
    assert 2 == len(messages)


@pytest.mark.parametrize("way", WAYS)
async def test_tools_and_messages_may_be_iterators(
    stage: Stage, speaker: Speaker, functions: Gateway, way: Way
) -> None:
    """The bare client accepts any iterable, and the second turn of a call needs the elements
    again.
    """
    role = stage.cast(find("add two numbers"), Turn("Done."))

    await speaker.ask(way, functions, role, messages=iter(ASK), tools=(result for result in MINE))

    assert [MINE[0]] * 2 == [request.tools[0] for request in role.requests]
    assert [ASK[0]] * 2 == [request.messages[0] for request in role.requests]
