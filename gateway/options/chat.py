"""How far the loop around the model goes on its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gateway.checks import at_least, check, one_of

Confirm = Literal["destructive", "not_read_only", "all"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatOptions:
    """How far the loop around the model goes on its own."""

    max_turns: int = 40
    """Requests to the model within one call of the wrapper."""
    max_seconds: float | None = None
    """No request goes out this long after the call began; None sets no limit."""
    max_tokens: int | None = None
    """No request goes out once the turns used so many tokens, as the service reports them;
    estimated where it does not, as in most streams."""
    max_consecutive_errors: int = 3
    """Turns in a row in which every call failed; 0 sets no limit."""
    max_parallel_calls: int = 8
    """Tool calls of one turn that run at the same time."""
    max_result_chars: int = 60_000
    """A longer tool result is cut in the conversation, and says so."""
    confirm: Confirm = "destructive"
    """Which calls the host's ``approve`` is asked about: tools that may destroy (of a server that
    is not trusted, also those that say nothing about it), all that may write, or all."""

    def __post_init__(self) -> None:
        """Check the ranges."""
        check(
            self,
            at_least("max_turns", self.max_turns, 1),
            at_least("max_seconds", 1 if self.max_seconds is None else self.max_seconds, 0.001),
            at_least("max_tokens", 1 if self.max_tokens is None else self.max_tokens, 1),
            at_least("max_consecutive_errors", self.max_consecutive_errors, 0),
            at_least("max_parallel_calls", self.max_parallel_calls, 1),
            at_least("max_result_chars", self.max_result_chars, 1000),
            one_of("confirm", self.confirm, Confirm),
        )
