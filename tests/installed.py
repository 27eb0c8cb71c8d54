"""Programs that tests start and `python -m pip` does not install."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping

import pytest


def installed(name: str, *, package: str, environ: Mapping[str, str] = os.environ) -> str:
    """Return the path of the program *name*.

    If it is missing, skip the test with the command that installs the Debian *package*. If ``CI``
    is set, fail instead.
    """
    path = shutil.which(name)
    if path is None:
        refuse = pytest.fail if environ.get("CI") else pytest.skip
        refuse(f"{name} is not installed: apt-get install {package}")
    return path
