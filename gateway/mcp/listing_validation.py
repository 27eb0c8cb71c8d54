"""Definitions as a server sends them, in JSON, checked and brought into a form to be trusted.

* A definition that cannot be used has a fault that says why; the others are not touched.
* Names and URIs stay as they are, since they go back to the server; every text is cleaned.
* A definition is pinned by all that a model or a person reads of it. What describes the state of a
  resource (``size``, ``lastModified``) is no part of that.
* The input schema of a prompt or a template names the values that it must be filled with.

Nothing here knows the MCP SDK.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from gateway.mcp.naming import MAX_NAME_CHARS, MAX_TITLE_CHARS, MAX_URI_CHARS
from gateway.runtime.json_schema import map_schemas
from gateway.runtime.text import clean
from gateway.types import Hints, JsonObject, Kind, ToolDefinition

MAX_DEPTH = 64
"""How deep a definition's objects and lists may lie in each other; real ones lie below 20."""
_TOO_DEEP: JsonObject = {"type": "nested too deeply"}
_VARIABLE = re.compile(r"[A-Za-z0-9_.]+")
_DETAILS: Mapping[str, type] = {
    "mimeType": str,
    "size": int,
    "annotations": dict,
    "icons": list,
    "_meta": dict,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ListMethod:
    """One kind of list that a server may offer."""

    method: str
    key: str
    """The key under which a page holds its definitions."""
    kind: Kind
    id_key: str
    """The key of what goes back to the server: a name or a URI."""
    max_id_chars: int
    pinned: tuple[str, ...] = (
        *("uri", "uriTemplate", "name", "title", "description", "mimeType", "arguments"),
        "annotations",
    )
    """The keys that the digest of a definition is made of."""


TOOLS = ListMethod(
    method="tools/list",
    key="tools",
    kind="tool",
    id_key="name",
    max_id_chars=MAX_NAME_CHARS,
    pinned=("name", "title", "description", "inputSchema", "outputSchema", "annotations"),
)
RESOURCES = ListMethod(
    method="resources/list",
    key="resources",
    kind="resource",
    id_key="uri",
    max_id_chars=MAX_URI_CHARS,
)
TEMPLATES = ListMethod(
    method="resources/templates/list",
    key="resourceTemplates",
    kind="resource",
    id_key="uriTemplate",
    max_id_chars=MAX_URI_CHARS,
)
PROMPTS = ListMethod(
    method="prompts/list", key="prompts", kind="prompt", id_key="name", max_id_chars=MAX_NAME_CHARS
)


def find_fault(item: object, method: ListMethod) -> str:
    """Return why the definition *item* cannot be used; empty if it can."""
    if not isinstance(item, dict):
        return "it is not an object"
    if method is TOOLS and (item.get("inputSchema") == _TOO_DEEP or _is_too_deep(item)):
        return f"it is nested more than {MAX_DEPTH} levels deep"
    name = item_name(item, method)
    if not name.strip():
        return f"it has no {method.id_key}"
    if len(name) > method.max_id_chars:
        return f"its {method.id_key} is longer than {method.max_id_chars} characters"
    if not name.isprintable():
        return f"its {method.id_key} holds invisible characters"
    return _find_schema_fault(item.get("inputSchema")) if method is TOOLS else ""


def drop_deep_nesting(tool: object) -> object:
    """Return *tool*; if it is nested too deeply for any walk, only a marker with its name."""
    if not isinstance(tool, dict) or not _is_too_deep(tool):
        return tool
    return {"name": item_name(tool, TOOLS), "inputSchema": _TOO_DEEP}


def item_name(item: object, method: ListMethod) -> str:
    """Return the name or URI of *item*; empty if it has none."""
    return _text(item.get(method.id_key)) if isinstance(item, dict) else ""


def measure_size(item: JsonObject, method: ListMethod) -> int:
    """Return the length of *item* as JSON; of a tool, that of its schemas alone."""
    if method is not TOOLS:
        return len(json.dumps(item, default=str))
    schemas = (item.get(key) for key in ("inputSchema", "outputSchema"))
    return sum(len(json.dumps(schema)) for schema in schemas if schema)


def digest_definition(item: JsonObject, method: ListMethod) -> str:
    """Return the SHA-256 (hex) of a definition as it came; the order of keys does not matter."""
    pinned = {key: item.get(key) for key in method.pinned}
    if method is not TOOLS:
        hints = _object(item.get("annotations"))
        pinned["annotations"] = {key: hints[key] for key in hints if key != "lastModified"}
    return hashlib.sha256(json.dumps(pinned, sort_keys=True, default=str).encode()).hexdigest()


def parse_definition(item: JsonObject, method: ListMethod, *, max_chars: int) -> ToolDefinition:
    """Return the definition that *item*, which has no fault, stands for.

    Args:
        item: As the server sent it.
        method: The list it stood in.
        max_chars: The longest description.
    """
    description = clean(_text(item.get("description")), limit=max_chars)
    if method is TOOLS:
        return _parse_tool(item, description, max_chars)
    title = _text(item.get("title")) or (_text(item.get("name")) if method != PROMPTS else "")
    schema: JsonObject = {}
    if method is TEMPLATES:
        schema = _template_schema(item_name(item, method))
    elif method is PROMPTS:
        schema = _prompt_schema(item, max_chars)
    return ToolDefinition(
        kind=method.kind,
        name=item_name(item, method),
        title=clean(title, limit=MAX_TITLE_CHARS),
        description=description,
        input_schema=schema,
        details=dict(_read_details(item, method)),
    )


def _parse_tool(tool: JsonObject, description: str, max_chars: int) -> ToolDefinition:
    hints = _object(tool.get("annotations"))
    title = _text(tool.get("title")) or _text(hints.get("title"))
    output = tool.get("outputSchema")
    return ToolDefinition(
        name=item_name(tool, TOOLS),
        title=clean(title, limit=MAX_TITLE_CHARS),
        description=description,
        input_schema=_clean_schema(_object(tool.get("inputSchema")), max_chars),
        output_schema=_clean_schema(output, max_chars) if isinstance(output, dict) else None,
        hints=Hints(
            read_only=_flag(hints.get("readOnlyHint")),
            destructive=_flag(hints.get("destructiveHint")),
            idempotent=_flag(hints.get("idempotentHint")),
        ),
    )


def _clean_schema(schema: JsonObject, max_chars: int) -> JsonObject:
    limits = {"title": MAX_TITLE_CHARS, "description": max_chars}

    def clean_texts(node: JsonObject) -> JsonObject:
        return {
            key: clean(value, limit=limits[key])
            if key in limits and isinstance(value, str)
            else value
            for key, value in node.items()
        }

    return map_schemas(schema, clean_texts)


def _is_too_deep(value: object) -> bool:
    level = [value]
    for _ in range(MAX_DEPTH + 1):
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
    properties = schema.get("properties") or {}
    if not isinstance(properties, dict) or not all(
        isinstance(value, dict | bool) for value in properties.values()
    ):
        return "the properties of its input schema are not schemas"
    required = schema.get("required") or []
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
    raw = prompt.get("arguments")
    arguments = {
        _text(argument["name"]): argument
        for argument in (raw if isinstance(raw, list) else ())
        if isinstance(argument, dict) and argument.get("name")
        if _text(argument["name"]).isprintable()
    }
    limits = {"title": MAX_TITLE_CHARS, "description": max_chars}
    properties = {
        name: {
            "type": "string",
            **{
                key: clean(_text(argument[key]), limit=limit)
                for key, limit in limits.items()
                if _text(argument.get(key))
            },
        }
        for name, argument in arguments.items()
    }
    required = [name for name, argument in arguments.items() if argument.get("required") is True]
    return {"type": "object", "properties": properties, "required": required}


def _read_details(item: JsonObject, method: ListMethod) -> Iterator[tuple[str, object]]:
    if method is TEMPLATES:
        yield "template", True
    for key, kind in _DETAILS.items():
        value = item.get(key)
        if isinstance(value, kind):
            yield key, clean(value, limit=MAX_NAME_CHARS) if isinstance(value, str) else value


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _object(value: object) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _flag(value: object) -> bool | None:
    return value if isinstance(value, bool) else None
