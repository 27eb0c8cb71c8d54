"""Sandboxes, which run programs in other processes with access only to the given functions.

A program is Python code. Its calls are answered in this process as `PendingCall`s. Several calls
may be open at once. A call that has to wait for a person ends the run with a snapshot, from which
any sandbox of the same kind can continue.

If bubblewrap works on this machine, it isolates the processes a second time. They then run as the
user nobody, without network, capabilities, other processes, or files except the interpreter and the
system's libraries.
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
    """Number that identifies the call in its program."""
    name: str
    positional: tuple[object, ...] = ()
    named: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallAnswer:
    """Answer to a call of a program."""

    value: object = None
    """Result of the call, as JSON."""
    error: str = ""
    """Error message that the call raises in the program; empty for a result."""
    error_type: str = "RuntimeError"
    """Name of the built-in Python exception that the call raises for an error."""
    waits: bool = False
    """True if the call has to wait for a person's decision."""


AnswerCall = Callable[[PendingCall], Awaitable[CallAnswer]]
"""Function that answers a call. It must not raise errors that a program can cause."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Error that the type checker found in a program."""

    line: int
    """Line number in the program, from 1."""
    message: str
    code: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramSnapshot:
    """State of a program whose calls wait for a decision."""

    state: bytes
    """Opaque state of the interpreter, for sandboxes of the same kind and version. It contains the
    program's data."""
    waiting: tuple[PendingCall, ...]
    calls: int
    """Number of calls that the program has made so far."""
    printed: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramResult:
    """Result of a run of a program: a value, an error or a snapshot."""

    value: object = None
    """Value of the program's last expression, as JSON."""
    printed: str = ""
    calls: int = 0
    error: str = ""
    """Error that ended the program, with its line if known. Empty without an error."""
    problems: tuple[Problem, ...] = ()
    """Errors of the type checker. If there are any, the program did not run."""
    snapshot: ProgramSnapshot | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """Code of a program, and the functions that it may call."""

    code: str
    functions: Collection[str]
    """Names of the functions that the program may call. All are asynchronous."""
    stubs: str = ""
    """Declarations of the functions, for the type checker."""
    inputs: Mapping[str, object] = field(default_factory=dict)
    """Global variables of the program: JSON values, keyed by name."""


class Sandbox(Protocol):
    """Runs programs. May be used from any loop and any thread."""

    async def run(
        self, program: Program, *, call: AnswerCall, limits: ProgramsOptions
    ) -> ProgramResult:
        """Check the types of *program*, and run it if they are valid.

        Args:
            program: The program.
            call: Function that answers the program's calls.
            limits: Limits of computing time, calls and output.
        """

    async def resume(
        self,
        program: Program,
        snapshot: ProgramSnapshot,
        *,
        call: AnswerCall,
        limits: ProgramsOptions,
    ) -> ProgramResult:
        """Continue a program from *snapshot*. First, its waiting calls are answered.

        Args:
            program: The program's functions. The snapshot contains the rest of the program.
            snapshot: Snapshot of an earlier run.
            call: Function that answers calls, beginning with the waiting calls.
            limits: Limits, as in the earlier run. The computing time starts again at zero.
        """


_LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64")
_BINARY = "/program"
_TIMEOUT_S = 10.0


@cache
def wrapped(binary: Path) -> Path | None:
    """Return the path of a script that runs *binary* in bubblewrap. None if bubblewrap does not
    work here.

    The script is tested with ``--version``, because some systems forbid user namespaces. It is
    deleted when this process ends.
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
    # Monty accepts only the path of its binary, so a script adds the arguments for bubblewrap.
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
