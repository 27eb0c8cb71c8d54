"""Parameters of tools in the form that model services accept. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from gateway.runtime.json_schema import as_object
from gateway.runtime.model_schema import NAMES, convert
from gateway.runtime.schema_keywords import BOUNDS, SIZES
from gateway.runtime.text import one_line, visible_json
from gateway.types import JsonObject

_ALL = 1_000_000
_STEPS = (
    (300, _ALL, _ALL),
    (120, _ALL, 100),
    (60, _ALL, 30),
    *((60, depth, 30) for depth in (6, 5, 4, 3, 2, 1)),
    (30, 0, 10),
    (15, 0, 5),
    (0, 0, 5),
)
"""Steps to a shorter schema: maximum length of descriptions, levels of properties below the top,
maximum number of values of an ``enum``."""
_NOTE = "an error of a call shows more"
_STRICT = {"additionalProperties", "anyOf", "description", "enum", "format", "items", "pattern"}
_STRICT |= {"properties", "required", "title", "type", *BOUNDS, *SIZES}
"""JSON Schema keywords that a schema with ``strict`` may contain."""
_MAX_STRICT_LEVELS, _MAX_STRICT_VALUES = 10, 1000
_MAX_STRICT_CHARS = 15_000
"""Maximum length of a strict schema. A schema within it also has less than 5,000 properties."""


def to_parameters(schema: JsonObject, *, max_chars: int = _ALL) -> dict[str, Any]:
    """Convert a tool's input schema to an object schema that model services accept.

    Calls are checked against the original schema, so `restore_names` must come before a call.
    *max_chars* is the maximum length of the result as JSON; see `shorten`.
    """
    return shorten(visible_json(_without_names(convert(schema).tree)), max_chars)


def restore_names(schema: JsonObject, arguments: JsonObject) -> JsonObject:
    """Return *arguments*, written for `to_parameters`, with the names that *schema* has."""
    restored: JsonObject = _restore(arguments, [convert(schema).tree])
    return restored


def _restore(value: Any, schemas: list[dict[str, Any]]) -> Any:
    for schema in schemas:
        schemas.extend(schema.get("anyOf", ()))
    if isinstance(value, list):
        items = [schema["items"] for schema in schemas if "items" in schema]
        return [_restore(item, [*items]) for item in value]
    if not isinstance(value, Mapping):
        return value
    restored = {}
    for key, item in value.items():
        owners = [schema for schema in schemas if key in schema.get("properties", ())]
        extra = [{**as_object(schema.get("additionalProperties"))} for schema in schemas]
        inner = [schema["properties"][key] for schema in owners] or extra
        name = next((owner[NAMES][key] for owner in owners if key in owner.get(NAMES, ())), key)
        restored[key if name in value else name] = _restore(item, inner)
    return restored


def parameter_names(schema: JsonObject) -> set[str]:
    """Return the names of parameters that a call may use: those of *schema*, and changed ones."""
    return {*as_object(schema.get("properties")), *convert(schema).tree["properties"]}


def _without_names(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_names(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {key: _without_names(item) for key, item in value.items() if key != NAMES}


def _size(value: object) -> int:
    return len(json.dumps(value, ensure_ascii=False))


def shorten(whole: dict[str, Any], max_chars: int) -> dict[str, Any]:
    """Return *whole*, a result of `to_parameters`, with at most *max_chars* characters of JSON.

    Descriptions are cut first. Then deep parts become a list of their names, and at last some
    parameters are left out, optional ones first.
    """
    if _size(whole) <= max_chars:
        return whole
    shortened = whole
    for chars, levels, values in _STEPS:
        shortened = _cut(whole, chars, levels, values)
        if levels < _ALL:
            shortened["description"] = "; ".join([*_texts_of(shortened, chars), _NOTE])
        if _size(shortened) <= max_chars:
            return shortened
    properties, required = shortened["properties"], shortened.get("required", [])
    note = f"{len(properties)} parameters, of which some are left out; {_NOTE}"
    head = {"type": "object", "description": note}
    remaining, kept = max_chars - _size({**head, "properties": {}, "required": []}), set[str]()
    for name in dict.fromkeys([*required, *properties]):
        remaining -= _size({name: properties[name]}) + (_size(name) + 2) * (name in required)
        if remaining >= 0:
            kept.add(name)
    return {
        **head,
        "properties": {name: properties[name] for name in properties if name in kept},
        "required": [name for name in required if name in kept],
    }


def _texts_of(node: dict[str, Any], chars: int) -> list[str]:
    return [one_line(node["description"], limit=chars)] if chars and "description" in node else []


def _cut(node: dict[str, Any], chars: int, levels: int, values: int) -> dict[str, Any]:
    """Return *node* with shorter descriptions, fewer levels and fewer values."""
    cut = {key: node[key] for key in node if key not in {"default", "description", "title"}}
    texts, lists = _texts_of(node, chars), dict[str, Iterable[object]]()
    if len(cut.get("enum", ())) > values:
        lists["one of"] = cut.pop("enum")
    if levels < 0 and "properties" in cut:
        lists["fields"] = cut["properties"]
        cut = {"type": cut["type"]}
    if not chars:
        cut.pop("anyOf", None)
    inner = {key: _cut_inner(key, value, chars, levels, values) for key, value in cut.items()}
    for title, listed in lists.items() if chars else ():
        texts.append(f"{title} {one_line(', '.join(map(str, listed)), limit=2 * chars)}")
    return {**inner, **({"description": "; ".join(texts)} if texts else {})}


def _cut_inner(key: str, value: Any, chars: int, levels: int, values: int) -> Any:
    if key == "properties":
        return {name: _cut(value[name], chars, levels - 1, values) for name in value}
    if key == "anyOf":
        return [_cut(branch, chars, levels, values) for branch in value]
    return _cut(value, chars, levels, values) if isinstance(value, dict) else value


def fits_strict(schema: dict[str, Any]) -> bool:
    """Return whether *schema*, a result of `to_parameters`, satisfies OpenAI's rules for strict.

    At any depth, each schema has a type, and objects forbid additional properties and require all
    of their own. Levels, values and the length are limited.
    """
    levels, parts = zip(*_schemas_in(schema), strict=True)
    return (
        all(map(_is_strict, parts))
        and max(levels) <= _MAX_STRICT_LEVELS
        and sum(len(part.get("enum", ())) for part in parts) <= _MAX_STRICT_VALUES
        and _size(schema) <= _MAX_STRICT_CHARS
    )


def _schemas_in(schema: dict[str, Any], level: int = 1) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield level and schema of *schema* and of all schemas inside it."""
    yield level, schema
    inner = [*as_object(schema.get("properties")).values(), *schema.get("anyOf", ())]
    for part in [*inner, schema.get("items")]:
        if isinstance(part, dict):
            yield from _schemas_in(part, level + 1)


def _is_strict(part: dict[str, Any]) -> bool:
    if not (part.keys() <= _STRICT and part.keys() & {"type", "anyOf", "enum"}):
        return False
    if "properties" not in part and "object" not in part.get("type", ()):
        return True
    is_closed = part.get("additionalProperties") is False
    return is_closed and {*part.get("properties", ())} == {*part.get("required", ())}
