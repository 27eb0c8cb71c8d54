"""Where a program runs: out of this process, with nothing but the calls that it is given.

A program is Python. The functions that it may call are answered here, one `PendingCall` at a time;
several may be open at once. A call that has to wait for a person ends the run with a snapshot, from
which any sandbox of the same kind goes on.

Bubblewrap around the processes of programs, where it works: a second wall.

Inside there is no network, no file but the binary and the system's libraries, no capability and no
other process; the user is nobody.
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
    """A call that a program made and that has no answer."""

    id: int
    """Its number in the program."""
    name: str
    positional: tuple[object, ...] = ()
    named: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallAnswer:
    """What the program gets for a call."""

    value: object = None
    """JSON."""
    error: str = ""
    """Not empty: the call raises this in the program."""
    error_type: str = "RuntimeError"
    """A built-in exception of Python."""
    waits: bool = False
    """True if there is no answer until somebody has decided."""


AnswerCall = Callable[[PendingCall], Awaitable[CallAnswer]]
"""Answers a call. It raises nothing for what a program did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """What a type checker says of a program."""

    line: int
    """From 1."""
    message: str
    code: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramSnapshot:
    """A program that waits."""

    state: bytes
    """Opaque; for sandboxes of this kind and version. It holds what the program has seen."""
    waiting: tuple[PendingCall, ...]
    calls: int
    """How many it has made."""
    printed: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramResult:
    """How a run ended: with a value, an error or a snapshot."""

    value: object = None
    """The value of the last expression, as JSON."""
    printed: str = ""
    calls: int = 0
    error: str = ""
    """Why there is no value, with the line where that is known."""
    problems: tuple[Problem, ...] = ()
    """Not empty if the type checker refused it: then nothing ran."""
    snapshot: ProgramSnapshot | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What is run."""

    code: str
    functions: Collection[str]
    """The names of the functions that it may call; each is asynchronous."""
    stubs: str = ""
    """Their declarations, for the type checker."""
    inputs: Mapping[str, object] = field(default_factory=dict)
    """Values that it finds as globals, as JSON."""


class Sandbox(Protocol):
    """Runs programs. Used from any loop and any thread."""

    async def run(
        self, program: Program, *, call: AnswerCall, limits: ProgramsOptions
    ) -> ProgramResult:
        """Check and run *program*; nothing is called before its types are right."""

    async def resume(
        self,
        program: Program,
        snapshot: ProgramSnapshot,
        *,
        call: AnswerCall,
        limits: ProgramsOptions,
    ) -> ProgramResult:
        """Go on from *snapshot*; its waiting calls are answered first.

        Args:
            program: Its functions; the snapshot holds the rest.
            snapshot: From a run.
            call: Is asked about the waiting calls once more.
            limits: As before; computing time begins anew.
        """


_LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64")
_BINARY = "/program"
_TEST_S = 10.0


@cache
def wrapped(binary: Path) -> Path | None:
    """Return an executable that runs *binary* in bubblewrap; None if that does not work here.

    It was tried once with ``--version``, since some systems forbid user namespaces. The file is
    deleted when this process ends.
    """
    program = shutil.which("bwrap")
    if program is None:
        return None
    command = _command(program, binary)
    try:
        subprocess.run([*command, "--version"], capture_output=True, check=True, timeout=_TEST_S)  # noqa: S603  (a fixed command line)
    except (OSError, subprocess.SubprocessError):
        return None
    folder = Path(tempfile.mkdtemp(prefix="gateway-programs-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    script = folder / "program"
    # The sandbox takes one path, so that the arguments need a file.
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
