"""Whether a framework is here.

Each adapter is tested in an environment of its own, since frameworks are many and large. Outside
of those their tests are skipped; inside, ``ADAPTER`` names the extra, and nothing is skipped.
"""

from __future__ import annotations

import os
from importlib.util import find_spec

import pytest


def needs(extra: str, *modules: str) -> None:
    """Skip the calling test module unless *modules* can be imported, which *extra* brings."""
    missing = [module for module in modules if find_spec(module) is None]
    if missing and os.environ.get("ADAPTER") != extra:
        reason = f'{missing[0]} is not installed: pip install ".[{extra}]"'
        pytest.skip(reason, allow_module_level=True)
