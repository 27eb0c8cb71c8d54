"""The peers' virtual environments: one each, since their needs clash, in the cache folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.metadata import distributions
from pathlib import Path

from benchmarks.peering.systems import Peer


class Environments:
    """Environments under a folder, by package.

    Args:
        folder: Where they are, or will be.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def python(self, peer: Peer) -> str:
        """Return the interpreter of *peer*, which may be missing; ours is the current one."""
        if not peer.package:
            return sys.executable
        inside = "Scripts/python.exe" if os.name == "nt" else "bin/python"
        return str(self._folder / peer.package / inside)

    def version(self, peer: Peer) -> str:
        """Return the installed version of *peer*; empty if it is not installed."""
        home = self._folder / peer.package
        places = [str(path) for path in home.glob("[Ll]ib/**/site-packages")]
        wanted = _plain(peer.package)
        found = (each for each in distributions(path=places) if _plain(each.name) == wanted)
        return next((each.version for each in found), "") if places else ""

    def install(self, peer: Peer) -> str:
        """Create the environment of *peer* if missing; return why that failed, or an empty text."""
        if self.version(peer):
            return ""
        home = self._folder / peer.package
        home.parent.mkdir(parents=True, exist_ok=True)
        steps = (
            [sys.executable, "-m", "venv", "--without-pip", str(home)],
            [
                sys.executable,
                "-m",
                "pip",
                f"--python={self.python(peer)}",
                "install",
                "--quiet",
                "--disable-pip-version-check",
                *peer.requirements,
            ],
        )
        for step in steps:
            done = subprocess.run(step, capture_output=True, text=True, check=False)
            if done.returncode:
                return last_line(done.stderr) or f"{step[1:3]} ended with {done.returncode}"
        return ""


def last_line(text: str) -> str:
    """Return the last line that is not blank."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
