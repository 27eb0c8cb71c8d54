"""Definitions of tools, resources and prompts, checked and brought into a form to be trusted.

* A definition that cannot be used has a fault that says why; the others are not touched.
* Names and URIs stay as they are, since they go back to the server; every text is cleaned.
* A definition is pinned by all that a model or a person reads of it. What describes the state of a
  resource (``size``, ``lastModified``) is no part of that.
* The input schema of a prompt or a template names the values that it must be filled with.
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
    count_in_place,
    map_schemas,
    objects_in,
    read_empty_maps,
)
from gateway.runtime.naming import MAX_NAME_CHARS, MAX_TITLE_CHARS, MAX_URI_CHARS
from gateway.runtime.text import clean, is_visible, visible, visible_json
from gateway.types import Hints, JsonObject, Kind, ToolDefinition

MAX_DEPTH = 64
"""How deep a definition's objects and lists may lie in each other; real ones lie below 20."""
MAX_SCHEMAS_OF_A_VALUE = 5000
"""How many schemas may apply to one value; more than that is no schema but an attack on whoever
checks by it. Real ones stay below some hundreds."""
_SINGLE = frozenset({"additionalProperties", "contains", "items", "not", "propertyNames"})
"""Keywords of one schema; of an empty one as of a missing one."""
_LONG_CHARS = 1 << 20
_VARIABLE = re.compile(r"[A-Za-z0-9_.]+")
_PINNED_OF_TOOL = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")
_PINNED = (
    *("uri", "uriTemplate", "name", "title", "description", "mimeType", "arguments"),
    "annotations",
)
_DETAILS: Mapping[str, type] = {
    "mimeType": str,
    "size": int,
    "annotations": dict,
    "icons": list,
    "_meta": dict,
}


class ListMethod(NamedTuple):
    """One kind of list that a server may offer."""

    method: str
    key: str
    """The key under which a page holds its definitions."""
    kind: Kind
    id_key: str
    """The key of what goes back to the server: a name or a URI."""
    pinned: tuple[str, ...] = _PINNED
    """The keys of a definition that its digest covers."""


TOOLS = ListMethod("tools/list", "tools", "tool", "name", _PINNED_OF_TOOL)
RESOURCES = ListMethod("resources/list", "resources", "resource", "uri")
TEMPLATES = ListMethod("resources/templates/list", "resourceTemplates", "resource", "uriTemplate")
PROMPTS = ListMethod("prompts/list", "prompts", "prompt", "name")
SKILLS = ListMethod("skills/list", "skills", "skill", "uri", ("uri", FRONT, FILES))
LISTS = {each.method: each for each in (TOOLS, RESOURCES, TEMPLATES, PROMPTS, SKILLS)}
"""By method."""


def read_php(item: object, method: ListMethod) -> object:
    """Return *item*; a tool with ``{}`` where PHP has written ``[]`` for an empty map."""
    if method is not TOOLS or is_too_deep(item, MAX_DEPTH):
        return item
    return read_empty_maps(item, MAPS | _SINGLE)


def find_fault(item: object, method: ListMethod) -> str:
    """Return why the definition *item* cannot be used; empty if it can."""
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
    """Return why the name or URI of *item* cannot be used; empty if it can."""
    name, key = item_name(item, method), method.id_key
    limit = MAX_NAME_CHARS if key == "name" else MAX_URI_CHARS
    if not name.strip():
        return f"it has no {key}"
    if len(name) > limit:
        return f"its {key} is longer than {limit} characters"
    return "" if is_visible(name) else f"its {key} holds invisible characters"


def item_name(item: object, method: ListMethod) -> str:
    """Return the name or URI of *item*; empty if it has none."""
    return as_text(item.get(method.id_key)) if isinstance(item, dict) else ""


def measure_size(item: JsonObject, method: ListMethod) -> int:
    """Return the length of *item* as JSON; of a tool, that of its schemas alone."""
    if method is not TOOLS:
        return len(json.dumps(item, default=str))
    schemas = (item.get(key) for key in ("inputSchema", "outputSchema"))
    return sum(len(json.dumps(schema, default=str)) for schema in schemas if schema)


def find_inner_fault(item: JsonObject) -> str:
    """Return why the schemas of the tool *item* cannot be used, if only a walk shows it; or ""."""
    values = (item.get(key) for key in ("inputSchema", "outputSchema"))
    schemas = [value for value in values if isinstance(value, dict)]
    names = "\n".join({name for schema in schemas for part in objects_in(schema) for name in part})
    if visible(names) != names:
        return "a name in its schemas holds invisible characters"
    try:
        json.dumps(schemas, allow_nan=False)
    except ValueError:
        return "a number in its schemas is too large for JSON, or not a number"
    most = max(map(count_in_place, schemas))
    if most == math.inf:
        return "a schema of it refers to itself without end"
    if most > MAX_SCHEMAS_OF_A_VALUE:
        return f"a schema of it applies more than {MAX_SCHEMAS_OF_A_VALUE} schemas to one value"
    return ""


def digest_definition(item: JsonObject, method: ListMethod) -> str:
    """Return the SHA-256 (hex) of a definition as it came; the order of keys does not matter."""
    pinned = {key: _digest_long(item.get(key)) for key in method.pinned}
    if method is not TOOLS:
        hints = as_object(item.get("annotations"))
        pinned["annotations"] = {key: hints[key] for key in hints if key != "lastModified"}
    return hashlib.sha256(json.dumps(pinned, sort_keys=True, default=str).encode()).hexdigest()


def _digest_long(value: object) -> object:
    """Return *value*; of a very long text its SHA-256: as JSON it may take six times the memory."""
    if isinstance(value, str) and len(value) > _LONG_CHARS:
        return hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()
    return value


def parse_definition(item: JsonObject, method: ListMethod, *, max_chars: int) -> ToolDefinition:
    """Return the definition that *item*, which has no fault, stands for.

    Args:
        item: As the server sent it.
        method: The list it stood in.
        max_chars: The longest description.
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
    """Return what a host's source lists with the texts that a server's would have."""
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


_HINTS = "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"


def _read_hints(annotations: JsonObject) -> Hints:
    read_only, destructive, idempotent, open_world = (
        hint if isinstance(hint, bool) else None for hint in map(annotations.get, _HINTS)
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
    """Whether objects and lists lie in each other more than *limit* levels deep in *value*."""
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
    if not isinstance(schema, dict) or schema.get("type") != "object":
        return "its input schema is not of type object"
    properties, required = (schema.get(key) for key in ("properties", "required"))
    properties = {} if properties is None else properties
    if not isinstance(properties, dict) or not all(
        isinstance(value, dict | bool) for value in properties.values()
    ):
        return "the properties of its input schema are not schemas"
    required = [] if required is None else required
    if not isinstance(required, list) or not all(isinstance(name, str) for name in required):
        return "the required names of its input schema are not a list of names"
    return "" if isinstance(schema.get("$schema", ""), str) else "its $schema is not an address"


def _template_schema(uri: str) -> JsonObject:
    """Return the variables of a URI template (RFC 6570) as a schema."""
    expressions = (part.partition("}")[0] for part in uri.split("{")[1:])
    names = (
        _VARIABLE.match(name.lstrip("+#./;?&"))
        for expression in expressions
        for name in expression.split(",")
    )
    properties = {name.group(): {"type": "string"} for name in names if name}
    return {"type": "object", "properties": properties}


def _prompt_schema(prompt: JsonObject, max_chars: int) -> JsonObject:
    """Return the arguments of a prompt as a schema."""
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
    details = {key: item[key] for key in _DETAILS if isinstance(item.get(key), _DETAILS[key])}
    details = visible_json(details)
    if "mimeType" in details:
        details["mimeType"] = clean(as_text(item["mimeType"]), limit=MAX_NAME_CHARS)
    return {"template": True, **details} if method is TEMPLATES else details
