"""Every threat has tests that there are, and its row in the document."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.threats import THREATS, render

HERE = Path(__file__).parent


def functions(file: str) -> set[str]:
    """The names of all functions in a test file."""
    tree = ast.parse((HERE / file).read_text(encoding="utf-8"))
    kinds = ast.FunctionDef | ast.AsyncFunctionDef
    return {node.name for node in ast.walk(tree) if isinstance(node, kinds)}


def test_there_are_31_in_order() -> None:
    """None is lost, and each has a number."""
    assert list(range(1, 32)) == [int(name.split("-")[0]) for name in THREATS]


@pytest.mark.parametrize("name", THREATS)
def test_a_threat_has_tests_that_exist(name: str) -> None:
    """A promise that a renamed test held is held by none."""
    ids = [test.split("::") for test in THREATS[name].tests]

    assert ids
    assert [] == [(file, test) for file, test in ids if test not in functions(file)]


def test_the_document_ends_with_the_table() -> None:
    """`python -m tests.threats` writes it."""
    text = (HERE.parent / "docs" / "security.md").read_text(encoding="utf-8")

    assert text.endswith(f"\n\n{render()}")
