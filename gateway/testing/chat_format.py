"""Chat Completions answers of the scripted model, its stored conversations and its prompt cache.

Numbers of tokens are estimates. Whole and streamed answers have the same id, message and usage.
"""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_left
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gateway.errors import InvalidRequestError
from gateway.runtime.text import estimate_tokens
from gateway.testing.model import ModelRequest, Turn
from gateway.types import JsonObject

CREATED = 1_700_000_000
"""Creation time of every answer. It is fixed, so that equal requests get equal answers."""
MIN_CACHED_TOKENS = 1024
"""Minimum length of a cached beginning of a prompt, in tokens, as in the real service."""
_MAX_PROMPTS = 64
"""Maximum number of cached prompts, so that long benchmarks do not slow down."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAnswer:
    """A turn of the scripted model with its request and usage."""

    request: ModelRequest
    turn: Turn
    usage: Mapping[str, Any]
    choices: int = 1

    @property
    def id(self) -> str:
        """Id that depends only on the tools and the conversation."""
        prompt = prompt_text(self.request).encode("utf-8", "surrogatepass")
        return f"chatcmpl-{hashlib.blake2b(prompt, digest_size=12).hexdigest()}"

    @property
    def finish_reason(self) -> str:
        """Reason why the model stopped."""
        return self.turn.finish_reason or ("tool_calls" if self.turn.calls else "stop")

    def call_id(self, choice: int, position: int) -> str:
        """Return a call's id: from the script, or built from the turn, *choice* and *position*."""
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


def _message(answer: ModelAnswer, choice: int) -> dict[str, Any]:
    text, calls = answer.turn.text, answer.turn.calls
    content = None if calls and not text else text
    message: dict[str, Any] = {"role": "assistant", "content": content, "refusal": None}
    if calls:
        message["tool_calls"] = [
            {
                "id": answer.call_id(choice, position),
                "type": "function",
                "function": {"name": call.name, "arguments": call.raw},
            }
            for position, call in enumerate(calls)
        ]
    return message


def events(answer: ModelAnswer, *, chunk_chars: int) -> Iterator[bytes]:
    """Yield the answer as server-sent events, ending with ``[DONE]``."""
    for chunk in _chunks(answer, chunk_chars):
        yield b"data: " + json.dumps(chunk).encode() + b"\n\n"
    yield b"data: [DONE]\n\n"


def _chunks(answer: ModelAnswer, size: int) -> Iterator[dict[str, object]]:
    """Yield the answer in chunks of *size* characters, alternating between choices."""
    options = answer.request.body.get("stream_options")
    wants_usage = isinstance(options, dict) and options.get("include_usage") is True
    head = _head(answer, "chat.completion.chunk")
    open_usage: dict[str, object] = {"usage": None} if wants_usage else {}
    choices = (_deltas(_message(answer, choice), size) for choice in range(answer.choices))
    for deltas in zip(*choices, strict=True):
        for choice, delta in enumerate(deltas):
            reason = None if delta else answer.finish_reason
            piece = {"index": choice, "delta": delta, "logprobs": None, "finish_reason": reason}
            yield {**head, "choices": [piece], **open_usage}
    if wants_usage:
        yield {**head, "choices": [], "usage": dict(answer.usage)}


def _deltas(message: dict[str, Any], size: int) -> Iterator[dict[str, object]]:
    """Yield the changes that build *message*, and an empty last change."""
    text, calls = message["content"], message.pop("tool_calls", ())
    yield {**message, "content": None if text is None else ""}
    for piece in split_text(text or "", size):
        yield {"content": piece}
    for position, call in enumerate(calls):
        function = call["function"]
        opened = {**call, "function": {**function, "arguments": ""}}
        pieces = (
            {"function": {"arguments": piece}} for piece in split_text(function["arguments"], size)
        )
        for fragment in (opened, *pieces):
            yield {"tool_calls": [{"index": position, **fragment}]}
    yield {}


def split_text(text: str, size: int) -> Iterator[str]:
    """Yield *text* in pieces of *size* characters."""
    return (text[start : start + size] for start in range(0, len(text), size))


def _head(answer: ModelAnswer, kind: str) -> dict[str, object]:
    return {"id": answer.id, "object": kind, "created": CREATED, "model": answer.request.model}


class ConversationStore:
    """Items of stored responses, which later requests can continue."""

    def __init__(self) -> None:
        self._items: dict[str, list[object]] = {}

    def load(self, body: JsonObject) -> list[object]:
        """Return the items of the response that *body* continues, then the items of *body*.

        Raises:
            InvalidRequestError: If the continued response is unknown.
        """
        items = body.get("input")
        if isinstance(items, str):
            items = [{"role": "user", "content": items}]
        previous = body.get("previous_response_id")
        if isinstance(previous, str) and previous not in self._items:
            raise InvalidRequestError(f"Previous response with id '{previous}' not found.")
        before = self._items.get(str(previous or _conversation_id(body)), [])
        return [*before, *(items if isinstance(items, list) else [])]

    def save(self, body: JsonObject, name: str, items: list[object]) -> None:
        """Store *items* under *name*, unless *body* forbids it, and under the conversation's id."""
        if body.get("store") is not False:
            self._items[name] = items
        if _conversation_id(body):
            self._items[_conversation_id(body)] = items


def _conversation_id(body: JsonObject) -> str:
    conversation = body.get("conversation")
    if isinstance(conversation, Mapping):
        conversation = conversation.get("id")
    return conversation if isinstance(conversation, str) else ""


def prompt_text(request: ModelRequest) -> str:
    """Return the prompt as a service reads it: tools, then messages."""
    return _compact(request.tools) + _compact(request.messages)


class PromptCache:
    """Recent prompts, to count the tokens that a new prompt shares with one of them."""

    def __init__(self) -> None:
        self._prompts: deque[str] = deque(maxlen=_MAX_PROMPTS)

    def usage(self, request: ModelRequest, turn: Turn, *, choices: int) -> dict[str, object]:
        """Return the usage of one request and its answer, and store the prompt."""
        prompt = prompt_text(request)
        shared = max((_common_prefix(prompt, other) for other in self._prompts), default=0)
        self._prompts.append(prompt)
        cached = estimate_tokens(prompt[:shared])
        read = estimate_tokens(prompt)
        text = "".join([turn.text, *(call.name + call.raw for call in turn.calls)])
        written = choices * estimate_tokens(text)
        return {
            "prompt_tokens": read,
            "completion_tokens": written,
            "total_tokens": read + written,
            "prompt_tokens_details": {"cached_tokens": cached * (cached >= MIN_CACHED_TOKENS)},
        }


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _common_prefix(left: str, right: str) -> int:
    """Return the length of the common prefix. Bisection is fast, because C compares the slices."""
    shorter = min(len(left), len(right))
    return bisect_left(range(shorter), True, key=lambda end: left[: end + 1] != right[: end + 1])
