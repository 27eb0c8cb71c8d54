"""Shapes of tool results as JSON Schemas, and conversion of sandbox values to JSON.

A shape is the narrowest schema that all results so far match: keys in every result are required,
and different types become alternatives.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from functools import reduce
from typing import Any

from gateway.runtime.json_schema import as_objects
from gateway.types import JsonObject

MAX_KEYS = 32
"""Maximum number of keys in a shape. Larger objects are mappings with any keys."""
MAX_CHOICES = 4
_MAX_ITEMS = 50
"""Maximum number of list items that are examined."""
_MAX_DEPTH = 6
ANY: JsonObject = {}
Shape = JsonObject


def shape_of(value: object, depth: int = _MAX_DEPTH) -> Shape:
    """Return the shape of a JSON value, with `ANY` for parts deeper than *depth*."""
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
    """Return the narrowest shape that includes both shapes."""
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
    """Return one shape for two shapes of the same JSON type; None if the types differ."""
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


MAX_DEPTH = 64
MAX_VALUES = 100_000
MAX_CHARS = 4 * 1024 * 1024
_MAX_BITS = 4096
_PLAIN_TYPES = (str, bool, int, float)
_TEXT_TYPES = (datetime, date, time, Decimal)


class ValueRefusedError(ValueError):
    """The value is not JSON, is too large, or is nested too deeply."""


class _Budget:
    def __init__(self) -> None:
        self.values, self.chars = MAX_VALUES, MAX_CHARS

    def take(self, chars: int = 0) -> None:
        self.values -= 1
        self.chars -= chars
        if self.values < 0 or self.chars < 0:
            raise ValueRefusedError(
                f"the value is too large: at most {MAX_VALUES} parts and {MAX_CHARS} characters"
            )


def to_json(value: object) -> object:
    """Convert *value* to JSON: tuples and sets become lists, dates and decimals become texts.

    Only exact built-in types are converted, so no code of other classes runs.

    Raises:
        ValueRefusedError: If the value has another type, is infinite, too large or too deep.
    """
    return _convert(value, MAX_DEPTH, _Budget())


def _convert(value: object, depth: int, budget: _Budget) -> object:
    kind = type(value)
    if value is None or kind in _PLAIN_TYPES:
        return _convert_plain(value, budget)
    if kind in _TEXT_TYPES:
        budget.take()
        return str(value)
    if depth <= 0:
        raise ValueRefusedError(f"the value is nested deeper than {MAX_DEPTH} levels")
    budget.take()
    if isinstance(value, dict) and kind is dict:
        return {_key(key, budget): _convert(item, depth - 1, budget) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_convert(item, depth - 1, budget) for item in value]
    raise ValueRefusedError(f"a value of type {kind.__name__} is not JSON")


def _convert_plain(value: object, budget: _Budget) -> object:
    if isinstance(value, str):
        budget.take(len(value))
    elif isinstance(value, int):
        budget.take(value.bit_length() // 3)
        if value.bit_length() > _MAX_BITS:
            raise ValueRefusedError("an integer is too large")
    elif isinstance(value, float) and not math.isfinite(value):
        raise ValueRefusedError(f"{value} is not JSON")
    return value


def _key(key: object, budget: _Budget) -> str:
    if key is not None and type(key) not in _PLAIN_TYPES:
        raise ValueRefusedError("the keys of an object must be texts")
    return str(_convert_plain(key, budget))
