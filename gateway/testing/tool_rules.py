"""Rules of model services for tools. A service refuses a request with a tool that breaks one.

The rules are from the documentation of OpenAI, Anthropic and Gemini, and from public reports. They
share no code with the conversion of schemas in the gateway, so tests can check it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from jsonschema import Draft202012Validator

_FUNCTION_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_PROPERTY_NAME = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
_MAX_DESCRIPTION_CHARS = 1024
_TOP_WORDS = ("allOf", "anyOf", "enum", "not", "oneOf")
_MAPS = ("$defs", "definitions", "dependentSchemas", "patternProperties", "properties")
_SCHEMAS = ("additionalProperties", "contains", "else", "if", "items", "not", "then")
_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
_FOREIGN = re.compile(r"\(\?[^:]|\\[pPAZzGKQEXhRUuxkNg1-9]")
"""Syntax of regular expressions that not every service reads."""
_STRICT_WORDS = frozenset(
    {
        *("$defs", "$ref", "additionalProperties", "anyOf", "const", "definitions", "description"),
        *("enum", "exclusiveMaximum", "exclusiveMinimum", "format", "items", "maxItems"),
        *("maximum", "minItems", "minimum", "multipleOf", "pattern", "properties", "required"),
        *("title", "type"),
    }
)
_STRICT_FORMATS = frozenset(
    ("date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uuid")
)
_STRICT_LEVELS = 10
_STRICT_SIZES: Mapping[str, int] = {"properties": 5000, "enum": 1000}


def find_tool_faults(function: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the rules that *function*, a function tool, breaks at OpenAI, Anthropic or Gemini.

    Each is a message like those of the services; empty if all accept the tool.
    """
    return _find_faults(json.dumps(function))


@lru_cache(maxsize=4096)
def _find_faults(text: str) -> tuple[str, ...]:
    function = json.loads(text)
    name, parameters = function.get("name", ""), function.get("parameters")
    messages = []
    if not _FUNCTION_NAME.fullmatch(str(name)):
        messages.append(f"a function's name must match {_FUNCTION_NAME.pattern}, not {name!r}")
    if len(function.get("description") or "") > _MAX_DESCRIPTION_CHARS:
        messages.append(f"{name!r}: description is longer than {_MAX_DESCRIPTION_CHARS}")
    faults = [*_schema_faults(parameters)] if parameters else []
    if not faults and parameters and function.get("strict"):
        faults = [*_strict_faults(parameters)]
    return (*messages, *(f"Invalid schema for function {name!r}: {fault}" for fault in faults))


def _schema_faults(parameters: Any) -> Iterator[str]:
    if not isinstance(parameters, dict) or parameters.get("type") != "object":
        yield "schema must be a JSON Schema of 'type: \"object\"'"
        return
    if not isinstance(parameters.get("properties"), dict):
        yield "object schema missing properties"
    yield from (f"{word!r} at the top level" for word in _TOP_WORDS if word in parameters)
    for error in Draft202012Validator(Draft202012Validator.META_SCHEMA).iter_errors(parameters):
        yield f"JSON schema is invalid at {error.json_path}: {error.message[:200]}"
        return
    for path, part in _parts(parameters):
        yield from (f"In context=({path!r}), {fault}" for fault in _part_faults(part, parameters))


def _parts(schema: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yield path and content of *schema* and of all schemas inside it."""
    if not isinstance(schema, dict):
        return
    yield path, schema
    for word in (*_MAPS, *_SCHEMAS, *_LISTS):
        value, inner = schema.get(word), dict[Any, Any]()
        if isinstance(value, dict):
            inner = value if word in _MAPS else {"": value}
        elif isinstance(value, list) and word in _LISTS:
            inner = dict(enumerate(value))
        for key, child in inner.items():
            yield from _parts(child, (*path, word, key))


def _part_faults(part: Mapping[str, Any], root: Any) -> Iterator[str]:
    if "array" in part.get("type", ()) and "items" not in part:
        yield "array schema missing items"
    properties = part.get("properties", {})
    for name in properties:
        if not _PROPERTY_NAME.fullmatch(name):
            yield f"Property keys should match pattern '{_PROPERTY_NAME.pattern}', not {name!r}"
    missing = (name for name in part.get("required", ()) if name not in properties)
    yield from (f"required: property {name!r} is not defined" for name in missing)
    if not _is_regex(part.get("pattern", "")):
        yield f"{part['pattern']!r} is not a 'regex'"
    if not _leads_somewhere(part.get("$ref", "#"), root):
        yield f"reference {part['$ref']!r} can't be resolved"
    if not all(map(_is_value, part.get("enum", ["any"]) or [""])):
        yield "enum: only texts that are not empty, and numbers, are allowed"


def _is_value(value: object) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool) and value != ""


def _is_regex(pattern: str) -> bool:
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError):
        return False
    return not _FOREIGN.search(pattern.replace("\\\\", ""))


def _leads_somewhere(reference: str, root: Any) -> bool:
    for step in reference.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if not isinstance(root, dict) or key not in root:
            return False
        root = root[key]
    return reference.startswith("#")


def _strict_faults(parameters: Mapping[str, Any]) -> Iterator[str]:
    parts = [*_parts(parameters)]
    for path, part in parts:
        yield from (f"In context=({path!r}), {fault}" for fault in _strict_part_faults(part))
    if max(len(path) // 2 for path, _ in parts) >= _STRICT_LEVELS:
        yield f"more than {_STRICT_LEVELS} levels of nesting"
    for word, limit in _STRICT_SIZES.items():
        if sum(len(part.get(word, ())) for _, part in parts) > limit:
            yield f"more than {limit} values of {word!r}"


def _strict_part_faults(part: Mapping[str, Any]) -> Iterator[str]:
    yield from (f"{word!r} is not permitted" for word in part if word not in _STRICT_WORDS)
    if part.get("format", "date") not in _STRICT_FORMATS:
        yield f"{part['format']!r} is not a valid format"
    if part.keys().isdisjoint({"type", "$ref", "anyOf", "enum", "const"}):
        yield "schema must have a 'type' key"
    if "properties" in part or "object" in part.get("type", ()):
        if part.get("additionalProperties") is not False:
            yield "'additionalProperties' is required to be supplied and to be false"
        if {*part.get("properties", ())} != {*part.get("required", ())}:
            yield "'required' is required to be an array including every key in properties"
