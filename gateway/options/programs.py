"""The options of programs that a model writes over tools."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from gateway.options.validation import Meta, OptionObject, PositiveCount, Seconds, Timeout

Wrapper = Literal["auto", "required", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramsOptions(OptionObject):
    """What a program may take, and what it may call."""

    seconds: Timeout = 2.0
    """Computing time of one program; what it waits for its calls is not counted."""
    wall_s: Timeout = 30.0
    """How long a program may take with its calls, and with waiting for its turn; but not with
    waiting for an approval."""
    memory_bytes: Annotated[int, Meta(ge=1024 * 1024)] = 64 * 1024 * 1024
    calls: PositiveCount = 50
    """Calls that one program may make."""
    output_chars: Annotated[int, Meta(ge=1000)] = 20_000
    """The most that a program's answer takes of the conversation: its value and what it printed."""
    max_code_chars: PositiveCount = 20_000
    processes: PositiveCount = 4
    """Programs at the same time, also those that wait for their calls, but not for an approval;
    more wait for their turn."""
    wrapper: Wrapper = "auto"
    """Whether the processes of programs are shut in by bubblewrap besides: where that works, always
    (programs are refused elsewhere), or never."""
    destructive: bool = False
    """Whether programs may call tools that say that they destroy. They are asked about as
    `ChatOptions.confirm` says."""
    keep_s: Seconds = 24 * 3600.0
    """How long a value, or a program that waits for an approval, is kept."""
