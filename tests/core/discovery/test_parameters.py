"""Parameters of tools in the form that model services accept."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.discovery import fits_strict, restore_names, to_parameters
from gateway.testing import find_tool_faults


def parameters(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def faults(schema: dict[str, Any], *, strict: bool = False) -> list[str]:
    """Return the rules of services that a tool with *schema* breaks."""
    tool = {"name": "t", "description": "d", "parameters": schema, "strict": strict}
    return [*find_tool_faults(tool)]


@pytest.mark.parametrize(
    "odd", [{}, {"type": "string"}, {"type": None}, {"properties": None}, {"properties": []}]
)
def test_any_schema_becomes_an_object_schema(odd: dict[str, object]) -> None:
    """Otherwise services refuse the whole request."""
    assert parameters() == to_parameters(odd)


CHANGED: dict[str, tuple[Any, Any]] = {
    "array": ({"type": "array"}, {"type": "array", "items": {}}),
    "nullable array": ({"type": ["array", "null"]}, {"type": ["array", "null"], "items": {}}),
    "tuple": (
        {"type": "array", "items": [{"type": "number"}] * 2, "additionalItems": False},
        {"type": "array", "items": {"type": "number"}, "maxItems": 2},
    ),
    "mixed tuple": (
        {"type": "array", "prefixItems": [{"type": "number"}, {"type": "string"}]},
        {
            "type": "array",
            "items": {"anyOf": [{"type": "number"}, {"type": "string"}]},
            "description": 'positions: "number", "string"',
        },
    ),
    "draft 4 bound": (
        {"type": "integer", "minimum": 3, "exclusiveMinimum": True},
        {"type": "integer", "exclusiveMinimum": 3},
    ),
    "type any": ({"type": "any"}, {}),
    "type of a programming language": ({"type": "int"}, {"type": "integer"}),
    "unknown type": ({"type": "currency"}, {"description": "type currency"}),
    "null type": ({"type": None, "description": None, "enum": {}}, {}),
    "several types": (
        {"type": ["string", "integer", "null"], "minimum": 1, "description": "d"},
        {
            "anyOf": [{"type": "string"}, {"type": "integer", "minimum": 1}, {"type": "null"}],
            "description": "d",
        },
    ),
    "values without a type": ({"enum": ["a", "b", "a"]}, {"type": "string", "enum": ["a", "b"]}),
    "constant": ({"const": 5}, {"type": "integer", "enum": [5]}),
    "constant of another type": ({"const": True}, {"type": "boolean", "description": "only true"}),
    "empty text among values": (
        {"enum": ["", "a"]},
        {"type": "string", "enum": ["a"], "description": 'also ""'},
    ),
    "nullable values": (
        {"enum": ["a", None]},
        {"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "null"}]},
    ),
    "constants in a choice": (
        {"oneOf": [{"const": "a"}, {"const": "b"}]},
        {"type": "string", "enum": ["a", "b"]},
    ),
    "true": (True, {}),
    "OpenAPI null": ({"type": "string", "nullable": True}, {"type": ["string", "null"]}),
    "portable pattern": (
        {"type": "string", "pattern": r"^\d+(?:\.[a-z-]*)?$"},
        {"type": "string", "pattern": r"^\d+(?:\.[a-z-]*)?$"},
    ),
    "known format": ({"type": "string", "format": "date"}, {"type": "string", "format": "date"}),
    "other format": (
        {"type": "string", "format": "uri", "description": "Where."},
        {"type": "string", "description": "Where. (format uri)"},
    ),
    "number that is not JSON": (
        {"type": "number", "minimum": math.nan, "maximum": math.inf, "default": -math.inf},
        {"type": "number"},
    ),
    "map": (
        {"patternProperties": {"^x": {"type": "string"}}, "additionalProperties": False},
        {"type": "object", "additionalProperties": {"anyOf": [{"type": "string"}]}},
    ),
    "type as schema": ("string", {"type": "string"}),
    "conjunction": (
        {"allOf": [parameters(a={"type": "string"}), {"required": ["a"]}]},
        {**parameters(a={"type": "string"}), "required": ["a"]},
    ),
    "condition": (
        {"if": {"required": ["a"]}, "then": parameters(b={"type": "string"})},
        parameters(b={"type": "string"}),
    ),
}


@pytest.mark.parametrize("form", CHANGED)
def test_part_that_services_refuse_is_changed_at_any_depth(form: str) -> None:
    """The meaning is kept, in the description if no keyword expresses it."""
    original, expected = CHANGED[form]
    if form == "map":
        expected = {**expected, "additionalProperties": {"type": "string"}}
    inner = {"type": "array", "items": parameters(a=original)}

    assert parameters(a=expected) == to_parameters(parameters(a=original))
    converted = to_parameters(parameters(list=inner))
    assert {**inner, "items": parameters(a=expected)} == converted["properties"]["list"]
    assert [] == faults(converted)


@pytest.mark.parametrize(
    "pattern",
    [r"(?<!a)b", r"a++", r"^\p{L}+$", r"^a\Z", r"(?i)a", r"(?P<n>a)", r"(a)\1", "[", "(?>a)"],
)
def test_pattern_of_one_dialect_moves_to_the_description(pattern: str) -> None:
    converted = to_parameters(parameters(a={"type": "string", "pattern": pattern}))

    assert parameters(a={"type": "string", "description": f"pattern {pattern}"}) == converted


@pytest.mark.parametrize("word", ["oneOf", "anyOf", "allOf"])
def test_choice_at_the_top_keeps_the_parameters_behind_references(word: str) -> None:
    """Parameters that all branches require stay required. Calls are checked against the original
    schema.
    """
    schema: dict[str, Any] = {
        word: [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}, {"properties": "odd"}],
        "$defs": {
            "A": {**parameters(kind={"const": "a"}, x={"type": "string"}), "required": ["kind"]},
            "B": {**parameters(kind={"const": "b"}, y={}), "required": ["kind", "y"]},
        },
    }

    converted = to_parameters(schema)

    assert ["kind", "x", "y"] == [*converted["properties"]]
    assert ({"kind", "y"} if word == "allOf" else set()) == {*converted.get("required", ())}
    assert [] == faults(converted)


def test_choices_in_a_conjunction_keep_all_parameters() -> None:
    schema = {
        "allOf": [
            {"anyOf": [parameters(a={}), parameters(b={})]},
            {"anyOf": [parameters(c={}), {"oneOf": [parameters(d={}), parameters(e={})]}]},
        ]
    }

    assert ["a", "b", "c", "d", "e"] == [*to_parameters(schema)["properties"]]


def test_choice_at_the_top_describes_what_its_branches_need() -> None:
    schema = {
        **parameters(a={"type": "string"}, b={"type": "string"}, c={"type": "string"}),
        "required": ["c"],
        "anyOf": [{"required": ["a"]}, {"required": ["b", "c"]}],
    }

    assert {
        **parameters(a={"type": "string"}, b={"type": "string"}, c={"type": "string"}),
        "required": ["c"],
        "description": "needs a or b",
    } == to_parameters(schema)


NODE = {**parameters(next={"$ref": "#/definitions/Node"}, name={"type": "string"})}
REFERENCES: dict[str, dict[str, Any]] = {
    "definitions": {"$ref": "#/definitions/A", "definitions": {"A": {"type": "string"}}},
    "escaped": {"$ref": "#/definitions/a~1b%20c", "definitions": {"a/b c": {"type": "string"}}},
    "anchor": {"$ref": "#it", "definitions": {"A": {"$anchor": "it", "type": "string"}}},
    "id": {
        "$ref": "https://x.test/a",
        "$defs": {"A": {"$id": "https://x.test/a", "type": "string"}},
    },
    "chain": {
        "$ref": "#/definitions/A",
        "definitions": {"A": {"$ref": "#/definitions/B"}, "B": {"type": "string"}},
    },
}


@pytest.mark.parametrize("form", REFERENCES)
def test_reference_is_replaced_by_its_target(form: str) -> None:
    whole = REFERENCES[form]
    reference = {"$ref": whole["$ref"], "description": "d"}
    rest = {key: value for key, value in whole.items() if key != "$ref"}

    expected = parameters(a={"type": "string", "description": "d"})
    assert expected == to_parameters({**parameters(a=reference), **rest})


@pytest.mark.parametrize(
    "reference",
    ["https://x.test/s.json", "other.json#/a", "#/$defs/No", "#/properties/a/type", "#no", 7, None],
)
def test_dangling_reference_is_removed_and_never_followed(reference: object) -> None:
    """Keywords next to the reference are kept."""
    schema = parameters(a={"type": "string"}, b={"$ref": reference, "description": "B"})

    assert parameters(a={"type": "string"}, b={"description": "B"}) == to_parameters(schema)


def test_recursive_reference_becomes_a_description() -> None:
    schema = {"$ref": "#/definitions/Node", "definitions": {"Node": NODE}}
    again = {"type": "object", "description": "same form as Node"}

    assert parameters(next=again, name={"type": "string"}) == to_parameters(schema)
    again = {"type": "object", "description": "same form as the parameters"}
    assert parameters(self=again) == to_parameters(parameters(self={"$ref": "#"}))


def test_references_that_multiply_are_limited() -> None:
    both = {f"d{level}": {"$ref": f"#/$defs/d{level + 1}"} for level in range(3)}
    definitions = {
        f"d{level}": parameters(a={"$ref": f"#/$defs/d{level + 1}"}, b=both["d1"])
        for level in range(60)
    }
    converted = to_parameters({"$ref": "#/$defs/d0", "$defs": definitions}, max_chars=8000)

    assert ["a", "b"] == [*converted["properties"]]
    assert [] == faults(converted)


def test_deeply_nested_schema_is_cut() -> None:
    deep: dict[str, Any] = {"type": "string"}
    for _ in range(400):
        deep = parameters(a={"type": "array", "items": deep})

    assert [] == faults(to_parameters(deep))


RENAMED = {
    **parameters(
        **{
            "$filter": {"type": "string"},
            "filter": {"type": "string"},
            "tags[]": {"type": "array", "items": parameters(**{"@id": {"type": "string"}})},
            "": {"type": "string"},
            "n" * 65: {"type": "string"},
            "日期": {"type": "string", "description": "Day."},
            "any": {"additionalProperties": parameters(**{"a b": {"type": "string"}})},
        }
    ),
    "required": ["$filter", "日期", "missing"],
}


def test_property_name_that_services_refuse_is_changed_and_restored() -> None:
    converted = to_parameters(RENAMED)

    names = ["filter_2", "filter", "tags", "value", "n" * 60, "value_2", "any", "missing"]
    assert sorted(names) == sorted(converted["properties"])
    assert ["filter_2", "value_2", "missing"] == converted["required"] or [] == faults(converted)
    assert "Day. (named 日期)" in json.dumps(converted, ensure_ascii=False)
    given_arguments = {
        "filter_2": "f",
        "filter": "g",
        "tags": [{"id": "1", "value": 2}],
        "any": {"x": {"a_b": "c"}},
        "other": {"filter_2": "kept"},
    }
    assert {
        "$filter": "f",
        "filter": "g",
        "tags[]": [{"@id": "1", "value": 2}],
        "any": {"x": {"a b": "c"}},
        "other": {"filter_2": "kept"},
    } == restore_names(RENAMED, given_arguments)
    assert {"$filter": 1} == restore_names(RENAMED, {"$filter": 1})


def big(fields: int, inner: int) -> dict[str, Any]:
    text = {"type": "string", "description": "More words. " * 10}
    field = {
        **parameters(**{f"sub_{number}": text for number in range(inner)}),
        "description": "Words about it. " * 20,
    }
    return {**parameters(**{f"field_{number}": field for number in range(fields)})}


@pytest.mark.parametrize(("fields", "inner", "limit"), [(9, 3, 3000), (9, 9, 2000), (60, 9, 8000)])
def test_long_parameters_are_cut_but_keep_their_names(fields: int, inner: int, limit: int) -> None:
    schema = {**big(fields, inner), "required": ["field_1"]}
    converted = to_parameters(schema, max_chars=limit)

    assert len(json.dumps(converted, ensure_ascii=False)) <= limit
    assert [*schema["properties"]] == [*converted["properties"]]
    assert [] == faults(converted)
    fits = "sub_2" in converted["properties"]["field_1"].get("properties", {})
    assert fits or "fields sub_0, sub_1" in converted["properties"]["field_1"]["description"]


def test_very_long_parameters_keep_the_required_ones() -> None:
    schema = {**big(900, 1), "required": ["field_800"], "additionalProperties": False}

    converted = to_parameters(schema, max_chars=2000)

    assert len(json.dumps(converted)) <= 2000
    assert ["field_800"] == converted["required"]
    assert "field_800" in converted["properties"]
    assert "additionalProperties" not in converted
    assert converted["description"].startswith("900 parameters")


CLOSED: dict[str, Any] = {
    **parameters(a={"type": "string"}),
    "required": ["a"],
    "additionalProperties": False,
}
NESTED: dict[str, Any] = {
    **CLOSED,
    "properties": {"a": {"type": "array", "items": {"$ref": "#/$defs/x"}}},
    "$defs": {"x": CLOSED},
}


@pytest.mark.parametrize("schema", [CLOSED, NESTED, {**CLOSED, "properties": {"a": {"enum": [1]}}}])
def test_closed_schema_fits_strict(schema: dict[str, Any]) -> None:
    """A closed schema forbids additional properties and requires all others, at every depth and
    behind local references.
    """
    converted = to_parameters(schema)

    assert fits_strict(converted)
    assert [] == faults(converted, strict=True)


DEEP = CLOSED
for _ in range(6):
    DEEP = {**CLOSED, "properties": {"a": {"type": "array", "items": DEEP}}}


@pytest.mark.parametrize(
    "changed",
    [
        {"additionalProperties": True},
        {"required": []},
        {"required": None},
        {"properties": {"a": {}}},
        {"properties": {"a": {"type": "object"}}},
        {"properties": {"a": {"type": "string", "default": "x"}}},
        {"properties": {"a": {"type": "string", "minLength": 1}}},
        {"properties": {"a": {"anyOf": [{**CLOSED, "required": []}]}}},
        {"properties": {"a": {"enum": [*range(1001)]}}},
        {"properties": {"a": {"enum": [f"{number:0100}" for number in range(300)]}}},
        DEEP,
    ],
)
def test_open_schema_does_not_fit_strict(changed: dict[str, Any]) -> None:
    """The service would refuse the whole request with such a schema."""
    assert not fits_strict(to_parameters({**CLOSED, **changed}))


NAMES = st.sampled_from(["a", "b", "$filter", "tags[]", "", "日期", "x" * 70]) | st.text(max_size=3)
VALUES = (
    st.sampled_from(
        ["string", "int", "array", "object", "any", "#/$defs/a", "#", "x.json", r"\p{L}", "a++"]
    )
    | st.sampled_from(["date", "uri", "$filter", "a", "", math.nan, math.inf, 2**70])
    | st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
)
KEYWORDS = st.sampled_from(
    [
        *("type", "properties", "items", "required", "enum", "const", "anyOf", "oneOf", "allOf"),
        *("not", "$ref", "$defs", "definitions", "$id", "$anchor", "pattern", "format", "minimum"),
        *("exclusiveMinimum", "multipleOf", "minLength", "maxItems", "prefixItems", "title"),
        *("additionalItems", "additionalProperties", "patternProperties", "description", "default"),
        *("examples", "nullable", "if", "then", "dependentSchemas", "dependencies", "uniqueItems"),
    ]
)
NONSENSE = st.recursive(
    VALUES,
    lambda inner: st.dictionaries(
        KEYWORDS,
        inner | st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
        max_size=5,
    ),
    max_leaves=20,
)
REQUIRED = st.lists(NAMES, max_size=4)


@settings(max_examples=300, deadline=None)
@given(NONSENSE, REQUIRED, st.dictionaries(NAMES, NONSENSE, max_size=4), st.booleans())
def test_any_schema_is_accepted_and_keeps_required_names(
    schema: Any, required: list[str], properties: dict[str, Any], short: bool
) -> None:
    """Names of properties survive under their changed names."""
    schema = schema if isinstance(schema, dict) else {"default": schema}
    schema = {**schema, "properties": properties, "required": required}

    converted = to_parameters(schema, max_chars=2000 if short else 10**6)

    assert [] == faults(converted, strict=fits_strict(converted))
    json.dumps(converted, allow_nan=False)
    is_open = schema.get("additionalProperties") is not False
    named = {name for name in required if is_open or name in properties}
    named -= {name for name in properties if properties[name] is False}
    restored = restore_names(schema, dict.fromkeys(converted.get("required", ())))
    assert named <= restored.keys()
