"""Arguments against a tool's JSON Schema, before anything is sent.

Schema and arguments are a stranger's, so a check has a budget: whatever they are, it ends, in a
thread. No reference leaves the schema.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from functools import lru_cache
from itertools import islice
from typing import Any

from jsonschema import (
    Draft3Validator,
    Draft4Validator,
    Draft6Validator,
    Draft7Validator,
    Draft202012Validator,
)
from jsonschema.exceptions import ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import create, validator_for
from referencing import Registry

from gateway.errors import Failed, InvalidArgumentsError, InvalidRequestError, attempt
from gateway.runtime.background_loop import in_thread
from gateway.types import Entity, JsonObject

MAX_FAULTS = 5
"""Faults told at once: a model mends these and tries again."""
MAX_READ_FAULTS = 500
"""Faults among which these are chosen."""
MAX_STEPS = 100_000
"""What one check may cost. A step is a keyword or an item that is looked at, some 5 µs; 1,700 rows
of five plain columns fit in."""
MAX_DEPTH = 150
"""How deep keywords may be checked in each other; Python's own stack ends at some 280."""
_REF_STANDS_ALONE = (Draft3Validator, Draft4Validator, Draft6Validator, Draft7Validator)
"""In these dialects nothing counts beside a ``$ref``."""
_FORMS: Mapping[str, tuple[type, ...]] = {
    "additionalItems": (bool, dict),
    "additionalProperties": (bool, dict),
    "enum": (list,),
    "required": (list,),
}
"""Keywords that would judge wrongly if their value was of another type; the others raise."""
_COMPARED = frozenset({"const", "dependencies", "dependentRequired", "enum"})
"""Keywords whose value is looked at in its whole depth."""
_UNBOUNDED = frozenset(
    {"pattern", "patternProperties", "unevaluatedItems", "unevaluatedProperties"}
)
"""Keywords that run a schema's regular expressions, or walk it uncounted."""
_REFERENCES = frozenset({"$dynamicRef", "$recursiveRef", "$ref"})
_ERROR_STEPS = 10
"""What it costs to make an error, besides its text."""
_Check = Callable[[Any, Any, Any, Any], Iterable[ValidationError] | None]


class _UncheckableError(Exception):
    """The schema is invalid, leads elsewhere, or costs more than the budget."""


class _Budget:
    """What is left of a check's steps and depth."""

    def __init__(self) -> None:
        self.steps = MAX_STEPS
        self.depth = MAX_DEPTH

    def spend(self, steps: int) -> None:
        self.steps -= steps
        if self.steps < 0 or self.depth < 0:
            raise _UncheckableError


_BUDGET: ContextVar[_Budget] = ContextVar("gateway_check_budget")


async def check_arguments(entity: Entity, arguments: JsonObject) -> None:
    """Check *arguments* against the entity's input schema, in a thread.

    A schema that is invalid, endless, too costly or points outside itself checks nothing: the
    upstream is then the judge. Patterns are checked only where the host trusts their author: one
    that a stranger wrote may run for ever (CWE-1333).

    Raises:
        InvalidRequestError: They are no mapping.
        InvalidArgumentsError: With up to `MAX_FAULTS` faults, paths first, and the schema.
    """
    if not isinstance(arguments, Mapping):
        kind = type(arguments).__name__
        raise InvalidRequestError(f"arguments must be a mapping of names to values, got {kind}")
    # An invalid schema may raise anything.
    faults = await attempt(in_thread(_find_faults, entity, dict(arguments)))
    if faults and not isinstance(faults, Failed):
        raise InvalidArgumentsError(entity.exposed_name, faults, entity.definition.input_schema)


def _find_faults(entity: Entity, arguments: dict[str, Any]) -> tuple[str, ...]:
    _BUDGET.set(_Budget())
    schema = json.dumps(dict(entity.definition.input_schema), default=str)
    validator = _validator(schema, trusted=entity.trusted)
    found = islice(validator.iter_errors(arguments), MAX_READ_FAULTS)
    errors = sorted(found, key=lambda error: [*map(str, error.path)])
    places = [".".join(map(str, error.absolute_path)) for error in errors[:MAX_FAULTS]]
    return tuple(
        f"{place}: {error.message}" if place else error.message
        for place, error in zip(places, errors, strict=False)
    )


@lru_cache(maxsize=1024)
def _validator(text: str, *, trusted: bool) -> Validator:
    """Return what checks against the schema *text*."""
    dialect = validator_for(json.loads(text), default=Draft202012Validator)
    # A part that named a dialect would be checked by the library's own class, without a budget.
    schema = json.loads(text, object_hook=_without_dialect)
    # An empty registry: a reference to another document fails instead of being fetched.
    return _bounded(dialect, trusted=trusted)(schema, registry=Registry())


def _without_dialect(part: dict[str, Any]) -> dict[str, Any]:
    return {
        key: value for key, value in part.items() if key != "$schema" or not isinstance(value, str)
    }


@lru_cache(maxsize=16)
def _bounded(dialect: type[Validator], *, trusted: bool) -> type[Validator]:
    """Return *dialect* with a budget, and only with references that are JSON pointers.

    Identifiers and anchors are not read, since each look-up of one walks the whole schema.
    """
    skipped = frozenset() if trusted else _UNBOUNDED

    def keywords(schema: dict[str, Any]) -> Iterable[tuple[str, Any]]:
        _BUDGET.get().spend(len(schema))
        if dialect in _REF_STANDS_ALONE and "$ref" in schema:
            return [("$ref", schema["$ref"])]
        names = schema.keys() - skipped
        if skipped and "patternProperties" in schema:
            names -= {"additionalProperties"}
        return [(name, schema[name]) for name in schema if name in names]

    make: Any = create  # its types know no validator without identifiers
    made: type[Validator] = make(
        meta_schema=dialect.META_SCHEMA,
        validators={name: _counted(name, check) for name, check in dialect.VALIDATORS.items()},
        type_checker=dialect.TYPE_CHECKER,
        id_of=lambda _: None,
        applicable_validators=keywords,
    )
    return made


def _counted(name: str, check: _Check) -> _Check:
    def counted(
        validator: Validator, value: Any, instance: Any, schema: JsonObject
    ) -> Iterator[ValidationError]:
        if not isinstance(value, _FORMS.get(name, object)):
            raise _UncheckableError
        if name in _REFERENCES and not str(value).startswith("#"):
            raise _UncheckableError
        budget = _BUDGET.get()
        budget.depth -= 1
        try:
            budget.spend(_cost(name, value, instance))
            for error in check(validator, value, instance, schema) or ():
                budget.spend(_ERROR_STEPS + len(error.message) // 64)
                yield error
        finally:
            budget.depth += 1

    return counted


def _cost(name: str, value: object, instance: object) -> int:
    """Return the steps of a keyword without the schemas below it."""
    steps = 1 + sum(len(each) for each in (value, instance) if isinstance(each, list | dict))
    if name in _COMPARED:
        steps += len(str(value)) // 16
    if name == "uniqueItems" and isinstance(instance, list):
        types = {*map(type, instance)}
        # What cannot be sorted the library compares each with each.
        if len(types) > 1 or not types <= {str, int, float}:
            steps += len(instance) * len(str(instance)) // 16
    return steps
