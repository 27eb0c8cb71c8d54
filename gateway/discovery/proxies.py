"""Found entities -> function tools with their real schemas. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from gateway.discovery.meta_tools import FunctionTool
from gateway.discovery.render_results import MAX_LINE_CHARS
from gateway.options import DiscoveryOptions
from gateway.runtime.json_schema import as_object, as_objects, map_schemas, resolve_pointer
from gateway.runtime.text import clean, one_line, visible_json
from gateway.types import Entity, JsonObject

_NOT_FOR_MODELS = frozenset({"$schema", "$id"})
_CHOICES = ("allOf", "anyOf", "oneOf")
_NOT_AT_THE_TOP = frozenset({*_CHOICES, "enum", "not"})
"""Services refuse a whole request if a schema has one of these at its top."""
_LOOSE = frozenset({"allOf", "oneOf", "not", "if", "then", "else", "patternProperties"})
"""Keywords that strict schemas may not have."""


def proxy(entity: Entity, options: DiscoveryOptions, *, brief: bool = False) -> FunctionTool:
    """Write *entity* as a tool that a model can call; if *brief*, with one line of description."""
    description = clean(description_of(entity), limit=options.description_chars)
    parameters = to_parameters(entity.definition.input_schema)
    function: dict[str, object] = {
        "name": entity.exposed_name,
        "description": one_line(description, limit=MAX_LINE_CHARS) if brief else description,
        "parameters": parameters,
    }
    if options.strict and fits_strict(parameters):
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

    def without_dangling_reference(part: JsonObject) -> JsonObject:
        if "$ref" not in part or isinstance(resolve_pointer(part["$ref"], schema), Mapping | bool):
            return part
        return {key: value for key, value in part.items() if key != "$ref"}

    source = map_schemas(schema, without_dangling_reference)
    left_out = _NOT_FOR_MODELS | _NOT_AT_THE_TOP
    own = as_object(source.get("properties"))
    return visible_json(
        {
            **{key: value for key, value in source.items() if key not in left_out},
            "type": "object",
            "properties": {**_properties_of_choices(source), **own},
        }
    )


def _properties_of_choices(schema: JsonObject) -> dict[str, object]:
    branches = (branch for key in _CHOICES for branch in as_objects(schema.get(key)))
    return {
        str(name): property_schema
        for branch in branches
        for name, property_schema in as_object(branch.get("properties")).items()
    }


def fits_strict(schema: JsonObject) -> bool:
    """Return whether *schema* keeps the rules of strict schemas: every object closed, every
    property required, at any depth.
    """
    parts: list[JsonObject] = []

    def note(part: JsonObject) -> JsonObject:
        parts.append(part)
        return part

    map_schemas(schema, note)
    return all(map(_is_strict, parts))


def _is_strict(part: JsonObject) -> bool:
    if not _LOOSE.isdisjoint(part):
        return False
    if "properties" not in part and part.get("type") != "object":
        return True
    named, required = {*as_object(part.get("properties"))}, part.get("required")
    demanded = set(required) if isinstance(required, list | tuple) else set()
    return part.get("additionalProperties") is False and named == demanded
