"""Bubblewrap around the processes of programs, where it works: a second wall.

Inside there is no network, no file but the binary and the system's libraries, no capability and no
other process; the user is nobody.
"""

from __future__ import annotations

import atexit
import shlex
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

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
