"""What nobody should send, and somebody will: the conversation goes on, or the error is clear."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import pytest
from httpx2 import Response as HttpResponse
from openai import OpenAI

from gateway import AsyncAutoDiscoveryClient, AutoDiscoveryClient, Gateway, accounting_of
from gateway.errors import InvalidRequestError, LoopError
from gateway.options import ChatOptions, Options
from gateway.testing import Call, Turn
from tests.conftest import OpenGateway
from tests.core.chat.canned import DONE, Canned, event
from tests.core.chat.conftest import add
from tests.core.chat.stage import ASK, WAYS, Speaker, Stage, Way, calls, find, look, text


@pytest.mark.parametrize("way", WAYS)
async def test_half_a_character_of_a_model_does_not_end_the_conversation(
    stage: Stage, speaker: Speaker, functions: Gateway, way: Way
) -> None:
    """A lone surrogate is JSON, but no request could carry it back."""
    half = '{"name": "\\ud83d"}'
    turn = Turn(calls=(Call("greet", half), Call("search_tools", '{"query": "\\udc00 zz"}')))
    role = stage.cast(turn, Turn("Done."))

    answer = await speaker.ask(way, functions, role)

    assert "Done." == text(answer)
    assert "Hello ?!" == role.results()[0]


@pytest.mark.parametrize("way", WAYS)
async def test_a_call_without_a_name_is_answered_with_an_error(
    stage: Stage, speaker: Speaker, functions: Gateway, way: Way
) -> None:
    """It is none of the host's tools: the model mends it, the host would not know what to do."""
    role = stage.cast(Turn(calls=(Call("", {}), look("add two numbers"))), Turn("Done."))

    answer = await speaker.ask(way, functions, role)

    assert "Done." == text(answer)
    assert [] == calls(answer)
    assert "error" in role.results()[0]


def test_a_copy_is_a_wrapper_of_the_same_client(
    stage: Stage, openai: OpenAI, functions: Gateway
) -> None:
    """A bare client for a copy would lose the catalog in silence."""
    role = stage.cast(Turn("Hi."))
    client = copy.copy(AutoDiscoveryClient(openai, functions))

    client.chat.completions.create(model=role.model, messages=ASK)

    assert openai is client.openai
    assert ("search_tools", "call_tool") == role.tool_names[0]


@pytest.mark.parametrize("take", [pickle.dumps, copy.deepcopy])
def test_what_holds_connections_is_not_pickled(
    openai: OpenAI, functions: Gateway, take: Any
) -> None:
    """The bare client is not either; here it says why, and what to do."""
    with pytest.raises(TypeError, match="make one where it is needed"):
        take(AutoDiscoveryClient(openai, functions))


HEAD: dict[str, Any] = {"id": "c", "object": "chat.completion", "created": 1, "model": "m"}
ODD: dict[str, bytes] = {
    "an error as if it were a reply": b'{"error": {"message": "overloaded"}}',
    "no choices": json.dumps(HEAD).encode(),
    "null for choices": json.dumps({**HEAD, "choices": None}).encode(),
    "null for a message": json.dumps({**HEAD, "choices": [{"index": 0, "message": None}]}).encode(),
    "a text": b'"busy"',
}


def both(parts: list[bytes], media_type: str, functions: Gateway, **more: Any) -> list[Any]:
    """What the bare client and the wrapper give for the same bytes."""
    with (
        Canned(parts, media_type=media_type) as server,
        OpenAI(base_url=server.base_url, api_key="test", max_retries=0) as bare,
    ):
        return [
            drained(each.chat.completions.create(model="m", messages=ASK, **more))
            for each in (bare, AutoDiscoveryClient(bare, functions))
        ]


def drained(reply: Any) -> Any:
    """A stream as a list."""
    return list(reply) if hasattr(reply, "__next__") else reply


@pytest.mark.parametrize("name", ODD)
def test_what_is_no_reply_reaches_the_caller_as_it_is(functions: Gateway, name: str) -> None:
    """Services that speak nearly the same format say so in many ways."""
    plain, wrapped = both([ODD[name]], "application/json", functions)

    assert plain == wrapped
    assert accounting_of(wrapped) is None


def test_chunks_without_a_choice_pass(functions: Gateway) -> None:
    """Azure begins with one, under no id; and a service may tell the usage unasked."""
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    parts = [
        b'data: {"id": "", "created": 0, "choices": [], "prompt_filter_results": [{"a": 0}]}\n\n',
        event({"role": "assistant", "content": "Hi."}),
        event({}, finish="stop"),
        event(usage=usage),
        DONE,
    ]

    plain, wrapped = both(parts, "text/event-stream", functions, stream=True)

    assert plain == wrapped


def test_a_delta_that_a_service_leaves_out_is_an_empty_one(functions: Gateway) -> None:
    """Null where an object should be: what was said besides is passed on."""
    parts = [event({"content": "a"}), event({"content": "b"}), event({}, finish="stop"), DONE]
    parts.insert(1, parts[0].replace(b'"delta": {"content": "a"}', b'"delta": null'))

    _, wrapped = both(parts, "text/event-stream", functions, stream=True)

    assert "ab" == "".join(each.choices[0].delta.content or "" for each in wrapped)


@pytest.mark.parametrize("kind", [dict, HttpResponse])
async def test_a_reply_in_another_form_is_refused_where_there_is_a_catalog(
    stage: Stage, speaker: Speaker, functions: Gateway, open_gateway: OpenGateway, kind: type
) -> None:
    """Nobody could look for calls in it."""
    role = stage.cast(Turn("Hi."))
    body = {"model": role.model, "messages": ASK}

    bare: object = AutoDiscoveryClient(speaker.openai, open_gateway()).post(
        "/chat/completions", body=body, cast_to=kind
    )
    with pytest.raises(InvalidRequestError, match="own create"):
        AutoDiscoveryClient(speaker.openai, functions).post(
            "/chat/completions", body=body, cast_to=kind
        )
    with pytest.raises(InvalidRequestError, match="own create"):
        await AsyncAutoDiscoveryClient(speaker.asynchronous, functions).post(
            "/chat/completions", body=body, cast_to=kind
        )

    assert isinstance(bare, kind)
    assert 1 == len(role.requests)


@pytest.mark.parametrize("way", WAYS)
async def test_the_budget_of_tokens_holds_where_nobody_reports_them(
    stage: Stage, speaker: Speaker, open_gateway: OpenGateway, way: Way
) -> None:
    """A stream tells its usage only if it is asked: it is estimated then."""
    gateway = open_gateway(options=Options(chat=ChatOptions(max_tokens=800)))
    gateway.add_tool(add)
    role = stage.act(lambda _: find("add two numbers"))

    with pytest.raises(LoopError, match="max_tokens"):
        await speaker.ask(way, gateway, role)

    assert 2 <= len(role.requests) <= 5
