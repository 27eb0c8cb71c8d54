"""A turn as Chat Completions JSON, whole or in chunks. Pure: no clock, no randomness, no state.

* Both forms carry the same id, message and usage: a joined stream equals the whole answer.
* A call's id and name stand in its first fragment only; fragments are told apart by index.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass

from gateway.testing.conversations import prompt_text
from gateway.testing.model import Call, ModelRequest, Turn
from gateway.types import JsonObject

CREATED = 1_700_000_000
"""A fixed time, so that equal requests get equal answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAnswer:
    """A turn on its way to the wire."""

    request: ModelRequest
    turn: Turn
    usage: JsonObject
    choices: int = 1

    @property
    def id(self) -> str:
        """The same for the same conversation and tools, streamed or not."""
        prompt = prompt_text(self.request).encode("utf-8", "surrogatepass")
        return f"chatcmpl-{hashlib.blake2b(prompt, digest_size=12).hexdigest()}"

    @property
    def finish_reason(self) -> str:
        """Why the model stopped."""
        return self.turn.finish_reason or ("tool_calls" if self.turn.calls else "stop")

    def call_id(self, choice: int, position: int) -> str:
        """Return the id of a call: the script's own, or one made of its turn and position."""
        turn = [message.get("role") for message in self.request.messages].count("assistant")
        index = choice * len(self.turn.calls) + position
        return self.turn.calls[position].id or f"call_{turn}_{index}"


def completion(answer: ModelAnswer) -> dict[str, object]:
    """Return the whole answer as one object."""
    choices = [
        {
            "index": choice,
            "message": _message(answer, choice),
            "logprobs": None,
            "finish_reason": answer.finish_reason,
        }
        for choice in range(answer.choices)
    ]
    return {**_head(answer, "chat.completion"), "choices": choices, "usage": dict(answer.usage)}


def _message(answer: ModelAnswer, choice: int) -> dict[str, object]:
    message = _opening(answer.turn) | {"content": answer.turn.text or _opening_content(answer.turn)}
    calls = [
        {"id": answer.call_id(choice, position), "type": "function", "function": _function(call)}
        for position, call in enumerate(answer.turn.calls)
    ]
    return message | ({"tool_calls": calls} if calls else {})


def _function(call: Call) -> dict[str, object]:
    return {"name": call.name, "arguments": call.raw}


def events(answer: ModelAnswer, *, chunk_chars: int) -> Iterator[bytes]:
    """Yield the answer as server-sent events, with the closing ``[DONE]``."""
    for chunk in chunks(answer, chunk_chars=chunk_chars):
        yield b"data: " + json.dumps(chunk).encode() + b"\n\n"
    yield b"data: [DONE]\n\n"


def chunks(answer: ModelAnswer, *, chunk_chars: int) -> Iterator[dict[str, object]]:
    """Yield the answer in pieces of *chunk_chars*; several choices take turns."""
    options = answer.request.body.get("stream_options")
    wants_usage = isinstance(options, dict) and options.get("include_usage") is True
    head = _head(answer, "chat.completion.chunk")
    open_usage: dict[str, object] = {"usage": None} if wants_usage else {}
    lines = [list(_deltas(answer, choice, chunk_chars)) for choice in range(answer.choices)]
    for together in itertools.zip_longest(*lines):
        for piece in filter(None, together):
            yield head | {"choices": [piece]} | open_usage
    if wants_usage:
        yield head | {"choices": [], "usage": dict(answer.usage)}


def _deltas(answer: ModelAnswer, choice: int, chunk_chars: int) -> Iterator[dict[str, object]]:
    for delta in _message_deltas(answer, choice, chunk_chars):
        yield {"index": choice, "delta": delta, "logprobs": None, "finish_reason": None}
    reason = answer.finish_reason
    yield {"index": choice, "delta": {}, "logprobs": None, "finish_reason": reason}


def _message_deltas(
    answer: ModelAnswer, choice: int, chunk_chars: int
) -> Iterator[dict[str, object]]:
    turn = answer.turn
    yield _opening(turn)
    for piece in split_text(turn.text, chunk_chars):
        yield {"content": piece}
    for position, call in enumerate(turn.calls):
        name = {"id": answer.call_id(choice, position), "type": "function"}
        yield _fragment(position, name, {"name": call.name, "arguments": ""})
        for piece in split_text(call.raw, chunk_chars):
            yield _fragment(position, {}, {"arguments": piece})


def _fragment(position: int, name: JsonObject, function: JsonObject) -> dict[str, object]:
    return {"tool_calls": [{"index": position, **name, "function": dict(function)}]}


def _opening(turn: Turn) -> dict[str, object]:
    return {"role": "assistant", "content": _opening_content(turn), "refusal": None}


def _opening_content(turn: Turn) -> str | None:
    return None if turn.calls and not turn.text else ""


def split_text(text: str, size: int) -> Iterator[str]:
    """Yield *text* in pieces of *size* characters."""
    return (text[start : start + size] for start in range(0, len(text), size))


def _head(answer: ModelAnswer, kind: str) -> dict[str, object]:
    return {"id": answer.id, "object": kind, "created": CREATED, "model": answer.request.model}
