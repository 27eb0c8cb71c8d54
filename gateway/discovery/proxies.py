"""Found entities -> function tools with their real schemas. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from gateway.config import DiscoveryOptions
from gateway.discovery.metatools import FunctionTool
from gateway.text import clean
from gateway.types import Entity, JsonObject

_NOT_FOR_MODELS = frozenset({"$schema", "$id"})
_CHOICES = ("allOf", "anyOf", "oneOf")
_NOT_AT_THE_TOP = frozenset({*_CHOICES, "enum", "not"})
"""Services refuse these at the top of a schema, and with it the whole request."""


def proxy(entity: Entity, options: DiscoveryOptions) -> FunctionTool:
    """Write *entity* as a tool that a model can call."""
    function: dict[str, object] = {
        "name": entity.exposed_name,
        "description": clean(described(entity), limit=options.description_chars),
        "parameters": parameters(entity.definition.input_schema),
    }
    if options.strict and fits_strict(function["parameters"]):
        function["strict"] = True
    return {"type": "function", "function": function}


def described(entity: Entity) -> str:
    """Say what the entity does, or at least what it is called."""
    return entity.description or entity.definition.title or f"{entity.name} of {entity.server}"


def parameters(schema: JsonObject) -> dict[str, object]:
    """Make a tool's input schema one that model services take: an object, without a dialect.

    References stay as they are: local ones work, remote ones are never fetched. Of a choice at
    the top the properties stay, all optional; a call is checked against the schema as it was.
    """
    left_out = _NOT_FOR_MODELS | _NOT_AT_THE_TOP
    kept = {key: value for key, value in schema.items() if key not in left_out}
    kept["type"] = "object"
    known = kept.get("properties")
    kept["properties"] = {**_choices(schema), **(known if isinstance(known, Mapping) else {})}
    return kept


def _choices(schema: JsonObject) -> dict[str, object]:
    branches = [schema.get(key) for key in _CHOICES]
    listed = [each for branch in branches if isinstance(branch, list) for each in branch]
    inner = [each.get("properties") for each in listed if isinstance(each, Mapping)]
    return {
        str(name): about
        for properties in inner
        if isinstance(properties, Mapping)
        for name, about in properties.items()
    }


_LOOSE = frozenset({"allOf", "oneOf", "not", "if", "then", "else", "patternProperties"})
"""Words that strict schemas do not know."""


def fits_strict(schema: object) -> bool:
    """Whether *schema* keeps the rules of strict schemas: every object closed, every property
    required, at any depth.
    """
    if isinstance(schema, list | tuple):
        return all(fits_strict(each) for each in schema)
    if not isinstance(schema, Mapping):
        return True
    known = schema.get("properties")
    if known is not None or schema.get("type") == "object":
        listed = schema.get("required")
        required = set(listed) if isinstance(listed, list | tuple) else set()
        names = set(known) if isinstance(known, Mapping) else set()
        if schema.get("additionalProperties") is not False or names != required:
            return False
    inner = known.values() if isinstance(known, Mapping) else ()
    rest = [value for key, value in schema.items() if key not in {"properties", "enum", "const"}]
    return not _LOOSE & set(schema) and all(fits_strict(each) for each in (*inner, *rest))
