from __future__ import annotations

import ast
from functools import reduce
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gateway.plugins.programs import HEADER, MAX_KEYS, declare, identifiers, join, shape_of

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "customer": {"type": "string"},
        "amount": {"type": "number"},
        "kind": {"enum": ["new", "old"]},
        "tags": {"type": "array", "items": {"type": "string"}},
        "lines": {"type": "array", "items": {"type": "object", "properties": {"a": {}}}},
        "note": {"type": ["string", "null"]},
    },
    "required": ["customer"],
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=10,
)


def test_declaration_has_keyword_arguments_with_optional_defaults() -> None:
    signature = declare("send_invoice", SCHEMA, {"type": "string"}, doc='Send "it".\nMore.')

    assert signature.text == (
        "async def send_invoice(*, customer: str, amount: float = ..., "
        "kind: Literal['new', 'old'] = ..., tags: list[str] = ..., "
        "lines: Sequence[Mapping[str, Any]] = ..., note: str | None = ...) -> str:\n"
        '    """Send \'it\'."""\n'
    )


def test_declaration_has_classes_for_results_with_any_keys_and_recursion() -> None:
    node = {
        "type": "object",
        "properties": {"from": {"type": "string"}, "next": {"$ref": "#/$defs/node"}},
        "required": ["from"],
    }

    signature = declare("walk", {}, {"$ref": "#/$defs/node", "$defs": {"node": node}})

    assert signature.text == (
        'WalkResult = TypedDict("WalkResult", {"from": str, "next": NotRequired[Any]})\n'
        "async def walk() -> WalkResult: ...\n"
    )


def test_declaration_has_one_object_for_arguments_with_invalid_names() -> None:
    signature = declare("mail", {"properties": {"from": {"type": "string"}, "x-y": {}}}, None)

    assert signature.is_object
    assert "async def mail(arguments: Mapping[str, Any], /) -> Any: ..." in signature.text


def test_declaration_of_an_empty_schema_accepts_everything() -> None:
    """A declaration that is too narrow would refuse a valid program."""
    for schema in ({"$ref": "#/$defs/x"}, {"additionalProperties": True}):
        assert declare("any", schema, {}).text == "async def any(**others: Any) -> Any: ...\n"
    open_result = {"type": "object", "properties": {"a": {}}, "additionalProperties": True}
    assert declare("any", {}, open_result).text.endswith("-> dict[str, Any]: ...\n")


def test_each_tool_gets_a_unique_python_function_name() -> None:
    names = identifiers(["a-b", "a_b", "class", "1x", "search_tools"], reserved=["search_tools"])

    assert names == {
        "a-b": "a_b",
        "a_b": "a_b_2",
        "class": "tool_class",
        "1x": "tool_1x",
        "search_tools": "search_tools_2",
    }


@given(JSON, st.text())
def test_texts_of_an_upstream_cannot_add_declarations(value: object, text: str) -> None:
    """Names, keys, values and descriptions are data of the declaration, not code."""
    schema = {"properties": {"x": {"enum": [value, text]}, text: {"const": text}}}
    result = {"type": "object", "properties": {text: {"const": text}, "y": {"enum": [value]}}}

    parsed = ast.parse(HEADER + declare("tool", schema, result, doc=text).text)

    kinds = [type(node) for node in parsed.body[2:]]
    assert kinds in ([ast.Assign, ast.AsyncFunctionDef], [ast.AsyncFunctionDef])


def test_result_type_is_the_narrowest_of_all_observed_results() -> None:
    rows = [{"id": 1, "to": "a"}, {"id": 2.5, "to": None, "cc": []}, {"id": 3, "to": "b"}]

    shape = reduce(join, map(shape_of, rows))

    assert (
        'TypedDict("XResult", {"id": float, "to": str | None, "cc": NotRequired[list[Any]]})'
        in (declare("x", {}, shape).text)
    )
    assert shape_of({str(key): 1 for key in range(MAX_KEYS + 1)}) == {"type": "object"}
    assert reduce(join, map(shape_of, ["a", 1, None, True, [1]])) == {}


@given(JSON, JSON)
def test_shape_of_results_does_not_depend_on_their_order(one: object, other: object) -> None:
    first, second = shape_of(one), shape_of(other)

    assert join(join(first, second), first) == join(first, second)
