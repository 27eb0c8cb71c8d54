"""Equality with the bare client: if the catalog is empty, requests are identical, byte for byte."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from openai import OpenAI
from openai.types.chat import ChatCompletionMessage
from pydantic import BaseModel

from gateway import AutoDiscoveryClient, Gateway
from gateway.testing import ModelRequest, Turn
from tests.conftest import OpenGateway
from tests.core.chat.stage import Role, Stage, function

USER: dict[str, Any] = {"role": "user", "content": "Hi."}
CALL = {"id": "c1", "type": "function", "function": {"name": "mine", "arguments": "{}"}}
SAID = ChatCompletionMessage.model_validate({"role": "assistant", "tool_calls": [CALL]})
MINE = function("mine", zone={"type": "string"})
ITEM = {"type": "function", "name": "mine", "parameters": None, "strict": False}
SCHEMA = {"name": "s", "schema": {"type": "object", "properties": {}}, "strict": False}
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
NAMED = {"type": "function", "function": {"name": "mine"}}
ALLOWED = {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [NAMED]}}


class Reading(BaseModel):
    """Type to which a reply is parsed."""

    value: int


CHAT: dict[str, dict[str, Any]] = {
    "plain": {},
    "system": {"messages": [{"role": "developer", "content": "Be brief."}, USER]},
    "parts": {"messages": [{"role": "user", "content": [{"type": "text", "text": "x"}, PICTURE]}]},
    "unicode": {"messages": [{"role": "user", "content": "Grüße 你好 🎉  \x00"}]},
    "tuple": {"messages": (USER,)},
    "history": {
        "messages": [USER, SAID, {"role": "tool", "tool_call_id": "c1", "content": "1"}],
        "tools": [MINE],
    },
    "tools": {"tools": [MINE], "parallel_tool_calls": False},
    "no tools": {"tools": None},
    "auto": {"tools": [MINE], "tool_choice": "auto"},
    "none": {"tools": [MINE], "tool_choice": "none"},
    "required": {"tools": [MINE], "tool_choice": "required"},
    "named": {"tools": [MINE], "tool_choice": NAMED},
    "allowed": {"tools": [MINE], "tool_choice": ALLOWED},
    "custom": {"tools": [{"type": "custom", "custom": {"name": "grep"}}]},
    "functions": {"functions": [MINE["function"]], "function_call": "auto"},
    "several": {"n": 3, "seed": 1, "stop": ["x", "y"], "logprobs": True, "top_logprobs": 2},
    "sampling": {"temperature": 0.0, "top_p": 0.5, "presence_penalty": 1, "logit_bias": {"1": 2}},
    "json": {"response_format": {"type": "json_object"}},
    "schema": {"response_format": {"type": "json_schema", "json_schema": SCHEMA}},
    "reasoning": {"reasoning_effort": "low", "max_completion_tokens": 9, "verbosity": "low"},
    "stored": {"store": True, "metadata": {"a": "b"}, "service_tier": "flex", "user": "u"},
    "extra": {"extra_body": {"own": 1, "tools": [MINE]}, "extra_headers": {"x-own": "1"}},
    "nulls": {"temperature": None, "stop": None, "n": None},
    "stream": {"stream": True},
    "stream of several": {"stream": True, "n": 3},
    "stream with usage": {"stream": True, "stream_options": {"include_usage": True}},
}
RESPONSES: dict[str, dict[str, Any]] = {
    "text": {"input": "Hi."},
    "items": {"input": [USER], "instructions": "Be brief.", "store": False},
    "functions": {"input": "Hi.", "tools": [ITEM], "tool_choice": "required"},
    "hosted": {"input": "Hi.", "tools": [{"type": "web_search"}], "include": []},
    "format": {"input": "Hi.", "text": {"format": {"type": "json_object"}}, "truncation": "auto"},
    "conversation": {"input": "Hi.", "conversation": "conv_1", "max_output_tokens": 16},
    "stream": {"input": "Hi.", "stream": True},
}
Ask = Callable[[Any, dict[str, Any]], Any]


def drain(reply: Any) -> Any:
    """Return the elements of a stream."""
    return list(reply) if hasattr(reply, "__next__") else reply


def create(client: Any, options: dict[str, Any]) -> Any:
    return drain(client.chat.completions.create(**options))


def create_raw(client: Any, options: dict[str, Any]) -> Any:
    return drain(client.chat.completions.with_raw_response.create(**options).parse())


def create_raw_from_client(client: Any, options: dict[str, Any]) -> Any:
    return drain(client.with_raw_response.chat.completions.create(**options).parse())


def create_streaming_response(client: Any, options: dict[str, Any]) -> Any:
    with client.chat.completions.with_streaming_response.create(**options) as response:
        return drain(response.parse())


def parse(client: Any, options: dict[str, Any]) -> Any:
    return client.chat.completions.parse(response_format=Reading, **options)


def use_stream_helper(client: Any, options: dict[str, Any]) -> Any:
    with client.chat.completions.stream(response_format=Reading, **options) as stream:
        return [event.type for event in stream], stream.get_final_completion()


def create_with_options(client: Any, options: dict[str, Any]) -> Any:
    return create(client.with_options(timeout=9, default_headers={"x-a": "1"}), options)


def create_response(client: Any, options: dict[str, Any]) -> Any:
    return drain(client.responses.create(**options))


def create_raw_response(client: Any, options: dict[str, Any]) -> Any:
    return drain(client.responses.with_raw_response.create(**options).parse())


def use_response_stream_helper(client: Any, options: dict[str, Any]) -> Any:
    with client.responses.stream(**options) as stream:
        return [event.type for event in stream], stream.get_final_response()


def parse_response(client: Any, options: dict[str, Any]) -> Any:
    return client.responses.parse(text_format=Reading, **options)


SHAPES: dict[str, tuple[Ask, dict[str, Any]]] = {
    **{f"chat: {name}": (create, options) for name, options in CHAT.items()},
    **{f"responses: {name}": (create_response, options) for name, options in RESPONSES.items()},
    "raw": (create_raw, {}),
    "raw of the client": (create_raw_from_client, {"tools": [MINE]}),
    "raw stream": (create_raw, {"stream": True}),
    "held open": (create_streaming_response, {}),
    "held open stream": (create_streaming_response, {"stream": True}),
    "parse": (parse, {}),
    "stream helper": (use_stream_helper, {}),
    "other options": (create_with_options, {}),
    "raw response": (create_raw_response, {"input": "Hi."}),
    "raw response stream": (create_raw_response, {"input": "Hi.", "stream": True}),
    "response stream helper": (use_response_stream_helper, {"input": "Hi."}),
    "response parse": (parse_response, {"input": "Hi."}),
}


def sent_request(role: Role) -> tuple[str, bytes, dict[str, str]]:
    """Return path, body and headers of the role's request."""
    (request,) = role.requests
    return request.path, request.raw, dict(request.headers)


def to_plain_values(reply: Any) -> Any:
    """Convert a reply to plain values."""
    if isinstance(reply, BaseModel):
        return reply.model_dump(warnings=False)
    return [to_plain_values(part) for part in reply] if isinstance(reply, list | tuple) else reply


def ask_client(ask: Ask, client: Any, role: Role, given: dict[str, Any]) -> Any:
    options = {**given, "model": role.model}
    if "input" not in options:
        options.setdefault("messages", [USER])
    return to_plain_values(ask(client, options))


def reply_with_seven(_request: ModelRequest) -> Turn:
    return Turn('{"value": 7}')


@pytest.mark.parametrize("name", SHAPES)
def test_empty_catalog_leaves_requests_and_replies_unchanged(
    stage: Stage, openai: OpenAI, open_gateway: OpenGateway, name: str
) -> None:
    """Path, body and headers of each request are identical to the bare client's, and so is the
    reply.
    """
    ask, options = SHAPES[name]
    role = stage.act(reply_with_seven)
    bare = ask_client(ask, openai, role, options)
    before = sent_request(role)
    stage.server.forget()

    wrapped = ask_client(ask, AutoDiscoveryClient(openai, open_gateway()), role, options)

    assert before == sent_request(role)
    assert bare == wrapped


@pytest.mark.parametrize("name", SHAPES)
def test_first_request_differs_only_by_the_tools(
    stage: Stage, openai: OpenAI, functions: Gateway, name: str
) -> None:
    """All other bytes of the body are the caller's."""
    if name == "chat: functions":
        pytest.skip("the form that cannot work is refused: see test_refused")
    ask, options = SHAPES[name]
    role = stage.act(reply_with_seven)
    bare = ask_client(ask, openai, role, options)
    (before,) = role.requests
    stage.server.forget()

    wrapped = ask_client(ask, AutoDiscoveryClient(openai, functions), role, options)

    (after,) = role.requests
    host_tools = before.tools
    assert {**before.body, "tools": host_tools} == {
        **after.body,
        "tools": after.tools[: len(host_tools)],
    }
    assert ("search_tools", "call_tool") == after.tool_names[-2:]
    assert type(bare) is type(wrapped)
