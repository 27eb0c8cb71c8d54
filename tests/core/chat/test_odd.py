"""Malformed replies and unusual uses: the conversation continues, or the error is clear."""

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
async def test_lone_surrogate_from_the_model_does_not_end_the_conversation(
    stage: Stage, speaker: Speaker, functions: Gateway, way: Way
) -> None:
    """JSON allows a lone surrogate, but a request cannot contain it."""
    half = '{"name": "\\ud83d"}'
    turn = Turn(calls=(Call("greet", half), Call("search_tools", '{"query": "\\udc00 zz"}')))
    role = stage.cast(turn, Turn("Done."))

    answer = await speaker.ask(way, functions, role)

    assert "Done." == text(answer)
    assert "Hello ?!" == role.results()[0]


@pytest.mark.parametrize("way", WAYS)
async def test_tool_call_without_a_name_is_answered_with_an_error(
    stage: Stage, speaker: Speaker, functions: Gateway, way: Way
) -> None:
    """The error goes to the model, which can correct the call; the host could not handle it."""
    role = stage.cast(Turn(calls=(Call("", {}), look("add two numbers"))), Turn("Done."))

    answer = await speaker.ask(way, functions, role)

    assert "Done." == text(answer)
    assert [] == calls(answer)
    assert "error" in role.results()[0]


def test_copy_of_a_wrapper_is_a_wrapper_of_the_same_client(
    stage: Stage, openai: OpenAI, functions: Gateway
) -> None:
    """A copy that is not a wrapper would have no tools of the gateway, without an error."""
    role = stage.cast(Turn("Hi."))
    client = copy.copy(AutoDiscoveryClient(openai, functions))

    client.chat.completions.create(model=role.model, messages=ASK)

    assert openai is client.openai
    assert ("search_tools", "call_tool") == role.tool_names[0]


@pytest.mark.parametrize("take", [pickle.dumps, copy.deepcopy])
def test_wrapper_cannot_be_pickled(openai: OpenAI, functions: Gateway, take: Any) -> None:
    """The bare client cannot be pickled either. The error has a reason and a remedy."""
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


def ask_both(parts: list[bytes], media_type: str, functions: Gateway, **more: Any) -> list[Any]:
    """Return the results of the bare client and of the wrapper if the service sends *parts* to
    both.
    """
    with (
        Canned(parts, media_type=media_type) as server,
        OpenAI(base_url=server.base_url, api_key="test", max_retries=0) as bare,
    ):
        return [
            drain(client.chat.completions.create(model="m", messages=ASK, **more))
            for client in (bare, AutoDiscoveryClient(bare, functions))
        ]


def drain(reply: Any) -> Any:
    """Return the elements of a stream."""
    return list(reply) if hasattr(reply, "__next__") else reply


@pytest.mark.parametrize("name", ODD)
def test_reply_that_is_not_a_completion_is_returned_unchanged(
    functions: Gateway, name: str
) -> None:
    """Services whose format differs a little from OpenAI's send such replies."""
    plain, wrapped = ask_both([ODD[name]], "application/json", functions)

    assert plain == wrapped
    assert accounting_of(wrapped) is None


def test_stream_chunks_without_choices_are_passed_on(functions: Gateway) -> None:
    """Azure's first chunk has no choices and no id. A service may also send a usage that was not
    requested.
    """
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    parts = [
        b'data: {"id": "", "created": 0, "choices": [], "prompt_filter_results": [{"a": 0}]}\n\n',
        event({"role": "assistant", "content": "Hi."}),
        event({}, finish="stop"),
        event(usage=usage),
        DONE,
    ]

    plain, wrapped = ask_both(parts, "text/event-stream", functions, stream=True)

    assert plain == wrapped


def test_stream_chunk_without_a_delta_counts_as_empty(functions: Gateway) -> None:
    """If the delta of a chunk is null, the text of other chunks is passed on."""
    parts = [event({"content": "a"}), event({"content": "b"}), event({}, finish="stop"), DONE]
    parts.insert(1, parts[0].replace(b'"delta": {"content": "a"}', b'"delta": null'))

    _, wrapped = ask_both(parts, "text/event-stream", functions, stream=True)

    assert "ab" == "".join(chunk.choices[0].delta.content or "" for chunk in wrapped)


@pytest.mark.parametrize("kind", [dict, HttpResponse])
async def test_unknown_reply_type_is_refused_if_the_catalog_has_tools(
    stage: Stage, speaker: Speaker, functions: Gateway, open_gateway: OpenGateway, kind: type
) -> None:
    """The caller chose a type of reply in which the gateway could not find calls."""
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
async def test_token_budget_applies_if_no_usage_is_reported(
    stage: Stage, speaker: Speaker, open_gateway: OpenGateway, way: Way
) -> None:
    """Services report the usage of a stream only on request, so tokens are estimated."""
    gateway = open_gateway(options=Options(chat=ChatOptions(max_tokens=800)))
    gateway.add_tool(add)
    role = stage.act(lambda _: find("add two numbers"))

    with pytest.raises(LoopError, match="max_tokens"):
        await speaker.ask(way, gateway, role)

    assert 2 <= len(role.requests) <= 5
