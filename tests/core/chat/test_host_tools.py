"""Tools of the host: their names win, their calls go back, nothing of theirs is changed."""

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
async def test_a_call_of_a_host_tool_goes_back_to_the_caller(
    stage: Stage, speaker: Speaker, functions: Gateway, way: Way
) -> None:
    """Exactly as the bare client would give it, and the conversation goes on from there."""
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
async def test_a_mixed_turn_goes_back_with_the_hosts_calls_alone(
    stage: Stage, speaker: Speaker, functions: Gateway, way: Way
) -> None:
    """The caller cannot answer ours. The service wants every call answered, so ours are not
    spoken of; the model asks for them again.
    """
    cet, utc = (Call("mine", {"zone": zone}, id=zone) for zone in ("CET", "UTC"))
    both = Turn("Both.", (look("add"), cet, Call("add", {"a": 1, "b": 2}), utc))
    role = stage.cast(both, find("add two numbers"), Turn("Done."))

    answer = await speaker.ask(way, functions, role, tools=MINE)
    results = [{"role": "tool", "tool_call_id": each, "content": "12"} for each in ("CET", "UTC")]
    again = [*ASK, message(answer), *results]
    final = await speaker.ask(way, functions, role, tools=MINE, messages=again)

    assert [("mine", '{"zone": "CET"}'), ("mine", '{"zone": "UTC"}')] == calls(answer)
    assert "tool_calls" == answer["choices"][0]["finish_reason"]
    assert "Both." == text(answer)
    assert "Done." == text(final)
    assert ["12", "12"] == role.results(1)


@pytest.mark.parametrize("way", ["whole", "async stream"])
@pytest.mark.parametrize("taken", ["search_tools", "call_tool"])
async def test_a_host_tool_with_a_meta_tools_name_wins_and_ours_still_works(
    stage: Stage, speaker: Speaker, functions: Gateway, way: Way, taken: str
) -> None:
    """A host may have called its tool so for years."""
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
async def test_a_host_tool_with_a_found_tools_name_wins(
    stage: Stage, speaker: Speaker, functions: Gateway, way: Way
) -> None:
    """The found one is to be called by the meta-tool, and the result says so."""
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
async def test_nothing_of_the_callers_is_changed(
    stage: Stage, speaker: Speaker, functions: Gateway, way: Way
) -> None:
    """Lists and what is in them: hosts keep and reuse both."""
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
async def test_tools_and_messages_may_be_read_only_once(
    stage: Stage, speaker: Speaker, functions: Gateway, way: Way
) -> None:
    """The bare client takes any iterable; the second turn needs them again."""
    role = stage.cast(find("add two numbers"), Turn("Done."))

    await speaker.ask(way, functions, role, messages=iter(ASK), tools=(each for each in MINE))

    assert [MINE[0]] * 2 == [request.tools[0] for request in role.requests]
    assert [ASK[0]] * 2 == [request.messages[0] for request in role.requests]
