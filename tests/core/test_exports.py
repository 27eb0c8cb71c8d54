"""Packages whose names are imported on first use."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import gateway
from gateway.plugin_manager import own_plugins

_ROOT = Path(str(gateway.__file__)).parents[1]
_PACKAGES = [
    import_module(".".join(stub.parent.relative_to(_ROOT).parts))
    for top in ("gateway", "graphs")
    for stub in sorted((_ROOT / top).rglob("__init__.pyi"))
]
front_doors = pytest.mark.parametrize("package", _PACKAGES, ids=lambda each: each.__name__)


def stub_of(package: ModuleType) -> dict[str, str]:
    """Return the modules that the package's stub imports from, keyed by public name."""
    path = Path(str(package.__file__)).with_suffix(".pyi")
    return {
        str(alias.asname): str(node.module)
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def absent_plugin(module: str) -> str:
    """Return the name of the missing plugin that would contain *module*; empty if the plugin
    exists.
    """
    _, _, below = module.partition("gateway.plugins.")
    plugin = below.partition(".")[0]
    return "" if plugin in own_plugins() else plugin


@front_doors
def test_public_names_are_sorted_and_load(package: ModuleType) -> None:
    assert sorted(dir(package)) == dir(package) == package.__all__
    for name, module in stub_of(package).items():
        if plugin := absent_plugin(module):
            with pytest.raises(ModuleNotFoundError, match=f"gateway.plugins.{plugin}"):
                getattr(package, name)
            continue
        value = getattr(package, name)
        ours = str(getattr(value, "__module__", "")).startswith(("gateway", "graphs"))
        assert not ours or name == getattr(value, "__name__", name)


@front_doors
def test_stub_has_the_names_of_the_package(package: ModuleType) -> None:
    """Type checkers read `__init__.pyi`, Python reads `__init__.py`."""
    stub = stub_of(package)

    assert dir(package) == sorted(stub)
    for name, module in stub.items():
        assert absent_plugin(module) or getattr(import_module(module), name) is getattr(
            package, name
        )


def test_main_package_exports_few_names() -> None:
    assert len(dir(gateway)) <= 40


@front_doors
def test_unknown_name_of_a_package_raises_attribute_error(package: ModuleType) -> None:
    with pytest.raises(AttributeError, match=f"'{package.__name__}' has no attribute 'Toolbox'"):
        _ = package.Toolbox
