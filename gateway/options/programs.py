"""Options of a model's programs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from gateway.options.validation import Meta, OptionObject, PositiveCount, Seconds, Timeout

Wrapper = Literal["auto", "required", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramsOptions(OptionObject):
    """Limits and permissions of a program."""

    seconds: Timeout = 2.0
    """Maximum computing time of a program, without waiting for calls."""
    wall_s: Timeout = 30.0
    """Maximum elapsed time of a program, including its calls and its wait in the queue, but not
    approvals."""
    memory_bytes: Annotated[int, Meta(ge=1024 * 1024)] = 64 * 1024 * 1024
    calls: PositiveCount = 50
    """Maximum number of calls of one program."""
    output_chars: Annotated[int, Meta(ge=1000)] = 20_000
    """Maximum length of a program's answer, in characters: its value and its printed text."""
    max_code_chars: PositiveCount = 20_000
    processes: PositiveCount = 4
    """Maximum number of programs that run at the same time. Programs that wait for calls count,
    programs that wait for approvals do not. Further programs wait in a queue."""
    wrapper: Wrapper = "auto"
    """Use of bubblewrap as additional isolation. ``auto``: if it works. ``required``: always; if it
    does not work, programs are refused. ``none``: never."""
    destructive: bool = False
    """True lets programs call tools that declare themselves destructive. `ChatOptions.confirm`
    applies to these calls."""
    keep_s: Seconds = 24 * 3600.0
    """Time for which stored values and programs that wait for approval are kept."""
