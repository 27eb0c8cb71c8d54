"""Comparison of the table of threats with the tests and the documentation."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.threats import THREATS, render

HERE = Path(__file__).parent


def functions(file: str) -> set[str]:
    """Return the names of all functions in a test file."""
    tree = ast.parse((HERE / file).read_text(encoding="utf-8"))
    kinds = ast.FunctionDef | ast.AsyncFunctionDef
    return {node.name for node in ast.walk(tree) if isinstance(node, kinds)}


def test_threats_are_numbered_from_1_to_31() -> None:
    assert list(range(1, 32)) == [int(name.split("-")[0]) for name in THREATS]


@pytest.mark.parametrize("name", THREATS)
def test_tests_of_threats_exist(name: str) -> None:
    ids = [test.split("::") for test in THREATS[name].tests]

    assert ids
    assert [] == [(file, test) for file, test in ids if test not in functions(file)]


def test_security_page_ends_with_the_table() -> None:
    """`python -m tests.threats` prints the table."""
    text = (HERE.parent / "docs" / "security.md").read_text(encoding="utf-8")

    assert text.endswith(f"\n\n{render()}")
