"""Comparison of the requirements with the marks of tests."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.requirements import REQUIREMENTS

HERE = Path(__file__).parent


def marks(tree: ast.Module) -> Iterator[str]:
    """Return the ids in the `requirement` marks of test functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith(
            "test_"
        ):
            for decorator in node.decorator_list:
                yield from _ids(decorator)


def _ids(decorator: ast.expr) -> Iterator[str]:
    if not isinstance(decorator, ast.Call) or not isinstance(decorator.func, ast.Attribute):
        return
    if decorator.func.attr == "requirement":
        for argument in decorator.args:
            yield (
                str(argument.value) if isinstance(argument, ast.Constant) else ast.unparse(argument)
            )


@cache
def marked() -> set[str]:
    """Return the ids in all test files."""
    files = sorted(HERE.rglob("test_*.py"))
    return {mark for file in files for mark in marks(ast.parse(file.read_text("utf-8")))}


def test_every_requirement_has_a_test() -> None:
    assert [] == sorted(REQUIREMENTS.keys() - marked())


def test_every_mark_names_a_requirement() -> None:
    assert [] == sorted(marked() - REQUIREMENTS.keys())
