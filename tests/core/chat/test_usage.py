"""Token usage reports of services, in various places of a stream or with missing fields."""

from __future__ import annotations

import json
from typing import Any

import pytest
from openai import OpenAI
from openai.types.chat import ChatCompletionChunk

from gateway import AutoDiscoveryClient, Gateway, Options, accounting_of
from gateway.errors import LoopError
from gateway.options import ChatOptions
from tests.conftest import OpenGateway
from tests.core.chat.canned import DONE, Canned, event, fragment
from tests.core.chat.conftest import add
from tests.core.chat.stage import ASK

HELLO = {"role": "assistant", "content": "Hi."}
ENDS: dict[str, Any] = {"finish": "stop"}


def usage(tokens: int) -> dict[str, int]:
    return {"prompt_tokens": tokens, "completion_tokens": 1, "total_tokens": tokens + 1}


STREAMS: dict[str, list[bytes]] = {
    "in no chunk at all": [],
    "nowhere": [event(HELLO), event({}, **ENDS)],
    "in a chunk of its own": [event(HELLO), event({}, **ENDS), event(usage=usage(2))],
    "in two": [event(usage=usage(1)), event(HELLO), event({}, **ENDS), event(usage=usage(2))],
    "with the end": [event(HELLO), event({}, **ENDS, usage=usage(2))],
    "with the end and a text": [event(HELLO), event({"content": "!"}, **ENDS, usage=usage(2))],
    "with every chunk": [event(HELLO, usage=usage(1)), event({}, **ENDS, usage=usage(2))],
    "with an empty one": [event(HELLO), event({}, **ENDS), event({}, usage=usage(2))],
    "alone": [event(usage=usage(2))],
    "null at first": [event(HELLO, usage=None), event({}, **ENDS), event(usage=usage(2))],
}
SEARCHES = [
    event(fragment(0, id="a", type="function", name="search_tools", arguments='{"query": "add"}')),
    event({}, finish="tool_calls", usage=usage(10)),
]
SILENT = {"in no chunk at all", "alone"}
"""Cases in which the SDK's stream helper returns no usage."""
LATER = {
    name: parts for name, parts in STREAMS.items() if any(b"_tokens" in part for part in parts)
}


def read(client: OpenAI) -> list[ChatCompletionChunk]:
    return list(client.chat.completions.create(model="m", messages=ASK, stream=True))


def prompt_tokens(chunks: list[ChatCompletionChunk]) -> list[int]:
    """Return the prompt tokens that a stream reports, in order."""
    return [chunk.usage.prompt_tokens for chunk in chunks if chunk.usage is not None]


def snapshot(client: OpenAI) -> Any:
    """Return the final state of the SDK's stream helper for one stream."""
    with client.chat.completions.stream(model="m", messages=ASK) as stream:
        return stream.get_final_completion()


def summary(chunks: list[ChatCompletionChunk]) -> tuple[str, list[str]]:
    choices = [choice for chunk in chunks for choice in chunk.choices]
    ends = [str(chunk.finish_reason) for chunk in choices if chunk.finish_reason]
    return "".join(chunk.delta.content or "" for chunk in choices), ends


@pytest.mark.parametrize("where", STREAMS)
def test_stream_of_one_turn_reports_the_token_usage_of_the_service(
    functions: Gateway, where: str
) -> None:
    """The stream reports it once, at the end, and the SDK's helper reads it too."""
    with (
        Canned([*STREAMS[where], DONE]) as server,
        OpenAI(base_url=server.base_url, api_key="test", max_retries=0) as bare,
    ):
        wrapped = AutoDiscoveryClient(bare, functions)
        plain, ours = read(bare), read(wrapped)
        if where not in SILENT:
            assert snapshot(bare).to_dict() == snapshot(wrapped).to_dict()

    assert (prompt_tokens(plain)[-1:], summary(plain)) == (prompt_tokens(ours), summary(ours))


@pytest.mark.parametrize("where", LATER)
def test_last_usage_of_a_stream_covers_all_turns(functions: Gateway, where: str) -> None:
    """The first turn is a search that the caller never sees, but its tokens count."""
    with (
        Canned([*LATER[where], DONE], before=[[*SEARCHES, DONE]]) as server,
        OpenAI(base_url=server.base_url, api_key="test", max_retries=0) as bare,
    ):
        stream = AutoDiscoveryClient(bare, functions).chat.completions.create(
            model="m", messages=ASK, stream=True
        )
        chunks = list(stream)

    accounting = accounting_of(stream)
    assert accounting is not None
    assert [12] == prompt_tokens(chunks) == [accounting.prompt_tokens]
    assert 1 == len({chunk.id for chunk in chunks})


USAGES: dict[str, Any] = {
    "complete": {
        "input_tokens": 1,
        "output_tokens": 1,
        "total_tokens": 2,
        "input_tokens_details": {"cached_tokens": 1, "cache_write_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    },
    "few details": {"input_tokens": 1, "total_tokens": 2, "input_tokens_details": {}},
    "no details": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2},
    "null details": {"input_tokens": 1, "total_tokens": 2, "input_tokens_details": None},
    "null counts": {"input_tokens": 1, "output_tokens": None, "total_tokens": 1},
    "no total": {"input_tokens": 1, "output_tokens": 1},
    "fields of its own": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2, "cost": 0.5},
    "empty": {},
    "null": None,
    "another type": "unknown",
}
"""Token usages of one turn in the format of the Responses API, keyed by their fault."""
SEARCH = {"name": "search_tools", "arguments": '{"query": "add"}'}
MESSAGE = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "Hi.", "annotations": []}],
}
OUTPUTS: list[dict[str, Any]] = [{"type": "function_call", "call_id": "c", **SEARCH}, MESSAGE]
"""Output of the first turn (a search) and of the second (a text)."""


def completion(message: dict[str, Any], usage: Any) -> bytes:
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", **message}}
    head = {"id": "x", "object": "chat.completion", "created": 1, "model": "m"}
    return json.dumps({**head, "choices": [choice], "usage": usage}).encode()


def response(item: dict[str, Any], usage: Any) -> dict[str, Any]:
    head = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m", "tools": []}
    return {**head, "status": "completed", "output": [item], "usage": usage}


def chat_field_names(usage: Any) -> Any:
    """Convert a token usage of the Responses API to the field names of Chat Completions."""
    text = json.dumps(usage).replace("input_", "prompt_").replace("output_", "completion_")
    return json.loads(text)


def double_usage(usage: Any) -> Any:
    """Return the total usage of two turns that both have *usage*."""
    if isinstance(usage, dict):
        return {key: double_usage(value) for key, value in usage.items()}
    return usage * 2 if isinstance(usage, int | float) else usage


@pytest.mark.parametrize("name", USAGES)
def test_chat_completions_add_token_usages_that_lack_fields(functions: Gateway, name: str) -> None:
    calls = {"tool_calls": [{"id": "c", "type": "function", "function": SEARCH}]}
    usage = chat_field_names(USAGES[name])
    turns = [[completion(message, usage)] for message in (calls, {"content": "Hi."})]
    with (
        Canned(turns[1], before=turns[:1], media_type="application/json") as server,
        OpenAI(base_url=server.base_url, api_key="test", max_retries=0) as bare,
    ):
        reply = AutoDiscoveryClient(bare, functions).chat.completions.create(
            model="m", messages=ASK
        )

    assert ("Hi.", double_usage(usage)) == (
        reply.choices[0].message.content,
        reply.to_dict(warnings=False)["usage"],
    )


@pytest.mark.parametrize("name", USAGES)
def test_chat_completion_streams_add_token_usages_that_lack_fields(
    functions: Gateway, name: str
) -> None:
    usage = chat_field_names(USAGES[name])
    search = event(fragment(0, id="a", type="function", **SEARCH))
    ends = [event({}, finish="stop"), event(usage=usage), DONE]
    with (
        Canned([event(HELLO), *ends], before=[[search, *ends]]) as server,
        OpenAI(base_url=server.base_url, api_key="test", max_retries=0) as bare,
    ):
        chunks = read(AutoDiscoveryClient(bare, functions))

    last = [chunk.to_dict(warnings=False)["usage"] for chunk in chunks if chunk.usage is not None]
    assert summary(chunks)[0] == "Hi."
    assert last == ([] if usage is None else [double_usage(usage)])


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", USAGES)
def test_responses_api_adds_token_usages_that_lack_fields(
    functions: Gateway, name: str, *, stream: bool
) -> None:
    bodies = [response(item, USAGES[name]) for item in OUTPUTS]
    turns = [[json.dumps(body).encode()] for body in bodies]
    if stream:
        ends = [{"type": "response.completed", "response": body} for body in bodies]
        turns = [
            [f"data: {json.dumps({**end, 'sequence_number': 0})}\n\n".encode()] for end in ends
        ]
    media_type = "text/event-stream" if stream else "application/json"
    with (
        Canned(turns[1], before=turns[:1], media_type=media_type) as server,
        OpenAI(base_url=server.base_url, api_key="test", max_retries=0) as bare,
    ):
        responses = AutoDiscoveryClient(bare, functions).responses
        if stream:
            *_, end = responses.create(model="m", input="x", stream=True)
            assert end.type == "response.completed"
            reply = end.response
        else:
            reply = responses.create(model="m", input="x")

    assert ("Hi.", double_usage(USAGES[name])) == (
        reply.output_text,
        reply.to_dict(warnings=False)["usage"],
    )


@pytest.mark.parametrize("name", ["no total", "empty", "another type"])
def test_token_budget_applies_to_usages_without_a_total(
    open_gateway: OpenGateway, name: str
) -> None:
    gateway = open_gateway(options=Options(chat=ChatOptions(max_tokens=4, max_turns=9)))
    gateway.add_tool(add)
    body = json.dumps(response(OUTPUTS[0], USAGES[name])).encode()
    with (
        Canned([body], media_type="application/json") as server,
        OpenAI(base_url=server.base_url, api_key="test", max_retries=0) as bare,
        pytest.raises(LoopError) as caught,
    ):
        AutoDiscoveryClient(bare, gateway).responses.create(model="m", input="x")

    assert caught.value.limit == "max_tokens"
