"""How many tokens a prompt would cost, and how many of them a prompt cache would save.

Tokens are estimates (`gateway.text.estimate_tokens`); what they are for is comparing requests.
"""

from __future__ import annotations

import json
from collections import deque

from gateway.runtime.text import estimate_tokens
from gateway.testing.model import ModelRequest, Turn

SHORTEST_CACHED = 1024
"""A shorter common prefix is not cached, as with the real service."""
REMEMBERED = 64
"""Prompts kept: a cache forgets, and a long benchmark must not slow down."""


def prompt_text(request: ModelRequest) -> str:
    """Write the prompt in the order in which a service reads it: tools, then messages."""
    return _compact(request.tools) + _compact(request.messages)


class PromptCache:
    """Remembers prompts and counts the tokens that the next one shares with one of them.

    All recent prompts count, not the last one alone: a call of another conversation, or of a
    normalizer, between two turns does not empty a real cache either.
    """

    def __init__(self) -> None:
        self._prompts: deque[str] = deque(maxlen=REMEMBERED)

    def usage(self, request: ModelRequest, turn: Turn, *, choices: int) -> dict[str, object]:
        """Meter one request with its answer, and remember the prompt."""
        prompt = prompt_text(request)
        shared = max((_common(prompt, other) for other in self._prompts), default=0)
        self._prompts.append(prompt)
        cached = estimate_tokens(prompt[:shared])
        read = estimate_tokens(prompt)
        said = "".join([turn.text, *(call.name + call.raw for call in turn.calls)])
        written = choices * estimate_tokens(said)
        return {
            "prompt_tokens": read,
            "completion_tokens": written,
            "total_tokens": read + written,
            "prompt_tokens_details": {"cached_tokens": cached if cached >= SHORTEST_CACHED else 0},
        }


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _common(left: str, right: str) -> int:
    """Measure the common prefix by halving: the comparison of slices runs in C."""
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
