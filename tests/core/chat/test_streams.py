"""Merging of streamed turns in both wire formats, with random splits. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import permutations, product
from random import Random
from typing import Any

import pytest
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter

from gateway.chat.chat_completions import ChatStreamMerger
from gateway.chat.responses import ResponsesStreamMerger
from gateway.testing import Call, ModelRequest, Turn
from gateway.testing.chat_format import ModelAnswer
from gateway.testing.responses_format import item_events

CHARS = 'a1 \n"\\{}:,\x00é你🎉\u200d'
"""Characters that JSON escapes, or that need one to four bytes in UTF-8."""
NAMES = ("add", "mine", "search_tools")


def chunk(delta: dict[str, Any], finish: str | None = None, index: int = 0) -> ChatCompletionChunk:
    choice = {"index": index, "delta": delta, "finish_reason": finish}
    return ChatCompletionChunk.model_validate(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": "m",
            "choices": [choice],
        }
    )


def text_of(dice: Random) -> str:
    """Return a random text of up to 30 characters."""
    return "".join(dice.choices(CHARS, k=dice.randrange(31)))


def calls_of(dice: Random) -> list[tuple[str, str]]:
    """Return up to four random calls, each a name and arguments, which may be invalid JSON."""
    texts = (
        dice.choice((text_of(dice), json.dumps({text_of(dice): text_of(dice)})))
        for _ in range(dice.randrange(5))
    )
    return [(dice.choice(NAMES), text) for text in texts]


def pieces(dice: Random, text: str) -> list[str]:
    """Split *text* at random positions."""
    cuts = sorted(dice.randint(0, len(text)) for _ in range(dice.randrange(7)))
    return [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]


def stream(dice: Random, text: str, calls: Sequence[tuple[str, str]]) -> list[ChatCompletionChunk]:
    """Return one turn as random chunks: parts of calls alternate, and the end is in the last chunk
    or after it.
    """
    lines: list[list[dict[str, Any]]] = [
        [{"content": piece} for piece in pieces(dice, text)] if text else []
    ]
    for place, (name, arguments) in enumerate(calls):
        head = {"id": f"c{place}", "type": "function"}
        cut = pieces(dice, arguments)
        fragments = [
            {"name": name, "arguments": cut[0]},
            *({"arguments": fragment} for fragment in cut[1:]),
        ]
        line: list[dict[str, Any]] = []
        for number, function in enumerate(fragments):
            head_fields = head if number == 0 else {}
            line.append({"tool_calls": [{"index": place, **head_fields, "function": function}]})
        lines.append(line)
    # A call must begin before the next one; later pieces may come in any order.
    mixed = [line.pop(0) for line in lines if line]
    while any(lines):
        mixed.append(dice.choice([line for line in lines if line]).pop(0))
    deltas = [{"role": "assistant", "content": None}, *mixed]
    finish = "tool_calls" if calls else "stop"
    if dice.randrange(2):
        return [*map(chunk, deltas), chunk({}, finish)]
    return [*map(chunk, deltas[:-1]), chunk(deltas[-1], finish)]


def list_calls(reply: ChatCompletion) -> list[tuple[str, str, str]]:
    calls = reply.choices[0].message.tool_calls or []
    return [
        (call.id, call.function.name, call.function.arguments)
        for call in calls
        if call.type == "function"
    ]


def expected_calls(calls: Sequence[tuple[str, str]]) -> list[tuple[str, str, str]]:
    return [(f"c{place}", name, arguments) for place, (name, arguments) in enumerate(calls)]


def test_merged_stream_does_not_depend_on_the_split_into_chunks() -> None:
    """For ten thousand random turns, the merged stream has exactly the original text and calls."""
    for seed in range(10_000):
        dice = Random(seed)
        text, calls = text_of(dice), calls_of(dice)
        check_stream(text, calls, stream(dice, text, calls))


def check_stream(
    text: str, calls: Sequence[tuple[str, str]], chunks: Sequence[ChatCompletionChunk]
) -> None:
    """Check that the merger passes text on at once, and yields calls complete at the end of the
    turn.
    """
    merger = ChatStreamMerger()

    passed = [now for chunk in chunks for now in merger.push(chunk)]
    reply = merger.reply()

    assert text == "".join(chunk.choices[0].delta.content or "" for chunk in passed)
    assert not any(chunk.choices[0].delta.tool_calls for chunk in passed)
    assert not any(chunk.choices[0].finish_reason for chunk in passed)
    assert (text, expected_calls(calls)) == (
        reply.choices[0].message.content or "",
        list_calls(reply),
    )
    sent: Any = reply.choices[0].message.to_dict().get("tool_calls") or []
    assert [{"id", "type", "function"}] * len(calls) == [set(call) for call in sent]
    assert all({"name", "arguments"} == set(call["function"]) for call in sent)


@pytest.mark.parametrize("delta", [{"refusal": "No."}, {"function_call": {"name": "old"}}])
def test_other_delta_fields_are_passed_on_at_once(delta: dict[str, Any]) -> None:
    """A refusal is text for the caller, and fields that the SDK does not know must not be
    delayed.
    """
    merger = ChatStreamMerger()

    (passed,) = merger.push(chunk(delta))

    assert delta == passed.choices[0].delta.to_dict()


SPOKEN = "Grüße! Let me see, 你好 🎉."
EVENTS: TypeAdapter[ResponseStreamEvent] = TypeAdapter(ResponseStreamEvent)


REQUEST = ModelRequest(path="/v1/responses", body={"model": "m", "input": "x"})
USAGE = {
    "prompt_tokens": 1,
    "completion_tokens": 1,
    "total_tokens": 2,
    "prompt_tokens_details": {"cached_tokens": 0},
}


def test_responses_stream_keeps_host_calls_and_drops_gateway_calls() -> None:
    """The host's calls are complete, and the events have consecutive numbers."""
    orders = sorted({*permutations(("mine", "search_tools", "mine"))})
    for size, names in product(range(1, 41), orders):
        check_events(size, names)


def check_events(size: int, names: Sequence[str]) -> None:
    """Check one turn with calls of the functions *names*, in parts of up to *size* characters."""
    turn = Turn(SPOKEN, tuple(Call(name, {"zone": "Ω"}) for name in names))
    answer = ModelAnswer(request=REQUEST, turn=turn, usage=USAGE)
    merger = ResponsesStreamMerger()
    events = [
        EVENTS.validate_python(json.loads(raw.split(b"data: ", 1)[1]))
        for raw in item_events(answer, chunk_chars=size)
    ]

    passed = [
        event
        for pushed in events
        for event in merger.push(pushed, lambda name: name == "search_tools")
    ]
    passed += merger.finish(merger.reply())

    assert list(range(len(passed))) == [event.sequence_number for event in passed]
    done = [event.item for event in passed if event.type == "response.output_item.done"]
    assert ["message", "function_call", "function_call"] == [item.type for item in done]
    assert SPOKEN == "".join(
        event.delta for event in passed if event.type == "response.output_text.delta"
    )
