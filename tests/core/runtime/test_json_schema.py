"""JSON pointers, cost of schemas, and typed access to JSON."""

from __future__ import annotations

import math

import pytest

from gateway.runtime.json_schema import (
    as_object,
    as_objects,
    as_text,
    as_texts,
    count_in_place,
    resolve_pointer,
)
from gateway.types import JsonObject

ROOT: JsonObject = {"a": {"b/c": [{"d": 1}], "e~": True}}


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("#", ROOT),
        ("#/a/b~1c/0/d", 1),
        ("#/a/e~0", True),
        ("#/a/%65~0", True),
        ("#/a/none", None),
        ("#/a/b~1c/1", None),
        ("other#/a", None),
        (7, None),
    ],
)
def test_pointer_resolves_to_a_part_of_the_document(reference: object, expected: object) -> None:
    assert expected == resolve_pointer(reference, ROOT)


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({}, 1),
        ({"properties": {"a": {"anyOf": [True, {}, {"not": {}}]}, "b": {}}}, 5),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"allOf": [{"$ref": "#/$defs/b"}] * 3}, "b": {}}}, 8),
        ({"properties": {"children": {"items": {"$ref": "#"}}}}, 2),
        ({"$ref": "#/none"}, 2),
        ({"anyOf": [{"$ref": "#"}]}, math.inf),
        (
            {"$ref": "#/x0", **{f"x{index}": {"$ref": f"#/x{index + 1}"} for index in range(5000)}},
            math.inf,
        ),
    ],
    ids=["plain", "choice", "shared", "tree", "nowhere", "endless", "too long a chain"],
)
def test_count_in_place_counts_the_schemas_that_apply_to_one_value(
    schema: JsonObject, expected: float
) -> None:
    """The schemas of nested values are counted separately, because they apply to other values."""
    assert expected == count_in_place(schema)


@pytest.mark.parametrize(
    ("value", "texts", "objects"),
    [
        (["a", {"b": 1}, 2, "", None], ["a", ""], [{"b": 1}]),
        ("a", [], []),
        ({"a": ["b"]}, [], []),
        (None, [], []),
    ],
)
def test_as_texts_and_as_objects_return_the_items_of_their_type(
    value: object, texts: list[str], objects: list[JsonObject]
) -> None:
    assert (texts, objects) == (as_texts(value), as_objects(value))


@pytest.mark.parametrize(("value", "text"), [("a", "a"), (7, ""), (["a"], ""), (None, "")])
def test_as_text_returns_empty_text_for_other_types(value: object, text: str) -> None:
    assert text == as_text(value)


@pytest.mark.parametrize(
    ("value", "expected"), [({"a": 1}, {"a": 1}), ([{"a": 1}], {}), (None, {})]
)
def test_as_object_returns_empty_object_for_other_types(
    value: object, expected: JsonObject
) -> None:
    assert expected == as_object(value)
