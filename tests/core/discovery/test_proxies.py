"""Definitions of proxies, in the form that model services accept."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gateway.discovery import fits_strict, proxy, to_parameters
from gateway.options import DiscoveryOptions
from tests.fakes import entity, tool


def test_proxy_has_the_exposed_name_and_the_real_schema() -> None:
    """References within the schema are kept; the keyword ``$schema`` is removed."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:x",
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/A"}},
        "$defs": {"A": {"type": "string", "enum": ["x"]}},
        "required": ["a"],
    }
    tool_entity = entity(replace(tool("a.b", "Does it."), input_schema=schema))
    definition = proxy(replace(tool_entity, exposed_name="a_b"), DiscoveryOptions())

    assert {
        "type": "function",
        "function": {
            "name": "a_b",
            "description": "Does it.",
            "parameters": {key: schema[key] for key in schema if key not in {"$schema", "$id"}},
        },
    } == definition


@pytest.mark.parametrize(
    ("title", "description", "expected"),
    [
        ("T", "D", "D"),
        ("T", "", "T"),
        ("", "", "x of srv"),
        ("", "a\u202eb" + "c" * 99, "ab" + "c" * 38),
    ],
)
def test_proxy_description_is_never_empty_or_too_long(
    title: str, description: str, expected: str
) -> None:
    """Invisible characters are removed, because they hide instructions from people who read
    logs.
    """
    tool_entity = entity(replace(tool("x", description), title=title))

    definition: Any = proxy(tool_entity, DiscoveryOptions(description_chars=40))

    assert expected == definition["function"]["description"]


@pytest.mark.parametrize("odd", [{}, {"type": "string"}, {"properties": None}, {"properties": []}])
def test_any_schema_becomes_an_object_schema(odd: dict[str, object]) -> None:
    """Otherwise services refuse the whole request."""
    assert {"type": "object", "properties": {}} == to_parameters(odd)


@pytest.mark.parametrize("word", ["oneOf", "anyOf", "allOf"])
def test_choice_at_the_top_of_a_schema_is_replaced_by_its_properties(word: str) -> None:
    """Services refuse a schema with such a choice (`anyOf` and others), so one tool of a server
    would break every request. Google's calendar server had one. The call is checked against the
    original schema.
    """
    odd: dict[str, object] = {
        "type": "object",
        "properties": {"id": {"type": "string"}},
        "required": ["id"],
        word: [
            {"properties": {"start": {"type": "string"}, "id": {}}},
            {"properties": "odd"},
            True,
        ],
        "not": {},
        "enum": [{}],
    }

    assert {
        "type": "object",
        "properties": {"start": {"type": "string"}, "id": {"type": "string"}},
        "required": ["id"],
    } == to_parameters(odd)


@pytest.mark.parametrize(
    "reference",
    [
        "https://example.org/schema.json",
        "other.json#/a",
        "#/$defs/Missing",
        "#/properties/a/type",
        "#/anyOf/7",
        "#nobody",
        7,
    ],
)
def test_dangling_reference_in_a_schema_is_removed_and_never_followed(reference: object) -> None:
    """Otherwise services refuse the whole request. Keywords next to the reference are kept."""
    schema: dict[str, object] = {
        "type": "object",
        "properties": {
            "a": {"type": "string"},
            "b": {"$ref": reference, "description": "B"},
            "c": {"type": "array", "items": [{"$ref": reference}, True]},
        },
    }

    assert {
        "type": "object",
        "properties": {
            "a": {"type": "string"},
            "b": {"description": "B"},
            "c": {"type": "array", "items": [{}, True]},
        },
    } == to_parameters(schema)


def test_proxy_schema_keeps_local_references_and_keyword_named_properties() -> None:
    """References that form a cycle are kept too. A property may have the name of a schema
    keyword.
    """
    schema: dict[str, object] = {
        "type": "object",
        "properties": {
            "self": {"$ref": "#"},
            "node": {"$ref": "#/$defs/a~1b%20c"},
            "second": {"$ref": "#/$defs/list/items/1"},
            "$ref": {"type": "string", "default": {"$ref": "urn:x"}, "enum": [{"$ref": "x"}]},
        },
        "$defs": {
            "a/b c": {"properties": {"next": {"$ref": "#/$defs/a~1b%20c"}}},
            "list": {"items": [{}, {"type": "string"}]},
        },
    }

    assert schema == to_parameters(schema)


def test_brief_proxy_has_a_description_of_one_line() -> None:
    """The line is the same as in a search result. The schema is complete."""
    tool_entity = entity(tool("x", "First sentence. Second.\nThird."))
    whole: Any = proxy(tool_entity, DiscoveryOptions())["function"]
    brief: Any = proxy(tool_entity, DiscoveryOptions(), brief=True)["function"]

    assert {**whole, "description": "First sentence."} == brief


CLOSED: dict[str, Any] = {
    "type": "object",
    "properties": {"a": {"type": "string"}},
    "required": ["a"],
    "additionalProperties": False,
}
NESTED: dict[str, Any] = {
    **CLOSED,
    "properties": {"a": {"type": "array", "items": {"$ref": "#/$defs/x"}}},
    "$defs": {"x": CLOSED},
}


@pytest.mark.parametrize("schema", [CLOSED, NESTED, {**CLOSED, "properties": {"a": {}}}])
def test_closed_schema_fits_strict(schema: dict[str, Any]) -> None:
    """A closed schema forbids additional properties and requires all others, at every depth and
    behind local references.
    """
    assert fits_strict(schema)


@pytest.mark.parametrize(
    "changed",
    [
        {"additionalProperties": True},
        {"required": []},
        {"required": None},
        {"properties": {"a": {"type": "object"}}},
        {"properties": {"a": {"oneOf": [{"type": "string"}]}}},
        {"properties": {"a": {"anyOf": [{**CLOSED, "required": []}]}}},
        {"allOf": [CLOSED]},
    ],
)
def test_open_schema_does_not_fit_strict(changed: dict[str, Any]) -> None:
    """The service would refuse the whole request with such a schema."""
    assert not fits_strict({**CLOSED, **changed})


@pytest.mark.parametrize(
    ("strict", "schema", "expected"),
    [(True, CLOSED, True), (True, {**CLOSED, "required": []}, None), (False, CLOSED, None)],
)
def test_proxy_is_strict_only_if_configured_and_possible(
    strict: bool, schema: dict[str, Any], expected: bool | None
) -> None:
    """The option is off by default, because many compatible services do not know the keyword
    ``strict``.
    """
    tool_entity = entity(replace(tool("t"), input_schema=schema))
    function: Any = proxy(tool_entity, DiscoveryOptions(strict=strict))["function"]

    assert expected is function.get("strict")
