"""Definitions of proxies, in the form that model services accept."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gateway.discovery import proxy
from gateway.options import DiscoveryOptions
from tests.fakes import entity, tool


def test_proxy_has_the_exposed_name_and_the_real_schema() -> None:
    """A reference is replaced by its target; the keyword ``$schema`` is removed."""
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
            "parameters": {
                "type": "object",
                "properties": {"a": {"type": "string", "enum": ["x"]}},
                "required": ["a"],
            },
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
