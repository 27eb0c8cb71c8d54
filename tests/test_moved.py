"""Imports of modules by their old names."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gateway.moved import MOVED

UPGRADING = Path(__file__).parents[1] / "docs" / "upgrading.md"


@pytest.mark.parametrize("old", MOVED)
def test_old_module_name_imports_the_new_module_with_a_warning(old: str) -> None:
    script = (
        "import importlib, warnings\n"
        "with warnings.catch_warnings(record=True) as caught:\n"
        "    warnings.simplefilter('always')\n"
        f"    old = importlib.import_module({old!r})\n"
        f"assert old is importlib.import_module({MOVED[old]!r}), old\n"
        f"assert old.__spec__.name == {MOVED[old]!r}, old.__spec__\n"
        "log = [str(each.message) for each in caught if each.category is DeprecationWarning]\n"
        f"assert {f'{old} is now {MOVED[old]}; the old name works until version 0.4'!r} in log, log"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_module_of_a_moved_package_is_loaded_once() -> None:
    script = (
        "from gateway.access.audit import AuditRow as Old\n"
        "from gateway.plugins.access.audit import AuditRow as New\n"
        "assert Old is New"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", script], check=True)


def test_unknown_module_name_raises_import_error() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"gateway\.accesses"):
        __import__("gateway.accesses")


def test_upgrade_guide_lists_each_moved_module() -> None:
    rows = UPGRADING.read_text(encoding="utf-8")

    assert [] == [old for old, new in MOVED.items() if f"| `{old}` | `{new}` |" not in rows]
