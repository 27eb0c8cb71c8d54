"""A walk over JSON Schemas that tells schemas from names and from data.

A property may be called ``title`` and a default may hold the key ``description``: neither is
touched.
"""

from __future__ import annotations

from collections.abc import Callable

from gateway.types import JsonObject

_MAPS = frozenset({"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"})
_DATA = frozenset({"const", "default", "enum", "examples"})


def map_schemas(schema: JsonObject, change: Callable[[JsonObject], JsonObject]) -> JsonObject:
    """Return a copy of *schema*, with *change* applied to it and to every schema inside."""
    return {key: _map_value(key, value, change) for key, value in change(schema).items()}


def _map_value(key: str, value: object, change: Callable[[JsonObject], JsonObject]) -> object:
    if key in _DATA:
        return value
    if isinstance(value, dict):
        if key in _MAPS:
            return {name: _map_schema(child, change) for name, child in value.items()}
        return map_schemas(value, change)
    if isinstance(value, list):
        return [_map_schema(child, change) for child in value]
    return value


def _map_schema(value: object, change: Callable[[JsonObject], JsonObject]) -> object:
    return map_schemas(value, change) if isinstance(value, dict) else value
