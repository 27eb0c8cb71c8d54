"""Found entities -> function tools with their real schemas. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from urllib.parse import unquote

from gateway.discovery.meta_tools import FunctionTool
from gateway.discovery.render_results import ABOUT
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
    told = clean(described(entity), limit=options.description_chars)
    function: dict[str, object] = {
        "name": entity.exposed_name,
        "description": one_line(told, limit=ABOUT) if brief else told,
        "parameters": parameters(entity.definition.input_schema),
    }
    if options.strict and fits_strict(function["parameters"]):
        function["strict"] = True
    return {"type": "function", "function": function}


def described(entity: Entity) -> str:
    """Give the description of *entity*, or at least its name."""
    return entity.description or entity.definition.title or f"{entity.name} of {entity.server}"


def parameters(schema: JsonObject) -> dict[str, object]:
    """Turn a tool's input schema into one that model services take: an object, without a dialect.

    Local references stay as they are. References that lead elsewhere, or nowhere, are left out and
    never followed, since services refuse them. Of a choice at the top the properties stay, all
    optional. Calls are checked against the original schema.
    """
    left_out = _NOT_FOR_MODELS | _NOT_AT_THE_TOP
    # Most schemas have none, and this runs for every tool that a search finds.
    refers = '"$ref"' in json.dumps(schema, default=str)
    fit = _fit(schema, schema) if refers else schema
    kept = {key: value for key, value in fit.items() if key not in left_out}
    kept["type"] = "object"
    known = kept.get("properties")
    kept["properties"] = {**_choices(fit), **(known if isinstance(known, Mapping) else {})}
    return kept


def _fit(schema: Mapping[str, object], root: JsonObject) -> dict[str, object]:
    return {
        key: _fit_below(key, value, root)
        for key, value in schema.items()
        if key != "$ref" or _leads(value, root)
    }


def _fit_below(key: str, value: object, root: JsonObject) -> object:
    if key in _DATA:
        return value
    if key in _BY_NAME and isinstance(value, Mapping):
        # Not `_fit`: a property may be called "$ref".
        return {name: _fit_below("", inner, root) for name, inner in value.items()}
    if isinstance(value, Mapping):
        return _fit(value, root)
    if isinstance(value, list | tuple):
        return [_fit_below("", inner, root) for inner in value]
    return value


def _leads(reference: object, root: JsonObject) -> bool:
    """Whether *reference* is a JSON pointer (RFC 6901) to something within *root*."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return False
    here: object = root
    for step in filter(None, unquote(reference[1:]).split("/")):
        named = step.replace("~1", "/").replace("~0", "~")
        if isinstance(here, Mapping) and named in here:
            here = here[named]
        elif isinstance(here, list | tuple) and named.isdecimal() and int(named) < len(here):
            here = here[int(named)]
        else:
            return False
    return isinstance(here, Mapping | bool)


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
"""Keywords that strict schemas may not have."""


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
