"""Proxies: a found tool as a definition that services take."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gateway.config import DiscoveryOptions
from gateway.discovery.proxies import parameters, proxy
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
    assert {"type": "object", "properties": {}} == parameters(odd)


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
    }

    assert {
        "type": "object",
        "properties": {"start": {"type": "string"}, "id": {"type": "string"}},
        "required": ["id"],
    } == parameters(odd)


def test_what_else_is_refused_at_the_top_goes() -> None:
    """`not` and `enum`; deeper down they are fine."""
    inner = {"a": {"not": {"enum": [1]}}}

    assert {"type": "object", "properties": inner} == parameters(
        {"properties": inner, "not": {}, "enum": [{}], "anyOf": {}}
    )
