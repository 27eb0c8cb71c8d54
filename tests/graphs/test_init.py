"""The front door."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path

import graphs

FOLDER = Path(graphs.__file__).parent


def test_the_public_names_are_sorted_and_there() -> None:
    """A public name is one in ``__all__``."""
    assert sorted(graphs.__all__) == graphs.__all__
    assert [] == [name for name in graphs.__all__ if not hasattr(graphs, name)]


def test_the_stub_says_what_the_package_does() -> None:
    """Type checkers read `__init__.pyi`, Python reads `__init__.py`: they must not differ."""
    stub = ast.parse((FOLDER / "__init__.pyi").read_text(encoding="utf-8"))
    told = {
        str(alias.asname): str(node.module)
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }

    assert graphs.__all__ == sorted(told)
    assert dir(graphs) == graphs.__all__
    for name, module in told.items():
        assert getattr(import_module(module), name) is getattr(graphs, name)


def test_an_unknown_name_is_an_attribute_error() -> None:
    """As with any other module."""
    assert not hasattr(graphs, "Toolbox")
