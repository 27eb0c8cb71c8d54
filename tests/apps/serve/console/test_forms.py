"""Conversion of schemas to forms, and of forms to arguments."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.serve.console.forms import (
    MAX_FIELDS,
    REST,
    FormField,
    form_fields,
    read_form,
    read_value,
    with_faults,
)

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "note": {"type": ["string", "null"], "default": "none", "maxLength": 20},
        "city": {"type": "string", "description": "Where.", "examples": ["Kyiv", "Rome"]},
        "days": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": 3, "minimum": 1},
        "unit": {"$ref": "#/$defs/Unit", "default": "c"},
        "exact": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "levels": {"type": "array", "items": {"$ref": "#/$defs/Level"}},
        "place": {"type": "object", "properties": {"x": {"type": "number"}}},
        "kind": {"const": 7},
        "any": {},
    },
    "required": ["city", "unit", "kind"],
    "$defs": {"Unit": {"enum": ["c", "f", 1, None]}, "Level": {"type": "number"}},
}
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
WORDS = st.sampled_from(
    ["type", "properties", "items", "enum", "anyOf", "$ref", "default", "required", "examples"]
)
VALUES = st.sampled_from(
    ["string", "array", "#", "#/properties/a", {"$ref": "#/properties/a"}, ["a"], [{}, True]]
)
SCHEMAS = st.recursive(
    st.dictionaries(WORDS, VALUES | JSON, max_size=3),
    lambda inner: st.fixed_dictionaries(
        {"properties": st.dictionaries(st.sampled_from("abc"), inner, max_size=3)},
        optional={"required": st.lists(st.sampled_from("abc")), "anyOf": st.lists(inner)},
    ),
    max_leaves=6,
)


def by_name(fields: tuple[FormField, ...]) -> dict[str, FormField]:
    return {field.name: field for field in fields}


def to_text(field: FormField, value: object) -> str | None:
    """Return the text to type into *field* for *value*, or None if no text expresses it."""
    if field.control in ("choice", "json"):
        text = json.dumps(value)
    elif field.control == "lines" and isinstance(value, list):
        text = "\n".join(item if isinstance(item, str) else json.dumps(item) for item in value)
    else:
        text = value if isinstance(value, str) else json.dumps(value)
    try:
        parsed = read_value(field, text)
    except ValueError:
        return None
    # Compared as JSON, because True equals 1 in Python.
    is_same = "\r" not in text and json.dumps(parsed) == json.dumps(value)
    return text if text.strip() and is_same else None


def fill_form(fields: tuple[FormField, ...], arguments: Mapping[str, object]) -> dict[str, str]:
    """Return the submitted form for *arguments*.

    Values that no field can express go into the last field.
    """
    named, form, additional = by_name(fields), {}, {}
    for name, value in arguments.items():
        field = named.get(name) if name else None
        text = None if field is None else to_text(field, value)
        if field is None or text is None:
            additional[name] = value
        else:
            form[field.key] = text
    return {**form, REST: json.dumps(additional)} if additional else form


def test_schema_becomes_form_fields() -> None:
    fields = form_fields(SCHEMA)
    named = by_name(fields)

    assert ["city", "unit", "kind"] == [item.name for item in fields if item.required]
    assert ["city", "unit", "kind", "note"] == [item.name for item in fields[:4]]
    assert (REST, "json") == (fields[-1].key, fields[-1].control)
    assert {
        "note": "text",
        "city": "text",
        "days": "integer",
        "unit": "choice",
        "exact": "choice",
        "tags": "lines",
        "levels": "lines",
        "place": "json",
        "kind": "choice",
        "any": "json",
        "": "json",
    } == {name: field.control for name, field in named.items()}
    assert ("text", "number") == (named["tags"].items, named["levels"].items)
    assert ["c", "f", "1", "null"] == [label for _, label in named["unit"].choices]
    assert ("Where.", ('for example "Kyiv"', 'for example "Rome"')) == (
        named["city"].description,
        named["city"].hints,
    )
    assert ("default 3", "minimum 1") == named["days"].hints
    assert ("", "7", "") == (named["unit"].value, named["kind"].value, named["days"].value)


def test_submitted_form_becomes_arguments() -> None:
    form = {
        "arg.city": "Kyiv\r\ncentre",
        "arg.unit": "1",
        "arg.kind": "7",
        "arg.days": " 3 ",
        "arg.exact": "false",
        "arg.tags": "a\n\nb c\n",
        "arg.levels": "1\n2.5",
        "arg.place": '{"x": 1}',
        "arg.note": " ",
        REST: '{"any": null, "days": 4}',
    }

    arguments, fields = read_form(form_fields(SCHEMA), form)

    assert {
        "city": "Kyiv\ncentre",
        "unit": 1,
        "kind": 7,
        "days": 4,
        "exact": False,
        "tags": ["a", "b c"],
        "levels": [1, 2.5],
        "place": {"x": 1},
        "any": None,
    } == arguments
    assert [""] * len(fields) == [field.error for field in fields]


@pytest.mark.parametrize(
    ("name", "text", "error"),
    [
        ("city", "", "required"),
        ("days", "three", "not a number"),
        ("days", "true", "not a number"),
        ("days", "1.5", "not a whole number"),
        ("days", "1e999", "not a number"),
        ("days", "NaN", "not a number"),
        ("unit", '"x"', "choose one of the values"),
        ("levels", "1\nx", "line 2: not a number"),
        ("place", "{x", "invalid JSON"),
        ("", "[1]", "not a JSON object"),
        ("any", "[" * 100_000, "invalid JSON"),
    ],
)
def test_invalid_text_is_reported_at_its_field(name: str, text: str, error: str) -> None:
    fields = form_fields(SCHEMA)
    good = {"arg.city": "x", "arg.unit": '"c"', "arg.kind": "7"}
    key = by_name(fields)[name].key

    _, filled = read_form(fields, {**good, key: text})

    assert {name} == {field.name for field in filled if field.error}
    assert by_name(filled)[name].error.startswith(error)
    assert text == by_name(filled)[name].value


def test_required_list_argument_left_empty_is_sent_as_an_empty_list() -> None:
    schema = {"properties": {"tags": {"type": "array", "items": {"type": "string"}}}}

    sent, _ = read_form(form_fields({**schema, "required": ["tags"]}), {})
    left_out, _ = read_form(form_fields(schema), {})

    assert ({"tags": []}, {}) == (sent, left_out)


def test_huge_schema_becomes_a_readable_form() -> None:
    schema = {"properties": {f"p{n}": {"type": "string"} for n in range(1000)}}

    assert MAX_FIELDS + 1 == len(form_fields(schema))


def test_validation_faults_are_assigned_to_their_form_fields() -> None:
    faults = ("days: 9 is too much", "place.x: 'a' is no number", "'city' is missing", "b: odd")

    fields, others = with_faults(form_fields(SCHEMA), faults)

    assert ("9 is too much", "'a' is no number") == (
        by_name(fields)["days"].error,
        by_name(fields)["place"].error,
    )
    assert ("'city' is missing", "b: odd") == others


@given(SCHEMAS, st.dictionaries(st.sampled_from(["a", "b", "c", "d", ""]), JSON))
def test_every_argument_can_be_entered_for_any_schema(
    schema: dict[str, Any], arguments: dict[str, object]
) -> None:
    fields = form_fields(schema)
    needed = {field.name for field in fields if field.required}

    read, filled = read_form(fields, fill_form(fields, arguments))

    # A required list is sent as empty if its field is blank.
    sent = {name: value for name, value in read.items() if name in arguments or value != []}
    assert json.dumps(arguments, sort_keys=True) == json.dumps(sent, sort_keys=True)
    assert {field.name for field in filled if field.error} <= needed - arguments.keys()


@given(SCHEMAS, st.dictionaries(st.sampled_from(["arg.a", "arg.b", REST]), st.text()))
def test_any_submitted_text_is_parsed_or_reported(
    schema: dict[str, Any], form: dict[str, str]
) -> None:
    arguments, fields = read_form(form_fields(schema), form)

    assert json.dumps(arguments) is not None
    for field in fields:
        if field.value.strip() and not field.error:
            assert read_value(field, field.value) is not None or "null" in field.value


def test_form_with_many_required_fields_is_read_quickly() -> None:
    """A linear search for each name took 6 s for 30,000 names."""

    class Counted(str):
        __slots__ = ()
        compared = 0
        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            Counted.compared += 1
            return str.__eq__(self, other)

    names = [Counted(n) for n in range(1000)]
    schema = {"properties": {key: {} for key in map(str, range(1000))}, "required": names[::-1]}

    fields = form_fields(schema)

    assert MAX_FIELDS + 1 == len(fields)
    assert Counted.compared < 5000
