"""Loops that the host runs itself: prepared turns, and the middleware."""

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


def test_host_loop_sends_prepared_tools_and_handles_calls(
    stage: Stage, openai: OpenAI, functions: Gateway
) -> None:
    """The host sends the requests with the bare client."""
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
def test_prepare_accepts_a_whole_json_request(
    stage: Stage, openai: OpenAI, functions: Gateway, form: str
) -> None:
    """Both wire formats work. The host's own object is not changed."""
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
    assert [0.5] * 3 == [request.body["temperature"] for request in role.requests]
    assert "add" in role.tool_names[1]
    assert MINE == final["tools"][0]  # type: ignore[index]  # plain JSON


async def test_handle_leaves_calls_of_host_tools_to_the_host(
    stage: Stage, speaker: Speaker, functions: Gateway
) -> None:
    """If a turn has both kinds of calls, the gateway calls are answered, and the host appends the
    answers to its own calls.
    """
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


async def test_handle_refuses_an_object_that_is_not_a_reply_of_a_model(
    speaker: Speaker, functions: Gateway
) -> None:
    turn = await AsyncAutoDiscoveryClient(speaker.asynchronous, functions).prepare(ASK)

    with pytest.raises(InvalidRequestError, match="the reply must be a completion"):
        await turn.handle({"text": "hello"})


@pytest.mark.parametrize("form", ["chat", "responses"])
async def test_middleware_runs_the_loop_for_json_requests(
    stage: Stage, openai: OpenAI, functions: Gateway, form: str
) -> None:
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


async def test_middleware_refuses_streams_and_other_requests(functions: Gateway) -> None:

    async def never(_body: dict[str, Any]) -> dict[str, Any]:
        raise AssertionError

    middleware = Middleware(functions)
    with pytest.raises(InvalidRequestError, match="leave 'stream' out"):
        await middleware({"messages": ASK, "stream": True}, never)
    with pytest.raises(InvalidRequestError, match="needs 'messages'"):
        await middleware({"prompt": "x"}, never)


async def test_middleware_returns_replies_without_gateway_calls_unchanged(
    functions: Gateway,
) -> None:
    call = {"id": "m", "type": "function", "function": {"name": "mine", "arguments": "{}"}}
    reply = {"choices": [{"index": 0, "message": {"role": "assistant", "tool_calls": [call]}}]}

    async def ask(_body: dict[str, Any]) -> dict[str, Any]:
        return reply

    body = {"messages": ASK, "tools": [MINE]}

    assert reply == await Middleware(functions)(body, ask)
