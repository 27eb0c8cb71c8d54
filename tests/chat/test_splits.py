"""Ten thousand ways to cut a stream: the same calls, whatever the pieces. Both wire formats."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types.chat import ChatCompletionChunk
from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter

from gateway.chat.streams import ChatStreamMerger, ResponsesStreamMerger
from gateway.testing import Call, ModelRequest, Turn
from gateway.testing.items import item_events
from gateway.testing.wire import Answer

EXAMPLES = 250
SPLITS = 40
"""Each example cuts so often: ten thousand in all."""
TEXT = "Grüße! Let me see, 你好 🎉."
CALLS = (
    ("c0", "search_tools", '{"query": "a \\" b", "n": [1, 2]}'),
    ("c1", "mine", '{"zone": "Ωμέγα"}'),
)
EVENTS: TypeAdapter[ResponseStreamEvent] = TypeAdapter(ResponseStreamEvent)


def cut(chance: random.Random, text: str) -> list[str]:
    """Cut anywhere, so often as chance will."""
    places = sorted(chance.sample(range(len(text)), chance.randint(0, min(6, len(text)))))
    return [text[start:end] for start, end in zip([0, *places], [*places, len(text)], strict=True)]


def chunks(chance: random.Random) -> Iterator[ChatCompletionChunk]:
    """One turn in pieces: the calls' fragments in any mixture, each call's own in order."""
    lines = [
        [
            {"index": place, "id": name, "type": "function", "function": {"name": tool}},
            *(
                {"index": place, "function": {"arguments": piece}}
                for piece in cut(chance, arguments)
            ),
        ]
        for place, (name, tool, arguments) in enumerate(CALLS)
    ]
    for piece in cut(chance, TEXT):
        yield chunk({"content": piece})
    yield chunk({"tool_calls": [lines[0].pop(0)]})
    yield chunk({"tool_calls": [lines[1].pop(0)]})
    while any(lines):
        line = chance.choice([each for each in lines if each])
        yield chunk({"tool_calls": [line.pop(0)]})
    yield chunk({}, "tool_calls")


def chunk(delta: dict[str, Any], finish: str | None = None) -> ChatCompletionChunk:
    return _chunk(json.dumps(delta), finish)


@lru_cache(maxsize=100_000)
def _chunk(delta: str, finish: str | None) -> ChatCompletionChunk:
    choice = {"index": 0, "delta": json.loads(delta), "finish_reason": finish}
    head: Any = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return ChatCompletionChunk.construct(None, **head, choices=[choice])


@settings(max_examples=EXAMPLES, deadline=None, database=None)
@given(st.integers(0, 2**32))
def test_ten_thousand_splits_give_the_same_calls(seed: int) -> None:
    """Chat Completions: text at once, calls joined by their index."""
    chance = random.Random(seed)  # noqa: S311  (drawn by Hypothesis)
    for _ in range(SPLITS):
        joined = ChatStreamMerger()
        said = [now for each in chunks(chance) for now in joined.push(each)]
        calls = [
            (call.id, call.function.name, call.function.arguments)
            for call in joined.reply().choices[0].message.tool_calls or ()
            if call.type == "function"
        ]

        assert TEXT == "".join(each.choices[0].delta.content or "" for each in said)
        assert [*CALLS] == calls


REQUEST = ModelRequest(path="/v1/responses", body={"model": "m", "input": "x"})
USAGE = {
    "prompt_tokens": 1,
    "completion_tokens": 1,
    "total_tokens": 2,
    "prompt_tokens_details": {"cached_tokens": 0},
}


@settings(max_examples=60, deadline=None, database=None)
@given(st.integers(1, 40), st.permutations(["mine", "search_tools", "mine"]))
def test_events_in_any_pieces_keep_the_hosts_calls_and_lose_ours(
    size: int, names: list[str]
) -> None:
    """The Responses API: the host's arrive whole and without gaps in their numbers."""
    turn = Turn(TEXT, tuple(Call(name, {"zone": "Ω"}) for name in names))
    answer = Answer(request=REQUEST, turn=turn, usage=USAGE)
    joined = ResponsesStreamMerger()
    events = [
        EVENTS.validate_python(json.loads(raw.split(b"data: ", 1)[1]))
        for raw in item_events(answer, chunk_chars=size)
    ]

    said = [
        now for each in events for now in joined.push(each, lambda name: name == "search_tools")
    ]
    said += joined.finish(joined.reply())

    assert list(range(len(said))) == [event.sequence_number for event in said]
    done = [event.item for event in said if event.type == "response.output_item.done"]
    assert ["message", "function_call", "function_call"] == [item.type for item in done]
    assert TEXT == "".join(
        event.delta for event in said if event.type == "response.output_text.delta"
    )
