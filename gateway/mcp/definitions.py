"""Definitions of tools, resources and prompts: checks, digests and parsing.

* Names and URIs stay unchanged because they are sent back to the server. All texts are cleaned.
* The digest of a definition covers everything that a model or a person reads of it, but not the
  state of a resource (``size``, ``lastModified``).
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from gateway.mcp.skills import FILES, FRONT, find_skill_fault, parse_skill
from gateway.runtime.json_schema import (
    MAPS,
    as_object,
    as_objects,
    as_text,
    as_texts,
    count_in_place,
    map_schemas,
    objects_in,
    read_empty_maps,
)
from gateway.runtime.naming import MAX_NAME_CHARS, MAX_TITLE_CHARS, MAX_URI_CHARS
from gateway.runtime.schema_keywords import TYPES
from gateway.runtime.text import clean, is_visible, visible, visible_json
from gateway.types import Hints, JsonObject, Kind, ToolDefinition

MAX_DEPTH = 64
"""Maximum nesting depth of a definition; real definitions are below 20."""
MAX_SCHEMAS_OF_A_VALUE = 5000
"""Maximum number of schemas that apply to one value of an argument, because more make validation
slow. Real schemas have at most a few hundred."""
_SINGLE_SCHEMA_KEYWORDS = frozenset(
    {"additionalProperties", "contains", "items", "not", "propertyNames"}
)
"""JSON Schema keywords whose value is one schema. An empty schema means the same as a missing
one."""
_MIN_DIGEST_CHARS = 1 << 20
_VARIABLE = re.compile(r"[A-Za-z0-9_.]+")
_TOOL_DIGEST_KEYS = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")
_DIGEST_KEYS = (
    *("uri", "uriTemplate", "name", "title", "description", "mimeType", "arguments"),
    "annotations",
)
_DETAIL_TYPES: Mapping[str, type] = {
    "mimeType": str,
    "size": int,
    "annotations": dict,
    "icons": list,
    "_meta": dict,
}


class ListMethod(NamedTuple):
    """One list method of MCP (such as ``tools/list``)."""

    method: str
    key: str
    """Name of the field with the definitions in a result page, such as ``tools``."""
    kind: Kind
    id_key: str
    """Key of a definition's name or URI, by which requests refer to it."""
    pinned: tuple[str, ...] = _DIGEST_KEYS
    """Keys of a definition that are part of its digest."""


TOOLS = ListMethod("tools/list", "tools", "tool", "name", _TOOL_DIGEST_KEYS)
RESOURCES = ListMethod("resources/list", "resources", "resource", "uri")
TEMPLATES = ListMethod("resources/templates/list", "resourceTemplates", "resource", "uriTemplate")
PROMPTS = ListMethod("prompts/list", "prompts", "prompt", "name")
SKILLS = ListMethod("skills/list", "skills", "skill", "uri", ("uri", FRONT, FILES))
LISTS = {each.method: each for each in (TOOLS, RESOURCES, TEMPLATES, PROMPTS, SKILLS)}
"""List methods, keyed by the name of the MCP method."""


def repair(item: object, method: ListMethod) -> object:
    """Return the tool *item* with a usable input schema, if servers mean one.

    PHP writes empty maps as ``[]``, other languages write missing values as null, and schemas
    without a type mean objects.
    """
    if method is not TOOLS or is_too_deep(item, MAX_DEPTH) or not isinstance(item, dict):
        return item
    repaired: dict[str, object] = read_empty_maps(item, MAPS | _SINGLE_SCHEMA_KEYWORDS)
    schema = repaired.get("inputSchema")
    if schema is None or isinstance(schema, dict):
        repaired["inputSchema"] = _repair_schema(schema or {})
    return repaired


def find_repairs(item: JsonObject) -> list[str]:
    """Return the keywords of the input schema of the tool *item* that `repair` changes.

    Empty maps of PHP do not count.
    """
    schema = read_empty_maps(item.get("inputSchema"), MAPS | _SINGLE_SCHEMA_KEYWORDS)
    sent, repaired = as_object(schema), _repair_schema(as_object(schema))
    return [key for key in {**sent, **repaired} if sent.get(key) != repaired.get(key)]


def _repair_schema(schema: JsonObject) -> dict[str, object]:
    types = schema.get("type") or "object"
    named = [types] if isinstance(types, str) else types
    required = schema.get("required")
    is_object = any(TYPES.get(str(name).lower()) == "object" for name in as_texts(named))
    properties = {
        name: value if isinstance(value, dict | bool) else {}
        for name, value in as_object(schema.get("properties")).items()
    }
    repaired = {
        **schema,
        "type": "object" if is_object else types,
        "properties": properties,
        "required": as_texts([required] if isinstance(required, str) else required),
    }
    return {
        key: value
        for key, value in repaired.items()
        if value is not None and (key in schema or key == "type")
        if key != "$schema" or isinstance(value, str)
    }


def find_fault(item: object, method: ListMethod) -> str:
    """Return the reason why *item* is unusable, or ""."""
    if not isinstance(item, dict):
        return "it is not an object"
    if is_too_deep(item, MAX_DEPTH):
        return f"it is nested more than {MAX_DEPTH} levels deep"
    faults = {
        TOOLS: lambda: _find_schema_fault(item.get("inputSchema")),
        SKILLS: lambda: find_skill_fault(item, item_name(item, method)),
    }
    return find_name_fault(item, method) or (faults[method]() if method in faults else "")


def find_name_fault(item: JsonObject, method: ListMethod) -> str:
    """Return the problem with the name or URI of *item*, or ""."""
    name, key = item_name(item, method), method.id_key
    limit = MAX_NAME_CHARS if key == "name" else MAX_URI_CHARS
    if not name.strip():
        return f"it has no {key}"
    if len(name) > limit:
        return f"its {key} is longer than {limit} characters"
    return "" if is_visible(name) else f"its {key} contains invisible characters"


def item_name(item: object, method: ListMethod) -> str:
    """Return the name or URI of *item*; empty if missing."""
    return as_text(item.get(method.id_key)) if isinstance(item, dict) else ""


def measure_size(item: JsonObject, method: ListMethod) -> int:
    """Return the length of the JSON of *item*; for a tool, of its schemas."""
    if method is not TOOLS:
        return len(json.dumps(item, default=str))
    schemas = (item.get(key) for key in ("inputSchema", "outputSchema"))
    return sum(len(json.dumps(schema, default=str)) for schema in schemas if schema)


def find_inner_fault(item: JsonObject) -> str:
    """Return the problem inside the schemas of the tool *item*, or ""."""
    values = (item.get(key) for key in ("inputSchema", "outputSchema"))
    schemas = [value for value in values if isinstance(value, dict)]
    names = "\n".join({name for schema in schemas for part in objects_in(schema) for name in part})
    if visible(names) != names:
        return "a name in its schemas contains invisible characters"
    try:
        json.dumps(schemas, allow_nan=False)
    except ValueError:
        return "a number in its schemas is too large for JSON, or not a number"
    most = max(map(count_in_place, schemas))
    if most == math.inf:
        return "one of its schemas refers to itself endlessly"
    if most > MAX_SCHEMAS_OF_A_VALUE:
        return f"one of its schemas applies more than {MAX_SCHEMAS_OF_A_VALUE} schemas to one value"
    return ""


def digest_definition(item: JsonObject, method: ListMethod) -> str:
    """Return the SHA-256 (hex) of a definition as sent. The order of keys has no effect."""
    pinned = {key: _shorten_text(item.get(key)) for key in method.pinned}
    if method is not TOOLS:
        hints = as_object(item.get("annotations"))
        pinned["annotations"] = {key: hints[key] for key in hints if key != "lastModified"}
    return hashlib.sha256(json.dumps(pinned, sort_keys=True, default=str).encode()).hexdigest()


def _shorten_text(value: object) -> object:
    """Return the SHA-256 of a very long text, whose JSON would take much memory; else *value*."""
    if isinstance(value, str) and len(value) > _MIN_DIGEST_CHARS:
        return hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()
    return value


def parse_definition(item: JsonObject, method: ListMethod, *, max_chars: int) -> ToolDefinition:
    """Parse the definition *item*, which has passed all checks.

    *max_chars* is the maximum length of the description.
    """
    if method is SKILLS:
        return parse_skill(item, item_name(item, method), max_chars=max_chars)
    is_tool = method is TOOLS
    annotations = as_object(item.get("annotations"))
    title = as_text(item.get("title"))
    if method is not PROMPTS:
        title = title or as_text(annotations.get("title") if is_tool else item.get("name"))
    output = item.get("outputSchema") if is_tool else None
    return ToolDefinition(
        kind=method.kind,
        name=item_name(item, method),
        title=clean(title, limit=MAX_TITLE_CHARS),
        description=clean(as_text(item.get("description")), limit=max_chars),
        input_schema=_read_schema(item, method, max_chars),
        output_schema=_clean_schema(output, max_chars) if isinstance(output, dict) else None,
        hints=_read_hints(annotations) if is_tool else Hints(),
        details={} if is_tool else _read_details(item, method),
    )


def clean_definition(definition: ToolDefinition, max_chars: int) -> ToolDefinition:
    """Clean the texts of a definition of the host's own source."""
    output = definition.output_schema
    return replace(
        definition,
        title=clean(definition.title, limit=MAX_TITLE_CHARS),
        description=clean(definition.description, limit=max_chars),
        input_schema=_clean_schema(definition.input_schema, max_chars),
        output_schema=None if output is None else _clean_schema(output, max_chars),
    )


def _read_schema(item: JsonObject, method: ListMethod, max_chars: int) -> JsonObject:
    if method is TOOLS:
        return _clean_schema(as_object(item.get("inputSchema")), max_chars)
    if method is TEMPLATES:
        return _template_schema(item_name(item, method))
    return _prompt_schema(item, max_chars) if method is PROMPTS else {}


_HINT_NAMES = "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"


def _read_hints(annotations: JsonObject) -> Hints:
    read_only, destructive, idempotent, open_world = (
        hint if isinstance(hint, bool) else None for hint in map(annotations.get, _HINT_NAMES)
    )
    return Hints(
        read_only=read_only, destructive=destructive, idempotent=idempotent, open_world=open_world
    )


def _clean_schema(schema: JsonObject, max_chars: int) -> JsonObject:
    return visible_json(map_schemas(schema, lambda node: _clean_texts(node, max_chars)))


def _clean_texts(node: JsonObject, max_chars: int) -> JsonObject:
    limits = {"title": MAX_TITLE_CHARS, "description": max_chars}
    return {
        key: clean(value, limit=limits[key]) if key in limits and isinstance(value, str) else value
        for key, value in node.items()
    }


def is_too_deep(value: object, limit: int) -> bool:
    """Return whether *value* has more than *limit* levels."""
    level = [value]
    for _ in range(limit + 1):
        level = [
            child
            for parent in level
            if isinstance(parent, dict | list)
            for child in (parent.values() if isinstance(parent, dict) else parent)
        ]
        if not level:
            return False
    return True


def _find_schema_fault(schema: object) -> str:
    is_object = isinstance(schema, dict) and schema.get("type") == "object"
    return "" if is_object else "its input schema is not of type object"


def _template_schema(uri: str) -> JsonObject:
    """Return a JSON Schema of the variables in a URI template (RFC 6570)."""
    expressions = (part.partition("}")[0] for part in uri.split("{")[1:])
    names = (
        _VARIABLE.match(name.lstrip("+#./;?&"))
        for expression in expressions
        for name in expression.split(",")
    )
    properties = {name.group(): {"type": "string"} for name in names if name}
    return {"type": "object", "properties": properties}


def _prompt_schema(prompt: JsonObject, max_chars: int) -> JsonObject:
    properties: dict[str, JsonObject] = {}
    required: list[str] = []
    for argument in as_objects(prompt.get("arguments")):
        name = as_text(argument.get("name"))
        if not name or not is_visible(name) or name in properties:
            continue
        texts = {key: as_text(argument.get(key)) for key in ("title", "description")}
        texts = {key: text for key, text in texts.items() if text}
        properties[name] = {"type": "string", **_clean_texts(texts, max_chars)}
        if argument.get("required") is True:
            required.append(name)
    return {"type": "object", "properties": properties, "required": required}


def _read_details(item: JsonObject, method: ListMethod) -> JsonObject:
    details = {
        key: item[key] for key in _DETAIL_TYPES if isinstance(item.get(key), _DETAIL_TYPES[key])
    }
    details = visible_json(details)
    if "mimeType" in details:
        details["mimeType"] = clean(as_text(item["mimeType"]), limit=MAX_NAME_CHARS)
    return {"template": True, **details} if method is TEMPLATES else details
