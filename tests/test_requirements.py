"""Every requirement has a test, and every mark names a requirement."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.requirements import REQUIREMENTS

HERE = Path(__file__).parent


def marks(tree: ast.Module) -> Iterator[str]:
    """Find the ids in the `requirement` marks of test functions."""
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
        for given in decorator.args:
            yield str(given.value) if isinstance(given, ast.Constant) else ast.unparse(given)


def marked() -> set[str]:
    """Find the ids in all test files."""
    files = sorted(HERE.rglob("test_*.py"))
    return {found for file in files for found in marks(ast.parse(file.read_text("utf-8")))}


def test_every_requirement_has_a_test() -> None:
    """A rule that nothing holds is a wish."""
    assert [] == sorted(REQUIREMENTS.keys() - marked())


def test_every_mark_names_a_requirement() -> None:
    """A misspelt id would count for nothing."""
    assert [] == sorted(marked() - REQUIREMENTS.keys())


def test_a_mark_counts_on_test_functions_alone() -> None:
    """A mark on a helper, which never runs as a test, holds nothing."""
    source = (
        "@pytest.mark.requirement('a', 'b')\ndef test_x(): ...\n"
        "@pytest.mark.requirement('c')\nasync def test_y(): ...\n"
        "@pytest.mark.requirement('d')\ndef helper(): ...\n"
        "@other\n@pytest.mark.parametrize('e', [])\n@given()\ndef test_z(): ...\n"
    )

    assert ["a", "b", "c"] == list(marks(ast.parse(source)))


def test_the_manifest_holds_eleven_rules_and_each_edge_case() -> None:
    """The seed has eleven rules and eight cases; none may get lost."""
    rules = [each for each in REQUIREMENTS if each.startswith("auto:rule-")]

    assert [f"auto:rule-{number}" for number in range(1, 12)] == rules
    assert 8 == len(REQUIREMENTS) - len(rules)
    assert all(each.behavior for each in REQUIREMENTS.values())
