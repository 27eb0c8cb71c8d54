"""Streams: immediate text, joined turns, and clean ends."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from openai import AsyncOpenAI, DefaultHttpxClient, OpenAI, Stream
from openai.types.chat import ChatCompletionChunk

from gateway import AsyncAutoDiscoveryClient, AutoDiscoveryClient, Gateway
from gateway.testing import Call, Turn
from tests.apps.testing.driving import rejoin
from tests.core.chat.canned import DONE, Canned, event, fragment
from tests.core.chat.stage import (
    ASK,
    SUM,
    Role,
    Speaker,
    Stage,
    Way,
    calls,
    find,
    function,
    message,
    text,
)

STREAMS: tuple[Way, ...] = ("stream", "async stream")
MINE = [function("mine")]
SPEAKS = {"role": "assistant"}
LONG = "A longer answer, of several chunks — und 漢字 🎉."
USAGE: dict[str, Any] = {"stream_options": {"include_usage": True}}


def usage(tokens: int) -> dict[str, int]:
    """Return a token usage as services report it."""
    return {"prompt_tokens": tokens, "completion_tokens": 1, "total_tokens": tokens + 1}


@pytest.fixture(scope="module", params=[1, 3, 7, 1000])
def splitting_stage(request: pytest.FixtureRequest) -> Iterator[tuple[Stage, OpenAI]]:
    """Yield servers that split the bytes of their answers at different positions, with clients for
    them.
    """
    stage = Stage(chunk_chars=request.param)
    with stage.server, OpenAI(base_url=stage.server.base_url, api_key="test") as client:
        yield stage, client


def open_stream(
    client: OpenAI, gateway: Gateway, role: Role, **more: Any
) -> Stream[ChatCompletionChunk]:
    wrapped = AutoDiscoveryClient(client, gateway)
    stream: Stream[ChatCompletionChunk] = wrapped.chat.completions.create(
        model=role.model, messages=ASK, stream=True, **more
    )
    return stream


@pytest.mark.parametrize("way", STREAMS)
@pytest.mark.parametrize(
    "last",
    [
        Turn(LONG),
        Turn("Cut", finish_reason="length"),
        Turn(LONG, (Call("mine", {"zone": "漢字"}), Call("mine", '{"broken'))),
        Turn(calls=(Call("mine", "", id="own"),)),
        Turn("Both.", (Call("add", {"a": 1, "b": 2}), Call("mine", {"zone": "CET"}))),
    ],
)
async def test_joined_stream_equals_the_whole_answer(
    splitting_stage: tuple[Stage, OpenAI], functions: Gateway, way: Way, last: Turn
) -> None:
    """This is so for any split of the bytes, after a search and a call that the caller never
    sees.
    """
    stage, client = splitting_stage
    turns = (find("add numbers"), SUM, last)
    role = stage.cast(*turns)

    async with Speaker(client) as speaker:
        whole = await speaker.ask("whole", functions, role, tools=MINE)
        joined = await speaker.ask(way, functions, role, tools=MINE, **USAGE)

    assert whole["choices"] == joined["choices"]
    assert whole["model"] == joined["model"]


def test_streamed_turns_of_one_client_call_look_like_one_completion(
    splitting_stage: tuple[Stage, OpenAI], functions: Gateway
) -> None:
    """Clients read a stream as one message, with one id, one role and one end."""
    stage, client = splitting_stage
    role = stage.cast(
        Turn("First I look. ", find("add").calls),
        Turn("Then I add. ", (Call("add", {"a": 1, "b": 2}),)),
        Turn("It is 3."),
    )

    chunks = list(open_stream(client, functions, role))

    choices = [choice for chunk in chunks for choice in chunk.choices]
    assert 1 == len({(chunk.id, chunk.created, chunk.model) for chunk in chunks})
    assert ["assistant"] == [choice.delta.role for choice in choices if choice.delta.role]
    assert ["stop"] == [choice.finish_reason for choice in choices if choice.finish_reason]
    assert choices[-1].finish_reason
    assert [] == [choice for choice in choices if choice.delta.tool_calls]
    assert "First I look. Then I add. It is 3." == text(rejoin(chunks))


def test_streamed_text_is_passed_on_before_the_answer_is_complete(functions: Gateway) -> None:
    """The server sends the rest of the answer only after the text was received."""
    parts = [event({"role": "assistant", "content": ""}), event({"content": "Now "}),
             event({"content": "then."}), event({}, finish="stop"), DONE]  # fmt: skip
    with Canned(parts, hold_at=2) as server, _bare(server) as client:
        stream = open_stream(client, functions, _role())
        early = [next(stream).choices[0].delta.content for _ in range(2)]
        server.gate.wait()
        server.gate.release()
        late = [chunk.choices[0].delta.content for chunk in stream]

    assert ["", "Now "] == early
    assert ["then.", None] == late


def test_streamed_text_before_a_tool_call_is_passed_on_before_the_call_runs(
    stage: Stage, openai: OpenAI, functions: Gateway
) -> None:
    """Users should read "Let me look …" while the call runs. The server answers the next request
    only after the text was received.
    """
    role = stage.cast(Turn("Let me look. ", find("add").calls), Turn("Found."))
    stream = open_stream(openai, functions, role)
    with stage.server.gate() as gate:
        early = [next(stream).choices[0].delta.content for _ in range(3)]
        assert 1 == len(role.requests)
        gate.release()
        late = "".join(chunk.choices[0].delta.content or "" for chunk in stream)

    assert ["", "Let me ", "look. "] == early
    assert "Found." == late


def test_closing_a_stream_early_disconnects(functions: Gateway) -> None:
    """The server notices that the client is gone, and stops, because its tokens cost money."""
    with Canned([event({"role": "assistant", "content": "Now"}), DONE], hold_at=1) as server:
        with _bare(server) as client, open_stream(client, functions, _role()) as stream:
            next(stream)
        assert server.ended.wait(10)
        assert stream.response.is_closed
        assert [] == list(stream)


async def test_closing_an_async_stream_early_disconnects_and_leaves_no_task(
    functions: Gateway,
) -> None:
    """The stream is closed during a turn, or before anything was read."""
    before = asyncio.all_tasks()
    with Canned([event({"role": "assistant", "content": "Now"}), DONE], hold_at=1) as server:
        async with AsyncOpenAI(base_url=server.base_url, api_key="test") as client:
            wrapped = AsyncAutoDiscoveryClient(client, functions)
            for reads in (1, 0):
                server.ended.clear()
                stream = await wrapped.chat.completions.create(model="m", messages=ASK, stream=True)
                for _ in range(reads):
                    await anext(stream)
                await stream.close()
                assert await asyncio.to_thread(server.ended.wait, 10)
                assert stream.response.is_closed

    assert before == asyncio.all_tasks()


ONE = httpx2.Limits(max_connections=1)
PATIENCE = httpx2.Timeout(10)


def test_closing_a_stream_in_a_later_turn_releases_the_connection(
    stage: Stage, functions: Gateway
) -> None:
    """The client allows only one connection, so the next request would otherwise wait forever."""
    role = stage.cast(find("add"), Turn(LONG))
    http = DefaultHttpxClient(limits=ONE, timeout=PATIENCE)
    with OpenAI(base_url=stage.server.base_url, api_key="test", http_client=http) as client:
        with open_stream(client, functions, role) as stream:
            while not next(stream).choices[0].delta.content:
                pass

        assert client.with_options(max_retries=0).models.list().data
    assert 2 == len(role.requests)


@pytest.mark.parametrize("way", STREAMS)
async def test_streamed_fragments_of_several_tool_calls_are_joined(
    functions: Gateway, way: Way
) -> None:
    """Some services send parts of two calls alternately, repeat the role in every part, and never
    send an end.
    """
    parts = [
        event(fragment(0, id="a", type="function", name="mine", arguments="") | SPEAKS),
        event(fragment(1, id="b", type="function", name="add", arguments='{"a"')),
        event(fragment(0, arguments='{"zo') | SPEAKS),
        event(fragment(1, arguments=": 1}")),
        event(fragment(0, arguments='ne": 1}')),
        DONE,
    ]  # fmt: skip
    answer = await answer_for(parts, functions, way)

    assert [("mine", '{"zone": 1}')] == calls(answer)
    assert "assistant" == message(answer)["role"]
    assert None is answer["choices"][0]["finish_reason"]


@pytest.mark.parametrize("way", STREAMS)
async def test_call_of_a_custom_tool_is_returned_to_the_host(functions: Gateway, way: Way) -> None:
    """The call has no function and no JSON. It is returned unchanged, with or without a gateway
    call in the same turn.
    """
    custom = {"index": 0, "id": "a", "type": "custom", "custom": {"name": "grep", "input": "x"}}
    ours = event(fragment(1, id="b", type="function", name="add", arguments="{}"))
    for more in ([], [ours]):
        parts = [event({**SPEAKS, "tool_calls": [custom]}), *more, event({}, finish="stop"), DONE]
        answer = await answer_for(parts, functions, way)

        (call,) = message(answer)["tool_calls"]
        assert ("a", "custom", custom["custom"]) == (call["id"], call["type"], call["custom"])


@pytest.mark.parametrize("way", STREAMS)
@pytest.mark.parametrize("parts", [[DONE], [event(usage=usage(1)), DONE]])
async def test_stream_without_choices_ends(
    functions: Gateway, way: Way, parts: list[bytes]
) -> None:
    """If the only chunk has a usage, it is passed on."""
    answer = await answer_for(parts, functions, way)

    assert [] == answer["choices"]
    assert [None, usage(1)][len(parts) - 1] == answer.get("usage")


async def answer_for(parts: list[bytes], gateway: Gateway, way: Way) -> dict[str, Any]:
    """Return the answer through the wrapper if the service sends *parts*."""
    with Canned(parts) as server, _bare(server) as client:
        async with Speaker(client) as speaker:
            return await speaker.ask(way, gateway, _role(), tools=MINE)


def _bare(server: Canned) -> OpenAI:
    return OpenAI(base_url=server.base_url, api_key="test", max_retries=0)


def _role() -> Role:
    """Return any role, because the server sends the same to all."""
    return Stage().cast()
