"""Loops of the host's own: one turn prepared and handled, and the middleware form."""

from __future__ import annotations

import json
from typing import Any

import pytest
from openai import OpenAI

from gateway import AsyncAutoDiscoveryClient, AutoDiscoveryClient, Gateway, Middleware
from gateway.errors import InvalidRequestError
from gateway.testing import Call, ModelRequest, Turn
from tests.core.chat.stage import ASK, Speaker, Stage, function

MINE: Any = function("mine", zone={"type": "string"})
META = ("search_tools", "call_tool")


def repeat(request: ModelRequest) -> Turn:
    return Turn(f"It is {request.last_tool_results()[0]['content']}.")


def test_a_host_with_a_loop_of_its_own_sends_our_tools_and_hands_us_the_calls(
    stage: Stage, openai: OpenAI, functions: Gateway
) -> None:
    """Three lines in its loop; the bare client asks."""
    role = stage.cast_sum(repeat)
    client = AutoDiscoveryClient(openai, functions)
    messages: list[Any] = list(ASK)

    for _ in range(3):
        turn = client.prepare(messages, model=role.model)
        reply = openai.chat.completions.create(
            model=role.model,
            messages=messages,
            tools=turn.tools,  # type: ignore[arg-type]  # plain JSON
        )
        handled = turn.handle(reply)
        messages += handled.messages
        if handled.done:
            break

    assert "It is 3." == messages[-1]["content"]
    assert [META, (*META, "add")] == [names[:3] for names in role.tool_names[:2]]
    assert role.requests[1].messages == messages[:3]


@pytest.mark.parametrize("form", ["chat", "responses"])
def test_a_request_that_is_json_already_is_prepared_whole(
    stage: Stage, openai: OpenAI, functions: Gateway, form: str
) -> None:
    """Either format, sent by whatever sends it; the host's own object is not changed."""
    role = stage.cast_sum(repeat)
    client = AutoDiscoveryClient(openai, functions)
    path, key = ("/chat/completions", "messages") if form == "chat" else ("/responses", "input")
    body: dict[str, Any] = {"model": role.model, key: list(ASK), "temperature": 0.5}
    done: list[bool] = []

    for _ in range(3):
        turn = client.prepare(body)
        assert "tools" not in body
        assert turn.tools == turn.body["tools"]
        reply: dict[str, Any] = openai.post(path, body=dict(turn.body), cast_to=dict[str, Any])
        handled = turn.handle(reply)
        body[key] += handled.messages
        done.append(handled.done)
    final = client.prepare(body, tools=[MINE]).body

    assert [False, False, True] == done
    assert "It is 3." in json.dumps(body[key][-1])
    assert [0.5] * 3 == [each.body["temperature"] for each in role.requests]
    assert "add" in role.tool_names[1]
    assert MINE == final["tools"][0]  # type: ignore[index]  # plain JSON


async def test_calls_of_the_host_are_left_to_it(
    stage: Stage, speaker: Speaker, functions: Gateway
) -> None:
    """Of a mixed turn ours are answered, and the host adds its own answers behind."""
    client = AsyncAutoDiscoveryClient(speaker.asynchronous, functions)
    role = stage.cast(
        Turn(calls=(Call("add", {"a": 1, "b": 2}, id="a"), Call("mine", {}, id="m"))), Turn("Done.")
    )
    turn = await client.prepare(ASK, [MINE])
    reply = await speaker.asynchronous.chat.completions.create(
        model=role.model,
        messages=ASK,
        tools=turn.tools,  # type: ignore[arg-type]  # plain JSON
    )

    handled = await turn.handle(reply.choices[0].message)

    assert [("mine", "m")] == [(call.name, call.id) for call in handled.calls]
    assert (1, False) == (handled.ours, handled.done)
    assert ["assistant", "tool"] == [message["role"] for message in handled.messages]
    assert ("a", "3") == (handled.messages[1]["tool_call_id"], handled.messages[1]["content"])
    assert MINE == turn.tools[0]


async def test_what_is_no_reply_is_refused(speaker: Speaker, functions: Gateway) -> None:
    """With what a reply is."""
    turn = await AsyncAutoDiscoveryClient(speaker.asynchronous, functions).prepare(ASK)

    with pytest.raises(InvalidRequestError, match="a reply is a completion"):
        await turn.handle({"text": "hello"})


@pytest.mark.parametrize("form", ["chat", "responses"])
async def test_a_middleware_stands_around_any_way_of_asking(
    stage: Stage, openai: OpenAI, functions: Gateway, form: str
) -> None:
    """Raw JSON in, raw JSON out, in either format."""
    role = stage.cast_sum(repeat)
    path = "/chat/completions" if form == "chat" else "/responses"
    bodies: list[dict[str, Any]] = []

    async def ask(body: dict[str, Any]) -> dict[str, Any]:
        bodies.append(body)
        reply: Any = openai.post(path, body=body, cast_to=object)
        return dict(reply)

    begun: dict[str, Any] = {"messages": ASK} if form == "chat" else {"input": "Please help me."}
    reply = await Middleware(functions)({"model": role.model, **begun}, ask)

    assert "It is 3." in json.dumps(reply)
    assert 3 == len(bodies)
    assert reply["usage"]["total_tokens"] > 0


async def test_a_middleware_takes_no_streams_and_no_other_requests(functions: Gateway) -> None:
    """At the call, with the mend."""

    async def never(_body: dict[str, Any]) -> dict[str, Any]:
        raise AssertionError

    middleware = Middleware(functions)
    with pytest.raises(InvalidRequestError, match="leave 'stream' out"):
        await middleware({"messages": ASK, "stream": True}, never)
    with pytest.raises(InvalidRequestError, match="needs 'messages'"):
        await middleware({"prompt": "x"}, never)


async def test_a_middleware_hands_on_what_needs_nothing(functions: Gateway) -> None:
    """The very reply; and the host's calls as they came."""
    call = {"id": "m", "type": "function", "function": {"name": "mine", "arguments": "{}"}}
    reply = {"choices": [{"index": 0, "message": {"role": "assistant", "tool_calls": [call]}}]}

    async def ask(_body: dict[str, Any]) -> dict[str, Any]:
        return reply

    body = {"messages": ASK, "tools": [MINE]}

    assert reply == await Middleware(functions)(body, ask)
