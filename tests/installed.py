"""Programs that tests start, and that `python -m pip` does not install."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping

import pytest


def installed(name: str, *, package: str, environ: Mapping[str, str] = os.environ) -> str:
    """Return the path of the program *name*.

    Without it the test is skipped, with the command that installs it. Where ``CI`` is set, the
    test fails instead, so that no gate skips it unseen.

    Args:
        name: A program on ``PATH``.
        package: The Debian package that has it.
        environ: Environment variables.
    """
    path = shutil.which(name)
    if path is None:
        refuse = pytest.fail if environ.get("CI") else pytest.skip
        refuse(f"{name} is not installed: apt-get install {package}")
    return path
