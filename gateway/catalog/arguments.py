"""Checks of a call's arguments against the tool's JSON Schema, before the call is sent.

Both are untrusted, so each check runs in a thread with a budget of steps.
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
"""Maximum number of faults in one error message."""
MAX_READ_FAULTS = 500
"""Maximum number of faults that a check collects before it sorts them for the message."""
MAX_STEPS = 100_000
"""Budget of one check. A step is one keyword or one item, about 5 µs; 1,700 rows with five plain
columns fit."""
MAX_DEPTH = 150
"""Maximum nesting of schema keywords in one check; Python's own stack ends at about 280."""
_REF_IGNORES_SIBLINGS = (Draft3Validator, Draft4Validator, Draft6Validator, Draft7Validator)
"""JSON Schema dialects in which all keywords next to a ``$ref`` are ignored."""
_VALUE_TYPES: Mapping[str, tuple[type, ...]] = {
    "additionalItems": (bool, dict),
    "additionalProperties": (bool, dict),
    "enum": (list,),
    "required": (list,),
}
"""Allowed types of a keyword's value, keyed by keyword. Other types would silently give wrong
results. For other keywords, the library raises an error."""
_DEEP_KEYWORDS = frozenset({"const", "dependencies", "dependentRequired", "enum"})
"""Keywords for which the checked value is compared as a whole, at all depths."""
_UNCOUNTED_KEYWORDS = frozenset(
    {"pattern", "patternProperties", "unevaluatedItems", "unevaluatedProperties"}
)
"""Keywords that are checked only in trusted schemas, because they run regular expressions or walk
the whole schema without counting steps."""
_REFERENCES = frozenset({"$dynamicRef", "$recursiveRef", "$ref"})
_ERROR_STEPS = 10
"""Number of steps that creating one error costs, in addition to the steps for its text."""
_Check = Callable[[Any, Any, Any, Any], Iterable[ValidationError] | None]


class _UncheckableError(Exception):
    """Raised if the schema is invalid, refers to another document, or exceeds the budget."""


class _Budget:
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

    Any arguments are accepted if the schema is invalid, too expensive to check, or refers to other
    documents. Patterns are checked only if the host trusts the server, because the match of an
    untrusted pattern may never end (CWE-1333).

    Raises:
        InvalidRequestError: If *arguments* is not a mapping.
        InvalidArgumentsError: If *arguments* do not fit the schema. The message contains the schema
            and at most `MAX_FAULTS` faults, each with the path of the wrong value.
    """
    if not isinstance(arguments, Mapping):
        kind = type(arguments).__name__
        raise InvalidRequestError(f"arguments must be a mapping of names to values, got {kind}")
    # An invalid schema may raise any error.
    faults = await attempt(in_thread(_find_faults, entity, dict(arguments)))
    if faults and not isinstance(faults, Failed):
        raise InvalidArgumentsError(entity.exposed_name, faults, entity.definition.input_schema)


def _find_faults(entity: Entity, arguments: dict[str, Any]) -> tuple[str, ...]:
    _BUDGET.set(_Budget())
    schema = json.dumps(dict(entity.definition.input_schema), default=str)
    validator = _validator(schema, trusted=entity.trusted)
    errors_found = islice(validator.iter_errors(arguments), MAX_READ_FAULTS)
    errors = sorted(errors_found, key=lambda error: [*map(str, error.path)])
    places = [".".join(map(str, error.absolute_path)) for error in errors[:MAX_FAULTS]]
    return tuple(
        f"{place}: {error.message}" if place else error.message
        for place, error in zip(places, errors, strict=False)
    )


@lru_cache(maxsize=1024)
def _validator(text: str, *, trusted: bool) -> Validator:
    dialect = validator_for(json.loads(text), default=Draft202012Validator)
    # For parts with a nested "$schema", the library would use its own classes, without a budget.
    schema = json.loads(text, object_hook=_without_dialect)
    # With an empty registry, references to other documents fail instead of being fetched.
    return _budgeted_dialect(dialect, trusted=trusted)(schema, registry=Registry())


def _without_dialect(part: dict[str, Any]) -> dict[str, Any]:
    return {
        key: value for key, value in part.items() if key != "$schema" or not isinstance(value, str)
    }


@lru_cache(maxsize=16)
def _budgeted_dialect(dialect: type[Validator], *, trusted: bool) -> type[Validator]:
    """Return a variant of *dialect* that ends checks beyond the budget.

    Identifiers and anchors are ignored, because each look-up walks the whole schema.
    """
    skipped = frozenset() if trusted else _UNCOUNTED_KEYWORDS

    def keywords(schema: dict[str, Any]) -> Iterable[tuple[str, Any]]:
        _BUDGET.get().spend(len(schema))
        if dialect in _REF_IGNORES_SIBLINGS and "$ref" in schema:
            return [("$ref", schema["$ref"])]
        names = schema.keys() - skipped
        if skipped and "patternProperties" in schema:
            names -= {"additionalProperties"}
        return [(name, schema[name]) for name in schema if name in names]

    make: Any = create  # without Any, the type hints of `create` require `id_of` to return a text
    dialect_class: type[Validator] = make(
        meta_schema=dialect.META_SCHEMA,
        validators={name: _charged(name, check) for name, check in dialect.VALIDATORS.items()},
        type_checker=dialect.TYPE_CHECKER,
        id_of=lambda _: None,
        applicable_validators=keywords,
    )
    return dialect_class


def _charged(name: str, check: _Check) -> _Check:
    def charged(
        validator: Validator, value: Any, instance: Any, schema: JsonObject
    ) -> Iterator[ValidationError]:
        if not isinstance(value, _VALUE_TYPES.get(name, object)):
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

    return charged


def _cost(name: str, value: object, instance: object) -> int:
    """Return the number of steps for one keyword with this *value*, without its subschemas.

    *instance* is the checked part of the arguments.
    """
    steps = 1 + sum(
        len(container) for container in (value, instance) if isinstance(container, list | dict)
    )
    if name in _DEEP_KEYWORDS:
        steps += len(str(value)) // 16
    if name == "uniqueItems" and isinstance(instance, list):
        types = {*map(type, instance)}
        # The library compares values that cannot be sorted pairwise.
        if len(types) > 1 or not types <= {str, int, float}:
            steps += len(instance) * len(str(instance)) // 16
    return steps
