"""Schemas fit for the provider: strict only where every rule of strict schemas holds."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.discovery.proxies import fits_strict, proxy
from gateway.options import DiscoveryOptions
from gateway.types import Entity, ToolDefinition

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
    ("strict", "schema", "told"),
    [
        (True, CLOSED, True),
        (True, {**CLOSED, "required": []}, None),
        (False, CLOSED, None),
    ],
)
def test_a_proxy_says_so_where_the_host_wants_it(
    strict: bool, schema: dict[str, Any], told: bool | None
) -> None:
    """Off by default: many servers behind the API do not know the word."""
    entity = Entity(
        id="s/t",
        exposed_name="t",
        server="s",
        definition=ToolDefinition(name="t", input_schema=schema),
    )

    function: Any = proxy(entity, DiscoveryOptions(strict=strict))["function"]

    assert told is function.get("strict")
