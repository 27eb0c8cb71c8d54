"""Options of programs that a model writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from gateway.options.validation import Meta, OptionObject, PositiveCount, Seconds, Timeout

Wrapper = Literal["auto", "required", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramsOptions(OptionObject):
    """Limits and permissions of a program."""

    seconds: Timeout = 2.0
    """Maximum computing time, without waiting for calls."""
    wall_s: Timeout = 30.0
    """Maximum elapsed time, including calls and the queue, but not approvals."""
    memory_bytes: Annotated[int, Meta(ge=1024 * 1024)] = 64 * 1024 * 1024
    calls: PositiveCount = 50
    """Maximum number of calls of one program."""
    output_chars: Annotated[int, Meta(ge=1000)] = 20_000
    """Maximum length of a program's answer: its value and its printed text."""
    max_code_chars: PositiveCount = 20_000
    processes: PositiveCount = 4
    """Maximum number of programs at the same time, including programs that wait for calls, but not
    for approvals. More programs wait in a queue."""
    wrapper: Wrapper = "auto"
    """Additional isolation by bubblewrap: if it works (``auto``), always (``required``; else
    programs are refused), or ``none``."""
    destructive: bool = False
    """True lets programs call tools that declare themselves destructive. `ChatOptions.confirm`
    applies to these calls."""
    keep_s: Seconds = 24 * 3600.0
    """Time for which stored values and programs that wait for approval are kept."""
