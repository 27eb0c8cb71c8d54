"""Imports of tests: tests import packages instead of the modules inside them, so that these modules
can be changed.
"""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CONTRACT = ROOT / "tests" / "contract.txt"
_IMPORT = re.compile(r"^\s*(?:from|import) ((?:gateway|graphs)[\w.]*)", re.MULTILINE)


def contract() -> dict[str, str]:
    """Return the modules inside packages that tests may import, each with the reason for the
    exception.
    """
    lines = CONTRACT.read_text(encoding="utf-8").splitlines()
    return dict(line.split(maxsplit=1) for line in lines if line and not line.startswith("#"))


def is_inner(module: str) -> bool:
    """Return whether *module* is inside a package that tests should import instead."""
    parts = module.split(".")
    is_deep = parts[:2] in (["gateway", "plugins"], ["gateway", "serve"])
    return len(parts) > (3 if is_deep else 2)


def test_modules_that_tests_may_import_exist_and_are_few() -> None:
    assert len(contract()) <= 40
    for module, reason in contract().items():
        assert is_inner(module)
        assert reason
        assert find_spec(module) is not None


def test_few_test_files_import_modules_inside_a_package() -> None:
    allowed = contract()
    inner = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "tests").rglob("*.py")
        for module in _IMPORT.findall(path.read_text(encoding="utf-8"))
        if is_inner(module) and module not in allowed
    }
    if len(inner) > 60:
        pytest.fail(f"{len(inner)} test files import modules inside a room: {sorted(inner)}")
