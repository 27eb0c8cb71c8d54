"""Traversal, references and cost of JSON Schemas, and typed access to JSON of other authors.

The traversal changes only schemas, not data such as a property called ``title``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from gateway.types import JsonObject

MAPS = frozenset({"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"})
_IN_PLACE = frozenset({"allOf", "anyOf", "dependentSchemas", "else", "if", "not", "oneOf", "then"})
"""JSON Schema keywords whose schemas apply to the same value as the schema that contains them."""
_DATA = frozenset({"const", "default", "enum", "examples"})


def map_schemas(schema: JsonObject, change: Callable[[JsonObject], JsonObject]) -> JsonObject:
    """Return a copy of *schema*, with *change* applied to it and to all schemas inside it."""
    return {key: _map_value(key, value, change) for key, value in change(schema).items()}


def _map_value(key: str, value: object, change: Callable[[JsonObject], JsonObject]) -> object:
    if key in _DATA:
        return value
    if isinstance(value, dict):
        if key in MAPS:
            return {name: _map_schema(child, change) for name, child in value.items()}
        return map_schemas(value, change)
    if isinstance(value, list):
        return [_map_schema(child, change) for child in value]
    return value


def _map_schema(value: object, change: Callable[[JsonObject], JsonObject]) -> object:
    return map_schemas(value, change) if isinstance(value, dict) else value


def read_empty_maps(value: Any, keys: Collection[str] | None) -> Any:
    """Replace empty lists in *value* by empty objects, because PHP writes empty maps as ``[]``.

    *keys* are the keys whose values are maps; None for all keys.
    """
    if isinstance(value, list):
        return [read_empty_maps(item, keys) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: {} if item == [] and (keys is None or key in keys) else read_empty_maps(item, keys)
        for key, item in value.items()
    }


def resolve_pointer(reference: object, root: object) -> object:
    """Return the value in *root* at a JSON pointer (RFC 6901) that begins with ``#``.

    Return None if the pointer is invalid or its target is missing.
    """
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    target = root
    for step in filter(None, unquote(reference[1:]).split("/")):
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(target, Mapping) and key in target:
            target = target[key]
        elif isinstance(target, list | tuple) and key.isdecimal() and int(key) < len(target):
            target = target[int(key)]
        else:
            return None
    return target


def count_in_place(root: JsonObject) -> float:
    """Return the maximum number of schemas in *root* that validation applies to one value.

    References count as often as they are used, because a few hundred bytes can represent 2^n
    schemas. The result is at least 1, and infinite if a schema applies itself to the same value
    again.
    """
    counts: dict[int, float] = {}

    def count(schema: object) -> float:
        if not isinstance(schema, Mapping):
            return 1
        if id(schema) not in counts:
            counts[id(schema)] = math.inf  # remains for a schema that contains itself
            counts[id(schema)] = 1 + sum(map(count, _applied_in_place(schema, root)))
        return counts[id(schema)]

    try:
        return max(map(count, objects_in(root)))
    except RecursionError:
        return math.inf


def _applied_in_place(schema: JsonObject, root: JsonObject) -> Iterator[object]:
    if isinstance(reference := schema.get("$ref"), str):
        yield resolve_pointer(reference, root)
    for name in _IN_PLACE & schema.keys():
        value = schema[name]
        if isinstance(value, list):
            yield from value
        elif isinstance(value, Mapping):
            yield from value.values() if name in MAPS else (value,)


def objects_in(value: object) -> Iterator[JsonObject]:
    """Yield all JSON objects in *value*, including *value* itself."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Mapping):
            yield part
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part


def as_text(value: object) -> str:
    """Return *value* if it is a text, else ""."""
    return value if isinstance(value, str) else ""


def as_texts(value: object) -> list[str]:
    """Return the texts in *value*, or an empty list if it is not a list."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def as_object(value: object) -> Mapping[str, Any]:
    """Return *value* if it is a JSON object, else an empty object."""
    return value if isinstance(value, Mapping) else {}


def as_objects(value: object) -> list[dict[str, Any]]:
    """Return the objects in *value*, or an empty list if it is not a list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
