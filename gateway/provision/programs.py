"""The programs that install and run packages here, and their exact commands."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from gateway.provision.entries import Package

Commands = tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Programs:
    """What there is on this machine. None where it is missing."""

    python: str = sys.executable
    pip: bool = True
    """Whether *python* has pip."""
    uv: str | None = None
    npm: tuple[str, ...] | None = None
    """npm's program, and what stands before its own arguments."""
    node: str | None = None

    @classmethod
    def found(cls) -> Programs:
        """Look on the search path."""
        npm = shutil.which("npm")
        return cls(
            pip=importlib.util.find_spec("pip") is not None,
            uv=shutil.which("uv"),
            npm=(npm,) if npm else None,
            node=shutil.which("node"),
        )

    def pypi(self, package: Package, folder: Path) -> Commands:
        """Give what makes *folder* a virtual environment with *package* in it, of wheels alone."""
        windows = sys.platform == "win32"
        inside = str(folder / ("Scripts/python.exe" if windows else "bin/python"))
        wanted = ("--only-binary", ":all:", f"{package.identifier}=={package.version}")
        if self.uv:
            made = (self.uv, "venv", "--quiet", "--no-project", "--python", self.python)
            install = (self.uv, "pip", "install", "--quiet", "--python", inside, *wanted)
            return ((*made, str(folder)), install)
        # What is never imported need not be compiled: that takes most of an install's time.
        flags = ("--quiet", "--no-compile", "--no-input", "--disable-pip-version-check")
        quietly = ("install", *flags, *wanted)
        # Isolated: a file called pip.py in the folder at hand must not be what runs.
        python = (self.python, "-I", "-m")
        if self.pip:
            venv = (*python, "venv", "--without-pip", str(folder))
            return (venv, (*python, "pip", "--python", inside, *quietly))
        return ((*python, "venv", str(folder)), (inside, "-I", "-m", "pip", *quietly))

    def npm_install(self, package: Package, folder: Path) -> Commands:
        """Give what puts *package* into *folder*, without running any script of any package."""
        if self.npm is None:
            return ()
        flags = ("--ignore-scripts", "--no-audit", "--no-fund", "--save-exact", "--omit=dev")
        wanted = f"{package.identifier}@{package.version}"
        return ((*self.npm, "install", "--prefix", str(folder), *flags, wanted),)
