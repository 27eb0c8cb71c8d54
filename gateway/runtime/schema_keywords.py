"""Keywords, types, names and patterns in JSON Schemas of any dialect. Pure."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Mapping
from typing import Any

_MAX_PATTERN_CHARS = 500
FORMATS = {"date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uuid"}
_NAME = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
_FOREIGN = re.compile(r"\(\?(?!:)|\\[^dDwWsSbBnrtfv\W]|[*+?}]\+|\[\[|&&")
"""Syntax that some dialects of regular expressions lack."""
_NAMES_OF_TYPES = {
    "string": "str text char date datetime uuid url",
    "integer": "int int32 int64 long short uint",
    "number": "float double decimal numeric",
    "boolean": "bool",
    "array": "list tuple set sequence",
    "object": "dict map mapping record struct",
    "null": "none nil nonetype",
    "": "any unknown mixed json",
}
TYPES = {name: kind for kind, names in _NAMES_OF_TYPES.items() for name in (kind, *names.split())}
"""JSON Schema types, keyed by the names that schemas use; "" permits any value."""
BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
LENGTHS = ("minLength", "maxLength")
SIZES = ("minItems", "maxItems")
COUNTS = ("minProperties", "maxProperties")
TYPES_OF_VALUES: Mapping[str, tuple[type, ...]] = {
    **dict.fromkeys(("title", "description", "format", "pattern"), (str,)),
    **dict.fromkeys((*BOUNDS, *LENGTHS, *SIZES, *COUNTS), (int, float)),
    **dict.fromkeys(("properties", "patternProperties"), (dict,)),
    **dict.fromkeys(("enum", "prefixItems", "anyOf", "oneOf", "examples"), (list,)),
    **dict.fromkeys(("additionalProperties", "additionalItems"), (bool, dict)),
    **dict.fromkeys(("nullable", "uniqueItems"), (bool,)),
    "type": (str, list),
    "required": (str, list, bool),
    **dict.fromkeys(("const", "default"), (object,)),
    "items": (dict, bool, list),
}
"""Types of the values of the keywords that a conversion reads, keyed by keyword."""
UNTOLD = {"contains", "dependentRequired", "if", "not", "propertyNames"}
IMPLIED = {
    "object": {"properties", "required", "additionalProperties", "patternProperties"},
    "array": {"items", "prefixItems", "uniqueItems", *SIZES},
    "string": {"pattern", *LENGTHS},
    "number": {*BOUNDS},
}
"""Keywords that imply a missing type, keyed by type."""


def fits(value: object, kind: str) -> bool:
    """Return whether *value* is of the JSON Schema type *kind*."""
    is_float = kind == "number" and type_of(value) == "integer"
    return is_float or type_of(value) == kind


def type_of(value: object) -> str:
    """Return the JSON Schema type of *value*."""
    kinds = {bool: "boolean", str: "string", list: "array", dict: "object", int: "integer"}
    return "null" if value is None else kinds.get(type(value), "number")


def is_portable(pattern: str) -> bool:
    """Return whether all dialects of regular expressions have the syntax of *pattern*."""
    if len(pattern) > _MAX_PATTERN_CHARS or _FOREIGN.search(pattern):
        return False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            re.compile(pattern)
    except (re.error, OverflowError, RecursionError, Warning):
        return False
    return True


def shown_name(name: str, taken: set[str]) -> str:
    """Return *name*, or a similar name that services accept and that is not *taken*."""
    if _NAME.fullmatch(name):
        return name
    base = re.sub(r"[^a-zA-Z0-9_.-]+", "_", name).strip("_.-")[:60] or "value"
    shown, number = base, 1
    while shown in taken:
        number += 1
        shown = f"{base}_{number}"
    return shown


def list_values(values: list[Any]) -> str:
    """Return *values* as a text, each as JSON."""
    return json.dumps(values, ensure_ascii=False)[1:-1]


def items_of(value: object) -> list[Any]:
    """Return *value* if it is a list, else an empty list."""
    return value if isinstance(value, list) else []


def bounds(flat: dict[str, Any]) -> dict[str, Any]:
    """Return the bounds of a number in *flat*."""
    found = {key: flat[key] for key in BOUNDS if type(flat.get(key)) in {int, float}}
    return {key: value for key, value in found.items() if key != "multipleOf" or value > 0}


def counts(flat: dict[str, Any], keys: tuple[str, ...]) -> dict[str, int]:
    """Return the values of *keys* in *flat* that are whole numbers from 0 on."""
    found = {key: flat[key] for key in keys if type(flat.get(key)) in {int, float}}
    return {key: int(value) for key, value in found.items() if value >= 0 and value % 1 == 0}
