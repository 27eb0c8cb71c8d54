"""The front door: what `gateway` offers, and what it costs."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import gateway

ROOT = Path(__file__).parents[1]


def test_public_names_are_sorted_and_load() -> None:
    """Whoever reads the list finds a name, and whoever uses one gets it."""
    assert sorted(gateway.__all__) == gateway.__all__
    for name in gateway.__all__:
        assert name == getattr(gateway, name).__name__


def test_the_stub_says_what_the_package_does() -> None:
    """Type checkers read `__init__.pyi`, Python reads `__init__.py`: they must not differ."""
    stub = ast.parse((ROOT / "gateway" / "__init__.pyi").read_text(encoding="utf-8"))
    told = {
        alias.asname: node.module
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }

    assert set(gateway.__all__) == set(told)
    for name, module in told.items():
        assert module is not None
        assert getattr(import_module(module), str(name)) is getattr(gateway, str(name))


def test_an_unknown_name_is_an_attribute_error() -> None:
    """As with any other module."""
    with pytest.raises(AttributeError, match="no attribute 'Toolbox'"):
        _ = gateway.Toolbox  # type: ignore[attr-defined]  # (the point of the test)


def test_the_door_costs_no_heavy_library() -> None:
    """A warm start must not pay for openai, the MCP SDK or rdflib before it needs them."""
    program = (
        "import sys, gateway; gateway.Gateway; gateway.SyncGateway; gateway.SqliteVectorStore; "
        "print([name for name in ('openai', 'mcp', 'rdflib') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT
    )

    assert "[]\n" == done.stdout


def test_the_catalog_is_one_thing() -> None:
    """Whoever reads of `Catalog` in the code must find what `gateway.Catalog` is."""
    named = [
        str(path.relative_to(ROOT))
        for path in sorted((ROOT / "gateway").rglob("*.py"))
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef) and node.name == "Catalog"
    ]

    assert ["gateway/catalog/entries.py"] == named
