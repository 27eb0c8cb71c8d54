"""What the service remembers: conversations, and prompts for the sake of its cache.

Tokens are estimates (`gateway.runtime.text.estimate_tokens`); what they are for is comparing
requests.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping

from gateway.errors import InvalidRequestError
from gateway.runtime.text import estimate_tokens
from gateway.testing.model import ModelRequest, Turn
from gateway.types import JsonObject

MIN_CACHED_TOKENS = 1024
"""A shorter common prefix is not cached, as with the real service."""
_MAX_PROMPTS = 64
"""Prompts kept: a cache forgets, and a long benchmark must not slow down."""


class ConversationStore:
    """Remembers the items of every response, as the real service does for a while."""

    def __init__(self) -> None:
        self._items: dict[str, list[object]] = {}

    def load(self, body: JsonObject) -> list[object]:
        """Return the items of a request behind those that it continues.

        Raises:
            InvalidRequestError: If there is no such response.
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
        """Remember *items*, the whole of a conversation, unless the request forbids it."""
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
    """Write the prompt in the order in which a service reads it: tools, then messages."""
    return _compact(request.tools) + _compact(request.messages)


class PromptCache:
    """Remembers prompts and counts the tokens that the next one shares with one of them.

    All recent prompts count, not the last one alone: a call of another conversation, or of a
    normalizer, between two turns does not empty a real cache either.
    """

    def __init__(self) -> None:
        self._prompts: deque[str] = deque(maxlen=_MAX_PROMPTS)

    def usage(self, request: ModelRequest, turn: Turn, *, choices: int) -> dict[str, object]:
        """Meter one request with its answer, and remember the prompt."""
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
    """Measure the common prefix by halving: the comparison of slices runs in C."""
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
