"""How far the loop around the model goes on its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from gateway.options.validation import Count, OptionObject, PositiveCount, Range, Timeout

Confirm = Literal["destructive", "not_read_only", "all"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatOptions(OptionObject):
    """How far the loop around the model goes on its own."""

    max_turns: PositiveCount = 40
    """Requests to the model within one call of the wrapper."""
    max_seconds: Timeout | None = None
    """No request goes out this long after the call began; None sets no limit."""
    max_tokens: PositiveCount | None = None
    """No request goes out once the turns used so many tokens, as the service reports them;
    estimated where it does not, as in most streams."""
    max_consecutive_errors: Count = 3
    """Turns in a row in which every call failed; 0 sets no limit."""
    max_parallel_calls: PositiveCount = 8
    """Tool calls of one turn that run at the same time."""
    max_result_chars: Annotated[int, Range(minimum=1000)] = 60_000
    """A longer tool result is cut in the conversation, and says so."""
    confirm: Confirm = "destructive"
    """Which calls the host's ``approve`` is asked about: tools that may destroy (of a server that
    is not trusted, also those that say nothing about it), all that may write, or all."""
