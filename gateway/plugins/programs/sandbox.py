"""Sandboxes, which run programs in other processes with access only to the given functions.

A program is Python code, which may have several open calls. This process answers them. A call that
waits for a person ends the run with a snapshot, from which a sandbox of the same kind can continue.

If bubblewrap works on this machine, it isolates the processes too: no network, capabilities or
other processes, and no files except the interpreter and the system's libraries.
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
    """Number of the call in its program."""
    name: str
    positional: tuple[object, ...] = ()
    named: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallAnswer:
    """Answer to a call of a program."""

    value: object = None
    """Result as JSON."""
    error: str = ""
    """Message of the exception that the call raises in the program; empty for a result."""
    error_type: str = "RuntimeError"
    """Name of that built-in exception."""
    waits: bool = False
    """True if a person has to decide about the call."""


AnswerCall = Callable[[PendingCall], Awaitable[CallAnswer]]
"""Function that answers a call. It does not raise errors that a program can cause."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Error of the type checker."""

    line: int
    """Line number, from 1."""
    message: str
    code: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramSnapshot:
    """State of a program whose calls wait for a decision."""

    state: bytes
    """State of the interpreter, including the program's data, for sandboxes of the same kind and
    version."""
    waiting: tuple[PendingCall, ...]
    calls: int
    """Number of calls so far."""
    printed: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramResult:
    """Result of a run of a program: a value, an error or a snapshot."""

    value: object = None
    """Value of the last expression, as JSON."""
    printed: str = ""
    calls: int = 0
    error: str = ""
    """Error that ended the program, with its line if known; else empty."""
    problems: tuple[Problem, ...] = ()
    """Errors of the type checker, which kept the program from running."""
    snapshot: ProgramSnapshot | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """Code of a program, and its functions."""

    code: str
    functions: Collection[str]
    """Names of the asynchronous functions that the program may call."""
    stubs: str = ""
    """Declarations of the functions, for the type checker."""
    inputs: Mapping[str, object] = field(default_factory=dict)
    """Global variables of the program, as JSON values, keyed by name."""


class Sandbox(Protocol):
    """Runs programs, from any loop and any thread."""

    async def run(
        self, program: Program, *, call: AnswerCall, limits: ProgramsOptions
    ) -> ProgramResult:
        """Run *program* if its types are valid.

        Args:
            program: Program.
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
        """Continue a program from *snapshot*, after its waiting calls are answered.

        Args:
            program: Functions of the program; the snapshot contains its code.
            snapshot: Snapshot of an earlier run.
            call: Function that answers the waiting and further calls.
            limits: Limits as before. The computing time starts again at zero.
        """


_LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64")
_BINARY = "/program"
_TIMEOUT_S = 10.0


@cache
def wrapped(binary: Path) -> Path | None:
    """Return the path of a script that runs *binary* in bubblewrap; None if that does not work.

    The script is tested first, because some systems forbid user namespaces.
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
    # Monty accepts only a path, without arguments for bubblewrap.
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
