"""Found entities -> function tools with their real schemas. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from urllib.parse import unquote

from gateway.discovery.meta_tools import FunctionTool
from gateway.discovery.render_results import MAX_LINE_CHARS
from gateway.options import DiscoveryOptions
from gateway.runtime.text import clean, one_line
from gateway.types import Entity, JsonObject

_NOT_FOR_MODELS = frozenset({"$schema", "$id"})
_BY_NAME = frozenset(
    {"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"}
)
"""Keywords that hold schemas by name; those names are no keywords."""
_DATA = frozenset({"const", "default", "enum", "examples"})
_CHOICES = ("allOf", "anyOf", "oneOf")
_NOT_AT_THE_TOP = frozenset({*_CHOICES, "enum", "not"})
"""Services refuse a whole request if a schema has one of these at its top."""


def proxy(entity: Entity, options: DiscoveryOptions, *, brief: bool = False) -> FunctionTool:
    """Write *entity* as a tool that a model can call; if *brief*, with one line of description."""
    description = clean(description_of(entity), limit=options.description_chars)
    function: dict[str, object] = {
        "name": entity.exposed_name,
        "description": one_line(description, limit=MAX_LINE_CHARS) if brief else description,
        "parameters": to_parameters(entity.definition.input_schema),
    }
    if options.strict and fits_strict(function["parameters"]):
        function["strict"] = True
    return {"type": "function", "function": function}


def description_of(entity: Entity) -> str:
    """Return the description of *entity*, or at least its name."""
    return entity.description or entity.definition.title or f"{entity.name} of {entity.server}"


def to_parameters(schema: JsonObject) -> dict[str, object]:
    """Turn a tool's input schema into one that model services take: an object, without a dialect.

    Local references stay as they are. References that lead elsewhere, or nowhere, are left out and
    never followed, since services refuse them. Of a choice at the top the properties stay, all
    optional. Calls are checked against the original schema.
    """
    left_out = _NOT_FOR_MODELS | _NOT_AT_THE_TOP
    # Most schemas have none, and this runs for every tool that a search finds.
    has_references = '"$ref"' in json.dumps(schema, default=str)
    source = _without_dangling_references(schema, schema) if has_references else schema
    parameters = {key: value for key, value in source.items() if key not in left_out}
    parameters["type"] = "object"
    properties = parameters.get("properties")
    own = properties if isinstance(properties, Mapping) else {}
    parameters["properties"] = {**_properties_of_choices(source), **own}
    return parameters


def _without_dangling_references(
    schema: Mapping[str, object], root: JsonObject
) -> dict[str, object]:
    return {
        key: _convert_value(key, value, root)
        for key, value in schema.items()
        if key != "$ref" or _resolves(value, root)
    }


def _convert_value(key: str, value: object, root: JsonObject) -> object:
    if key in _DATA:
        return value
    if key in _BY_NAME and isinstance(value, Mapping):
        # Not the function above: a property may be called "$ref".
        return {name: _convert_value("", inner, root) for name, inner in value.items()}
    if isinstance(value, Mapping):
        return _without_dangling_references(value, root)
    if isinstance(value, list | tuple):
        return [_convert_value("", inner, root) for inner in value]
    return value


def _resolves(reference: object, root: JsonObject) -> bool:
    """Whether *reference* is a JSON pointer (RFC 6901) to something within *root*."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return False
    target: object = root
    for step in filter(None, unquote(reference[1:]).split("/")):
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(target, Mapping) and key in target:
            target = target[key]
        elif isinstance(target, list | tuple) and key.isdecimal() and int(key) < len(target):
            target = target[int(key)]
        else:
            return False
    return isinstance(target, Mapping | bool)


def _properties_of_choices(schema: JsonObject) -> dict[str, object]:
    choices = [schema.get(key) for key in _CHOICES]
    branches = [branch for choice in choices if isinstance(choice, list) for branch in choice]
    listed = [branch.get("properties") for branch in branches if isinstance(branch, Mapping)]
    return {
        str(name): property_schema
        for properties in listed
        if isinstance(properties, Mapping)
        for name, property_schema in properties.items()
    }


_LOOSE = frozenset({"allOf", "oneOf", "not", "if", "then", "else", "patternProperties"})
"""Keywords that strict schemas may not have."""


def fits_strict(schema: object) -> bool:
    """Return whether *schema* keeps the rules of strict schemas: every object closed, every
    property required, at any depth.
    """
    if isinstance(schema, list | tuple):
        return all(map(fits_strict, schema))
    if not isinstance(schema, Mapping):
        return True
    listed = schema.get("properties")
    properties = listed if isinstance(listed, Mapping) else {}
    if listed is not None or schema.get("type") == "object":
        names = schema.get("required")
        required = set(names) if isinstance(names, list | tuple) else set()
        if schema.get("additionalProperties") is not False or set(properties) != required:
            return False
    rest = [value for key, value in schema.items() if key not in {"properties", "enum", "const"}]
    return not _LOOSE & set(schema) and all(map(fits_strict, (*properties.values(), *rest)))
