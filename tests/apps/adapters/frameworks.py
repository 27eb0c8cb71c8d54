"""Selection of the installed agent frameworks.

Each adapter is tested in its own environment, because frameworks are large. The gate sets
``ADAPTER``: the tests of this framework must run, and the others are ignored. Without it, tests of
missing frameworks are skipped.
"""

from __future__ import annotations

import os
from importlib.util import find_spec

import pytest

FRAMEWORKS = {
    "langchain": "langchain",
    "pydantic_ai": "pydantic_ai",
    "openai_agents": "agents",
    "agent_framework": "agent_framework",
    "llama_index": "llama_index",
}
"""Modules that the tests of each adapter import, keyed by the adapter's extra."""


def elsewhere() -> list[str]:
    """Return the test files of adapters that are tested elsewhere."""
    chosen = os.environ.get("ADAPTER", "").replace("-", "_")
    return [f"test_{item}.py" for item in FRAMEWORKS if chosen and item != chosen]


def needs(extra: str, *modules: str) -> None:
    """Skip the calling test module unless *modules* can be imported."""
    missing = [module for module in modules if not _here(module)]
    if missing and os.environ.get("ADAPTER") != extra:
        reason = f'{missing[0]} is not installed: pip install ".[{extra}]"'
        pytest.skip(reason, allow_module_level=True)


def _here(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        # The parent package is missing.
        return False
