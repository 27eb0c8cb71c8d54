"""Which framework is here.

Each adapter is tested in an environment of its own, since frameworks are many and large. The gate
names it by ``ADAPTER``: that framework's tests must run, the others are not looked at. Without the
variable, as on a developer's machine, the tests of what is not installed are skipped.
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
"""The adapters that have an extra, and what they import."""


def elsewhere() -> list[str]:
    """Give the files whose tests the gate runs in another environment than this."""
    chosen = os.environ.get("ADAPTER", "").replace("-", "_")
    return [f"test_{each}.py" for each in FRAMEWORKS if chosen and each != chosen]


def needs(extra: str, *modules: str) -> None:
    """Skip the calling test module unless *modules* can be imported, which *extra* brings."""
    missing = [module for module in modules if not _here(module)]
    if missing and os.environ.get("ADAPTER") != extra:
        reason = f'{missing[0]} is not installed: pip install ".[{extra}]"'
        pytest.skip(reason, allow_module_level=True)


def _here(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        # The package around it is missing.
        return False
