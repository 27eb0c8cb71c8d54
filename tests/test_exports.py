"""The front door: what `gateway` offers, and what it costs."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import gateway

ROOT = Path(__file__).parents[1]


def test_public_names_are_sorted_and_load() -> None:
    """Whoever reads the list finds a name, and whoever uses one gets it."""
    assert sorted(dir(gateway)) == dir(gateway)
    for name in dir(gateway):
        value = getattr(gateway, name)
        ours = str(getattr(value, "__module__", "")).startswith("gateway")
        assert not ours or name == value.__name__


def test_the_front_door_stays_small() -> None:
    """What fewer programs need is imported from its own room."""
    assert len(dir(gateway)) <= 40


def test_an_unknown_name_is_an_attribute_error() -> None:
    """As with any other module."""
    with pytest.raises(AttributeError, match="no attribute 'Toolbox'"):
        _ = gateway.Toolbox  # type: ignore[attr-defined]  # (the point of the test)


def test_the_door_costs_no_heavy_library() -> None:
    """A warm start must not pay for openai, the MCP SDK or rdflib before it needs them."""
    program = (
        "import sys, gateway; gateway.Gateway; gateway.SyncGateway; gateway.SqliteStore; "
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

    assert ["gateway/catalog/catalog.py"] == named
