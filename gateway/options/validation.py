"""Validation of what a host passes in: option objects, hints, and objects of its own classes.

The types and ranges of an option are those of its annotation. All faults are raised at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field as DataclassField
from dataclasses import fields
from functools import cache
from typing import Annotated, Any, TypeAlias, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from gateway.errors import ConfigError
from gateway.types import Hints

Count: TypeAlias = Annotated[int, Field(ge=0)]
PositiveCount: TypeAlias = Annotated[int, Field(ge=1)]
Share: TypeAlias = Annotated[float, Field(ge=0, le=1)]
Seconds: TypeAlias = Annotated[float, Field(ge=0)]
Timeout: TypeAlias = Annotated[float, Field(ge=0.001)]
"""Seconds that something may take."""


class OptionObject:
    """Validates the fields of a dataclass when it is made.

    Raises:
        ConfigError: If a value is not of its type or outside its range.
    """

    __slots__ = ()

    def __post_init__(self) -> None:
        """Validate the fields."""
        check_options(self)


def check_options(options: Any) -> None:
    """Raise a `ConfigError` if a field of *options* is invalid.

    Values of fields that the repr leaves out are left out of the message too.
    """
    if faults := _field_faults(options):
        raise ConfigError(f"{type(options).__name__}: {'; '.join(faults)}")


def hints_fault(name: str, hints: object) -> str:
    """Return what is wrong with *hints*, which are called *name*; empty if nothing is."""
    if not isinstance(hints, Hints):
        return f"{name} must be a Hints(…), got {type(hints).__name__}"
    faults = _field_faults(hints)
    return f"{name}: {'; '.join(faults)}" if faults else ""


def check_hints(owner: str, hints: object) -> None:
    """Raise a `ConfigError` if the *hints* of *owner* are no `Hints` or hold a wrong type."""
    if fault := hints_fault(f"hints of {owner!r}", hints):
        raise ConfigError(fault)


def check_members(name: str, value: object, expected: str, *members: str) -> None:
    """Raise a `ConfigError` if an object of the host's is a class, or lacks one of *members*."""
    if isinstance(value, type) or not all(hasattr(value, member) for member in members):
        kind = f"the class {value.__name__}" if isinstance(value, type) else type(value).__name__
        raise ConfigError(f"{name} must be {expected}, got {kind}")


@cache
def _model(kind: Any) -> type[BaseModel]:
    hints: Mapping[str, Any] = get_type_hints(kind, include_extras=True)
    config = ConfigDict(strict=True, arbitrary_types_allowed=True)
    types: dict[str, Any] = {field.name: (hints[field.name], ...) for field in fields(kind)}
    return create_model(kind.__name__, __config__=config, **types)


def _field_faults(value: Any) -> list[str]:
    by_name = {field.name: field for field in fields(value)}
    try:
        model = _model(type(value))  # type: ignore[arg-type]  # (a class has a hash)
        model.model_validate({name: getattr(value, name) for name in by_name})
    except ValidationError as error:
        return [_message(by_name[str(fault["loc"][0])], fault) for fault in error.errors()]
    return []


def _message(field: DataclassField[Any], fault: Mapping[str, Any]) -> str:
    got = f", got {fault['input']!r}" if field.repr else ""
    return f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}{got}"
