"""Proxies: a found tool as a definition that services take."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gateway.discovery import fits_strict, proxy, to_parameters
from gateway.options import DiscoveryOptions
from tests.fakes import entity, tool


def test_a_proxy_is_the_tool_under_its_exposed_name_with_its_real_schema() -> None:
    """References within the schema stay; the dialect is nobody's business."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:x",
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/A"}},
        "$defs": {"A": {"type": "string", "enum": ["x"]}},
        "required": ["a"],
    }
    found = entity(replace(tool("a.b", "Does it."), input_schema=schema))
    made = proxy(replace(found, exposed_name="a_b"), DiscoveryOptions())

    assert {
        "type": "function",
        "function": {
            "name": "a_b",
            "description": "Does it.",
            "parameters": {key: schema[key] for key in schema if key not in {"$schema", "$id"}},
        },
    } == made


@pytest.mark.parametrize(
    ("title", "description", "expected"),
    [
        ("T", "D", "D"),
        ("T", "", "T"),
        ("", "", "x of srv"),
        ("", "a\u202eb" + "c" * 99, "ab" + "c" * 38),
    ],
)
def test_a_proxy_is_always_described_and_never_at_length(
    title: str, description: str, expected: str
) -> None:
    """Invisible characters hide instructions from the people who read logs."""
    found = entity(replace(tool("x", description), title=title))

    made: Any = proxy(found, DiscoveryOptions(description_chars=40))

    assert expected == made["function"]["description"]


@pytest.mark.parametrize("odd", [{}, {"type": "string"}, {"properties": None}, {"properties": []}])
def test_any_schema_becomes_one_of_an_object(odd: dict[str, object]) -> None:
    """Services refuse everything else, and with it the whole request."""
    assert {"type": "object", "properties": {}} == to_parameters(odd)


@pytest.mark.parametrize("word", ["oneOf", "anyOf", "allOf"])
def test_a_choice_at_the_top_becomes_its_properties(word: str) -> None:
    """Services refuse such a schema: one tool of a server would cost every request.

    Google's calendar server had one. The call itself is checked against the schema as it was.
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
def test_a_reference_that_leads_nowhere_is_left_out_and_never_followed(reference: object) -> None:
    """Services refuse it, and with it the whole request. What stands beside it stays."""
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


def test_references_within_the_schema_stay_and_data_is_no_schema() -> None:
    """Cycles too; a property may be called as a word of schemas is."""
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


def test_a_brief_proxy_is_described_in_one_line() -> None:
    """As in the result of a search; the schema is the same."""
    found = entity(tool("x", "First sentence. Second.\nThird."))
    whole: Any = proxy(found, DiscoveryOptions())["function"]
    brief: Any = proxy(found, DiscoveryOptions(), brief=True)["function"]

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
def test_a_closed_schema_is_strict(schema: dict[str, Any]) -> None:
    """At every depth; local references stay."""
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
def test_an_open_schema_is_not(changed: dict[str, Any]) -> None:
    """The service would refuse the whole request."""
    assert not fits_strict({**CLOSED, **changed})


@pytest.mark.parametrize(
    ("strict", "schema", "expected"),
    [(True, CLOSED, True), (True, {**CLOSED, "required": []}, None), (False, CLOSED, None)],
)
def test_a_proxy_says_so_where_the_host_wants_it(
    strict: bool, schema: dict[str, Any], expected: bool | None
) -> None:
    """Off by default: many servers behind the API do not know the word."""
    found = entity(replace(tool("t"), input_schema=schema))
    function: Any = proxy(found, DiscoveryOptions(strict=strict))["function"]

    assert expected is function.get("strict")
