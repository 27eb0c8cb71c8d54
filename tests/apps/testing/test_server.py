"""The scripted model with the real SDK."""

from __future__ import annotations

import asyncio

import openai
import pytest
from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolParam
from pydantic import BaseModel

from gateway.errors import ClosedError, ConfigError
from gateway.testing import Call, HashingEmbedder, ModelRequest, ScriptedModel, Turn, script
from tests.apps.testing.driving import HELLO, rejoin, serve_async, serve_blocking

PARALLEL = Turn("Let me look.", (Call("time", {"zone": "CET"}), Call("add", '{"a": 1, ')))


class Point(BaseModel):
    x: int
    y: int


def tools(count: int, *, words: int = 1) -> list[ChatCompletionToolParam]:
    return [
        {"type": "function", "function": {"name": f"tool_{number}", "description": "word " * words}}
        for number in range(count)
    ]


ARRAY: ChatCompletionToolParam = {
    "type": "function",
    "function": {
        "name": "label",
        "parameters": {"type": "object", "properties": {"tags": {"type": "array"}}},
    },
}


def test_turn_with_text_is_sent_as_a_chat_completion() -> None:
    """The whole body is compared, so that every change of the format is noticed."""
    with serve_blocking(script(Turn("Hi there."))) as (_, client):
        answer = client.chat.completions.create(model="m", messages=HELLO)

    assert {
        "id": "chatcmpl-74ae36ec656225e4b9e8aa92",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": "m",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "Hi there.", "refusal": None},
                "logprobs": None,
                "finish_reason": "stop",
            }
        ],
        "usage": {
            "prompt_tokens": 10,
            "completion_tokens": 3,
            "total_tokens": 13,
            "prompt_tokens_details": {"cached_tokens": 0},
        },
    } == answer.to_dict()


@pytest.mark.parametrize("chunk_chars", [1, 2, 7, 1000])
@pytest.mark.parametrize(
    "turn",
    [
        Turn("A longer text, of several chunks — und 漢字."),
        Turn(""),
        Turn(calls=PARALLEL.calls),
        PARALLEL,
        Turn(calls=(Call("f", "", id="mine"),)),
        Turn("cut", finish_reason="length"),
    ],
)
def test_joined_stream_equals_the_answer_without_streaming(turn: Turn, chunk_chars: int) -> None:
    """Chunks may end anywhere."""
    with serve_blocking(script(turn), chunk_chars=chunk_chars) as (_, client):
        whole = client.chat.completions.create(model="m", messages=HELLO)
        stream = client.chat.completions.create(
            model="m", messages=HELLO, stream=True, stream_options={"include_usage": True}
        )
        joined = rejoin(stream)

    assert whole.to_dict() == joined


@pytest.mark.parametrize(("wanted", "expected"), [(True, [0, 1]), (False, [0, 0])])
def test_last_chunk_of_a_stream_has_usage_only_if_requested(
    wanted: bool, expected: list[int]
) -> None:
    """This chunk has no choices, on which careless clients fail."""
    with serve_blocking(script(Turn("Hi"))) as (_, client):
        stream = client.chat.completions.create(
            model="m", messages=HELLO, stream=True, stream_options={"include_usage": wanted}
        )
        chunks = list(stream)

    empty = [chunk for chunk in chunks if not chunk.choices]
    assert expected == [0, len([chunk for chunk in empty if chunk.usage])]
    assert all(chunk.usage is None for chunk in chunks if chunk.choices)


@pytest.mark.parametrize("turn", [Turn("Several words of text"), PARALLEL])
def test_several_choices_have_equal_contents_and_different_call_ids(turn: Turn) -> None:
    """In a stream, the chunks of the choices alternate."""
    with serve_blocking(script(turn)) as (_, client):
        whole = client.chat.completions.create(model="m", messages=HELLO, n=3)
        stream = client.chat.completions.create(
            model="m", messages=HELLO, n=3, stream=True, stream_options={"include_usage": True}
        )
        joined = rejoin(stream)

    calls = [call.id for choice in whole.choices for call in choice.message.tool_calls or []]
    assert whole.to_dict() == joined
    assert [0, 1, 2] == [choice.index for choice in whole.choices]
    assert [f"call_0_{number}" for number in range(3 * len(turn.calls))] == calls


def test_stream_helper_of_the_sdk_accepts_the_stream() -> None:
    """`chat.completions.stream()` is the SDK's own accumulator."""
    with serve_blocking(script(PARALLEL)) as (_, client):
        whole = client.chat.completions.create(model="m", messages=HELLO)
        with client.chat.completions.stream(model="m", messages=HELLO) as stream:
            final = stream.get_final_completion()

    message = final.choices[0].message
    calls = [
        (call.id, call.function.name, call.function.arguments) for call in message.tool_calls or []
    ]
    assert (whole.id, PARALLEL.text) == (final.id, message.content)
    assert [("call_0_0", "time", '{"zone": "CET"}'), ("call_0_1", "add", '{"a": 1, ')] == calls


def test_sdk_parses_structured_answers() -> None:
    """Hosts use `parse` through the wrapper."""
    with serve_blocking(script(Turn('{"x": 1, "y": 2}'))) as (_, client):
        answer = client.chat.completions.parse(model="m", messages=HELLO, response_format=Point)

    assert Point(x=1, y=2) == answer.choices[0].message.parsed


async def test_script_serves_concurrent_conversations() -> None:
    async with serve_async(script(PARALLEL, lambda asked: Turn(asked.user_text))) as (
        model,
        client,
    ):

        async def talk(name: str) -> str | None:
            start: ChatCompletionMessageParam = {"role": "user", "content": name}
            first = await client.chat.completions.create(model="m", messages=[start])
            message = first.choices[0].message
            calls = message.tool_calls or []
            results: list[ChatCompletionMessageParam] = [
                {"role": "tool", "tool_call_id": call.id, "content": "ok"} for call in calls
            ]
            calling: ChatCompletionMessageParam = {
                "role": "assistant",
                "content": message.content,
                "tool_calls": [
                    {"id": call.id, "type": "function", "function": {"name": "f", "arguments": ""}}
                    for call in calls
                ],
            }
            last = await client.chat.completions.create(
                model="m", messages=[start, calling, *results]
            )
            return last.choices[0].message.content

        names = [f"conversation {number}" for number in range(8)]
        answers = await asyncio.gather(*map(talk, names))

    assert names == answers
    assert 16 == len(model.requests)


def test_beginning_of_a_repeated_long_prompt_is_counted_as_cached() -> None:
    """Tools come before messages in the prompt, so they stay cached if a message is added."""
    more: list[ChatCompletionMessageParam] = [*HELLO, {"role": "user", "content": "And?"}]
    with serve_blocking(script(Turn("Hi"))) as (_, client):
        answers = [
            client.chat.completions.create(model="m", messages=messages, tools=tools(20, words=50))
            for messages in (HELLO, more)
        ]

    usage = [answer.usage for answer in answers]
    cached = [
        used.prompt_tokens_details.cached_tokens
        for used in usage
        if used and used.prompt_tokens_details
    ]
    assert usage[0] is not None
    assert [0, usage[0].prompt_tokens] == cached


def test_request_after_the_end_of_a_script_is_answered_with_status_400() -> None:
    """The SDK does not retry after status 400. The message gives the reason."""
    with serve_blocking(script(), retries=2) as (model, client):
        with pytest.raises(openai.BadRequestError, match="the script is over"):
            client.chat.completions.create(model="m", messages=HELLO)

        assert 1 == len(model.requests)


def test_exception_of_a_policy_is_sent_to_the_client_without_a_retry() -> None:
    """A retry would hide the exception behind a delay."""

    def broken(_request: ModelRequest) -> Turn:
        raise LookupError("no such scene")

    with serve_blocking(broken, retries=2) as (model, client):
        with pytest.raises(openai.InternalServerError, match="LookupError: no such scene"):
            client.chat.completions.create(model="m", messages=HELLO)

        assert 1 == len(model.requests)


def test_unknown_path_is_answered_with_status_404() -> None:
    """The error has the service's format, so that the SDK raises its own class."""
    with (
        serve_blocking(script()) as (_, client),
        pytest.raises(openai.NotFoundError, match="unknown request URL: POST /v1/moderations"),
    ):
        client.moderations.create(input="Hi")


@pytest.mark.parametrize(("body", "match"), [(b"{", "could not parse"), (b"[]", "JSON object")])
def test_body_that_is_not_an_object_is_refused(body: bytes, match: str) -> None:
    with (
        serve_blocking(script()) as (_, client),
        pytest.raises(openai.BadRequestError, match=match),
    ):
        client.post("/chat/completions", cast_to=object, content=body)


@pytest.mark.parametrize(
    ("body", "match"),
    [
        ({"messages": HELLO}, "model parameter"),
        ({"model": "m", "messages": []}, "at least one message"),
        ({"model": "m", "messages": HELLO, "tools": []}, "too short"),
        ({"model": "m", "messages": HELLO, "tools": tools(129)}, "at most 128 items, got 129"),
        (
            {
                "model": "m",
                "messages": HELLO,
                "tools": [{"type": "function", "function": {"name": "a.b"}}],
            },
            "must match .* not 'a.b'",
        ),
        (
            {"model": "m", "messages": [{"role": "tool", "tool_call_id": "1", "content": ""}]},
            "answers no open tool call",
        ),
        (
            {
                "model": "m",
                "messages": [{"role": "assistant", "tool_calls": [{"id": "1"}]}, *HELLO],
            },
            "no tool message answers",
        ),
        (
            {"model": "m", "messages": HELLO, "tools": [tools(1)[0], ARRAY]},
            "Invalid schema for function 'label': .* array schema missing items",
        ),
        ({"model": "e", "input": ""}, "none of them empty"),
        ({"model": "e", "input": ["a", ""]}, "none of them empty"),
        ({"model": "e", "input": []}, "none of them empty"),
        ({"model": "e", "input": [1, 2]}, "list of texts"),
        ({"model": "e", "input": ["a"] * 2049}, "may hold 2048 texts, not 2049"),
    ],
)
def test_scripted_model_refuses_requests_that_the_real_service_refuses(
    body: dict[str, object], match: str
) -> None:
    """A more tolerant model would hide faults of a wrapper."""
    path = "/embeddings" if "input" in body else "/chat/completions"
    with (
        serve_blocking(script(Turn("Hi"))) as (_, client),
        pytest.raises(openai.BadRequestError, match=match),
    ):
        client.post(path, cast_to=object, body=body)


def test_scripted_model_answers_the_list_of_models() -> None:
    """Hosts use the list to see whether a service is available."""
    with serve_blocking(script(), embedder=HashingEmbedder(8)) as (_, client):
        names = [entry.id for entry in client.models.list()]

    assert ["scripted", "hashing-8"] == names


def test_closed_scripted_model_cannot_be_started_again() -> None:
    """The base URL, the log and the cache belong to one start."""
    model = ScriptedModel(script())
    with pytest.raises(ConfigError, match="start the model first"):
        _ = model.base_url
    model.start()
    address = model.base_url
    with model:
        assert address == model.base_url
    model.close()

    with pytest.raises(ClosedError):
        model.start()
