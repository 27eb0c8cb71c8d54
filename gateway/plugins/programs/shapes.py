"""The shape of the results that a tool has given so far, as a JSON Schema. Pure.

It is the narrowest that all of them fit: what was in each is required, what differed is a choice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

from gateway.runtime.json_schema import as_objects
from gateway.types import JsonObject

MAX_KEYS = 32
"""An object with more keys is data by key, not a record."""
MAX_CHOICES = 4
_MAX_ITEMS = 50
"""How many items of a list are looked at."""
_MAX_DEPTH = 6
ANY: JsonObject = {}
Shape = JsonObject


def shape_of(value: object, depth: int = _MAX_DEPTH) -> Shape:
    """Return the shape of one JSON value; `ANY` below a depth of six."""
    if depth <= 0:
        return ANY
    if isinstance(value, Mapping):
        if len(value) > MAX_KEYS:
            return {"type": "object"}
        properties = {str(key): shape_of(item, depth - 1) for key, item in value.items()}
        return {"type": "object", "properties": properties, "required": [*properties]}
    if isinstance(value, list):
        shapes = [shape_of(item, depth - 1) for item in value[:_MAX_ITEMS]]
        return {"type": "array", "items": reduce(join, shapes)} if shapes else {"type": "array"}
    names = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}
    return {"type": names[type(value)]} if type(value) in names else ANY


def join(first: Shape, second: Shape) -> Shape:
    """Return the narrowest shape that holds what either of two holds."""
    if first == second:
        return first
    if not first or not second:
        return ANY
    choices = list[Any](_choices(first))
    for shape in _choices(second):
        for index, other in enumerate(choices):
            if (merged := _same_kind(other, shape)) is not None:
                choices[index] = merged
                break
        else:
            choices.append(shape)
    if len(choices) > MAX_CHOICES:
        return ANY
    return choices[0] if len(choices) == 1 else {"anyOf": choices}


def _choices(shape: Shape) -> Sequence[Shape]:
    return [*as_objects(shape.get("anyOf"))] or [shape]


def _same_kind(first: Mapping[str, Any], second: Mapping[str, Any]) -> Shape | None:
    """Return one shape for two of the same kind; None if they are of different kinds."""
    kinds = {first.get("type"), second.get("type")}
    if kinds == {"integer", "number"}:
        return {"type": "number"}
    if len(kinds) > 1:
        return None
    if kinds == {"array"}:
        if "items" not in first or "items" not in second:
            return {**first, **second}
        return {"type": "array", "items": join(first["items"], second["items"])}
    if kinds == {"object"}:
        return _join_objects(first, second)
    return first


def _join_objects(first: Mapping[str, Any], second: Mapping[str, Any]) -> Shape:
    if "properties" not in first or "properties" not in second:
        return {"type": "object"}
    left, right = first["properties"], second["properties"]
    keys = dict.fromkeys((*left, *right))
    if len(keys) > MAX_KEYS:
        return {"type": "object"}
    properties = {
        key: join(left.get(key, right.get(key)), right.get(key, left.get(key))) for key in keys
    }
    required = [key for key in first["required"] if key in second["required"]]
    return {"type": "object", "properties": properties, "required": required}
