"""What a schema costs, before anything is checked by it."""

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
def test_a_pointer_leads_to_a_place_of_the_same_document(
    reference: object, expected: object
) -> None:
    """RFC 6901, as the fragment of an address."""
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
        ({"$ref": "#/x0", **{f"x{at}": {"$ref": f"#/x{at + 1}"} for at in range(5000)}}, math.inf),
    ],
    ids=["plain", "choice", "shared", "tree", "nowhere", "endless", "too long a chain"],
)
def test_schemas_that_apply_to_one_value_are_counted(schema: JsonObject, expected: float) -> None:
    """What lies below applies to other values, and is counted by itself."""
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
def test_a_json_list_gives_its_texts_and_its_objects(
    value: object, texts: list[str], objects: list[JsonObject]
) -> None:
    """What is of another type is left out, and what is no list has none."""
    assert (texts, objects) == (as_texts(value), as_objects(value))


@pytest.mark.parametrize(("value", "text"), [("a", "a"), (7, ""), (["a"], ""), (None, "")])
def test_what_is_no_text_reads_as_an_empty_one(value: object, text: str) -> None:
    """A server may write anything."""
    assert text == as_text(value)


@pytest.mark.parametrize(("value", "found"), [({"a": 1}, {"a": 1}), ([{"a": 1}], {}), (None, {})])
def test_what_is_no_object_reads_as_an_empty_one(value: object, found: JsonObject) -> None:
    """Likewise."""
    assert found == as_object(value)
