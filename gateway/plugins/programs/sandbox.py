"""Sandboxes, which run programs in other processes with access only to the given functions.

A program is Python code. Its calls are answered in this process as `PendingCall`s; several may be
open at once. A call that has to wait for a person ends the run with a snapshot, from which any
sandbox of the same kind can continue.

If bubblewrap works, it isolates the processes a second time: without network, capabilities, other
processes, or files except the binary and the system's libraries, and as the user nobody.
"""

from __future__ import annotations

import atexit
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Protocol

from gateway.options.programs import ProgramsOptions
from gateway.types import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingCall:
    """An unanswered call of a program."""

    id: int
    """Number of the call in the program."""
    name: str
    positional: tuple[object, ...] = ()
    named: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallAnswer:
    """Answer to a call of a program."""

    value: object = None
    """Result, as JSON."""
    error: str = ""
    """Error message that the call raises in the program; empty for a result."""
    error_type: str = "RuntimeError"
    """Name of a built-in Python exception."""
    waits: bool = False
    """True if the call has to wait for a decision."""


AnswerCall = Callable[[PendingCall], Awaitable[CallAnswer]]
"""Function that answers a call. It must not raise errors that a program can cause."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Error message of the type checker."""

    line: int
    """Line number, from 1."""
    message: str
    code: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramSnapshot:
    """State of a waiting program."""

    state: bytes
    """Opaque state for sandboxes of the same kind and version. It contains the program's data."""
    waiting: tuple[PendingCall, ...]
    calls: int
    """Number of calls so far."""
    printed: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramResult:
    """Result of a run: a value, an error or a snapshot."""

    value: object = None
    """Value of the last expression, as JSON."""
    printed: str = ""
    calls: int = 0
    error: str = ""
    """Reason for a missing value, with the line if known."""
    problems: tuple[Problem, ...] = ()
    """Errors of the type checker. If there are any, nothing ran."""
    snapshot: ProgramSnapshot | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program and its functions."""

    code: str
    functions: Collection[str]
    """Names of the functions that the program may call. All are asynchronous."""
    stubs: str = ""
    """Declarations of the functions, for the type checker."""
    inputs: Mapping[str, object] = field(default_factory=dict)
    """Values of the program's global variables, as JSON."""


class Sandbox(Protocol):
    """Runs programs. May be used from any loop and any thread."""

    async def run(
        self, program: Program, *, call: AnswerCall, limits: ProgramsOptions
    ) -> ProgramResult:
        """Check and run *program*. Calls are made only if its types are valid."""

    async def resume(
        self,
        program: Program,
        snapshot: ProgramSnapshot,
        *,
        call: AnswerCall,
        limits: ProgramsOptions,
    ) -> ProgramResult:
        """Continue from *snapshot*, beginning with the answers to its waiting calls.

        Args:
            program: The program's functions; the snapshot contains the rest.
            snapshot: Snapshot of an earlier run.
            call: Function that answers calls; it is asked again about the waiting calls.
            limits: Limits, as before. The computing time starts again at zero.
        """


_LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64")
_BINARY = "/program"
_TIMEOUT_S = 10.0


@cache
def wrapped(binary: Path) -> Path | None:
    """Return an executable that runs *binary* in bubblewrap; None if bubblewrap does not work here.

    The command is tested with ``--version``, because some systems forbid user namespaces. The
    executable is deleted when this process ends.
    """
    program = shutil.which("bwrap")
    if program is None:
        return None
    command = _command(program, binary)
    try:
        subprocess.run([*command, "--version"], capture_output=True, check=True, timeout=_TIMEOUT_S)  # noqa: S603  (a fixed command line)
    except (OSError, subprocess.SubprocessError):
        return None
    folder = Path(tempfile.mkdtemp(prefix="gateway-programs-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    script = folder / "program"
    # The sandbox takes a single path, so a script has to add the arguments.
    script.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n', encoding="utf-8")
    script.chmod(0o700)
    return script


def _command(program: str, binary: Path) -> list[str]:
    libraries = [part for path in _LIBRARIES for part in ("--ro-bind-try", path, path)]
    return [
        *(program, "--unshare-all", "--die-with-parent", "--new-session", "--clearenv"),
        *("--uid", "65534", "--gid", "65534", "--cap-drop", "ALL"),
        *(*libraries, "--ro-bind", str(binary), _BINARY, "--chdir", "/", _BINARY),
    ]
