"""Arguments against a tool's JSON Schema, before anything is sent."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import extend, validator_for
from referencing import Registry
from referencing.exceptions import Unresolvable

from gateway.errors import InvalidArgumentsError, InvalidRequestError
from gateway.types import Entity, JsonObject

MAX_FAULTS = 5
"""Faults told at once: a model mends these and tries again."""


def check_arguments(entity: Entity, arguments: JsonObject) -> None:
    """Check *arguments* against the entity's input schema.

    A schema that is invalid, endless or points outside itself checks nothing: the upstream is
    then the judge. Nothing is ever fetched. Patterns are checked only where the host trusts their
    author: one that a stranger wrote may run for ever (CWE-1333).

    Raises:
        InvalidRequestError: They are no mapping.
        InvalidArgumentsError: With up to `MAX_FAULTS` faults, paths first, and the schema.
    """
    if not isinstance(arguments, Mapping):
        kind = type(arguments).__name__
        raise InvalidRequestError(f"arguments must be a mapping of names to values, got {kind}")
    schema = entity.definition.input_schema
    try:
        validator = _validator(json.dumps(dict(schema), default=str), trusted=entity.trusted)
    except (SchemaError, RecursionError):
        return
    if faults := _faults(validator, dict(arguments)):
        raise InvalidArgumentsError(entity.exposed_name, faults, schema)


@lru_cache(maxsize=1024)
def _validator(text: str, *, trusted: bool) -> Validator:
    """Return what checks against the schema *text*."""
    schema = json.loads(text)
    kind = validator_for(schema, default=Draft202012Validator)
    kind.check_schema(schema)
    # An empty registry: a reference to another document fails instead of being fetched.
    return (kind if trusted else _unpatterned(kind))(schema, registry=Registry())


@lru_cache(maxsize=16)
def _unpatterned(kind: type[Validator]) -> type[Validator]:
    """Return *kind* without the keywords that run a schema's regular expressions."""

    def nothing(*_: object) -> Iterable[ValidationError]:
        return ()

    def additional(
        validator: Validator, allowed: object, instance: object, schema: JsonObject
    ) -> Iterable[ValidationError]:
        if "patternProperties" in schema:
            return ()
        check: Any = kind.VALIDATORS["additionalProperties"]
        errors: Iterable[ValidationError] = check(validator, allowed, instance, schema) or ()
        return errors

    skipped = ("pattern", "patternProperties", "unevaluatedProperties")
    ignored = {name: nothing for name in skipped if name in kind.VALIDATORS}
    made: Any = extend  # untyped
    unpatterned: type[Validator] = made(kind, {**ignored, "additionalProperties": additional})
    return unpatterned


def _faults(validator: Validator, arguments: dict[str, Any]) -> tuple[str, ...]:
    try:
        errors = sorted(validator.iter_errors(arguments), key=lambda error: [*map(str, error.path)])
    except (Unresolvable, RecursionError):
        return ()
    places = [".".join(map(str, error.absolute_path)) for error in errors[:MAX_FAULTS]]
    return tuple(
        f"{place}: {error.message}" if place else error.message
        for place, error in zip(places, errors, strict=False)
    )
