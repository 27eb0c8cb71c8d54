"""Arguments against a tool's JSON Schema, before anything is sent."""

from __future__ import annotations

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
    faults = _faults(_validator(_Schema(entity)), dict(arguments))
    if faults:
        raise InvalidArgumentsError(entity.exposed_name, faults, entity.definition.input_schema)


class _Schema:
    """A schema with the identity of its entity's digest, so that validators can be kept."""

    def __init__(self, entity: Entity) -> None:
        self.schema = dict(entity.definition.input_schema)
        self.trusted = entity.trusted
        self._key = (entity.id, entity.digest, entity.trusted)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Schema) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


@lru_cache(maxsize=1024)
def _validator(schema: _Schema) -> Validator | None:
    kind = validator_for(schema.schema, default=Draft202012Validator)
    try:
        kind.check_schema(schema.schema)
    except (SchemaError, RecursionError):
        return None
    if not schema.trusted:
        kind = _unpatterned(kind)
    # An empty registry: a reference to another document fails instead of being fetched.
    return kind(schema.schema, registry=Registry())


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


def _faults(validator: Validator | None, arguments: dict[str, Any]) -> tuple[str, ...]:
    if validator is None:
        return ()
    try:
        errors = sorted(
            validator.iter_errors(arguments), key=lambda error: list(map(str, error.path))
        )
    except (Unresolvable, RecursionError):
        return ()
    return tuple(_messages(errors[:MAX_FAULTS]))


def _messages(faults: Iterable[ValidationError]) -> Iterable[str]:
    for fault in faults:
        where = ".".join(str(part) for part in fault.absolute_path)
        yield f"{where}: {fault.message}" if where else fault.message
