"""Validation of values from the host: option objects, hints, and objects of the host's classes.

Annotations of the fields define types and ranges. The validator is msgspec, because pydantic loads
slowly.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, TypeAlias, Union, get_args, get_origin, get_type_hints

from msgspec import Meta as Meta  # noqa: PLC0414  (the range of a number, for all options)
from msgspec import ValidationError, convert

from gateway.errors import ConfigError
from gateway.types import Hints

Count: TypeAlias = Annotated[int, Meta(ge=0)]
PositiveCount: TypeAlias = Annotated[int, Meta(ge=1)]
Share: TypeAlias = Annotated[float, Meta(ge=0, le=1)]
Seconds: TypeAlias = Annotated[float, Meta(ge=0)]
Timeout: TypeAlias = Annotated[float, Meta(ge=0.001)]
"""Maximum duration in seconds."""


@dataclass(frozen=True, slots=True)
class OptionObject:
    """Base class of option dataclasses, which validates their fields.

    Raises:
        ConfigError: If a value has the wrong type or range, naming all faults.
    """

    def __post_init__(self) -> None:
        """Validate each field, then their combination."""
        if faults := "; ".join(field_faults(self)) or self._fault():
            raise ConfigError(f"{type(self).__name__}: {faults}")

    def _fault(self) -> str:
        """Return why valid fields cannot be combined, or ""."""
        return ""


def hints_fault(name: str, hints: object) -> str:
    """Return a message about a fault of *hints*, called *name*; empty if they are valid."""
    if not isinstance(hints, Hints):
        return f"{name} must be a Hints(…), got {type(hints).__name__}"
    faults = field_faults(hints)
    return f"{name}: {'; '.join(faults)}" if faults else ""


def check_hints(owner: str, hints: object) -> None:
    """Raise a `ConfigError` if the *hints* of *owner* are not valid `Hints`."""
    if fault := hints_fault(f"hints of {owner!r}", hints):
        raise ConfigError(fault)


def check_members(name: str, value: object, expected: str, *members: str) -> None:
    """Raise a `ConfigError` if *value* is a class instead of an object, or lacks one of *members*.

    Args:
        name: Name of the argument.
        value: Object of the host.
        expected: Required type, for the message.
        members: Names of required attributes.
    """
    missing = [member for member in members if not hasattr(value, member)]
    if isinstance(value, type):
        raise ConfigError(f"{name} must be {expected}, got the class {value.__name__}")
    if missing:
        kind = type(value).__name__
        raise ConfigError(f"{name} must be {expected}, got {kind}, without {', '.join(missing)}")


@cache
def option_types(kind: Any) -> Mapping[str, Any]:
    """Return the annotated types of a dataclass, keyed by field name."""
    return get_type_hints(kind, include_extras=True)


_SWITCHES: Mapping[str, str] = {"on": "true", "yes": "true", "off": "false", "no": "false"}


def read_option(raw: object, expected: Any, *, is_text: bool = False) -> Any:
    """Convert *raw* to the annotated type *expected*.

    Args:
        raw: Parsed JSON, or text of a person.
        expected: Annotated type of the option.
        is_text: True for text of a person: ``on`` and ``off`` are booleans, commas separate items,
            and ``none`` is an empty list.

    Raises:
        ConfigError: If the value has the wrong type or range. The message does not name the option.
    """
    value = raw
    if is_text and isinstance(raw, str):
        if tuple in {get_origin(kind) for kind in (expected, *get_args(expected))}:
            value = [] if raw == "none" else [part.strip() for part in raw.split(",")]
        elif expected is bool:
            value = _SWITCHES.get(raw.lower(), raw)
    try:
        return convert(value, expected, strict=not is_text, dec_hook=_read_path)
    except ValidationError:
        raise ConfigError(f"expected {_describe(expected)}, got {raw!r}") from None


def _read_path(kind: type, raw: object) -> object:
    if kind is not Path or not isinstance(raw, str):
        raise ValidationError
    return Path(raw).expanduser()


def field_faults(value: Any) -> list[str]:
    """Return one message for each field of a dataclass object with an invalid value.

    Values of fields without repr are left out, because they may be secrets.
    """
    types = option_types(type(value))  # type: ignore[arg-type]  # (a class has a hash)
    faults: list[str] = []
    for field in fields(value):
        expected, option = types[field.name], getattr(value, field.name)
        if not _has_type(option, expected):
            actual = f", got {option!r}" if field.repr else ""
            faults.append(f"{field.name}: expected {_describe(expected)}{actual}")
    return faults


def _has_type(value: Any, expected: Any) -> bool:
    """Return whether *value* has the type *expected*, without conversion."""
    try:
        return bool(convert(value, expected) == value)
    except ValidationError:
        return False


def _describe(expected: Any) -> str:
    """Return a description of an annotated type, such as ``int from 1``."""
    origin, parts = get_origin(expected), get_args(expected)
    if origin is Annotated:
        limits = [f" {word} {limit:g}" for word, limit in _limits(parts[1]) if limit is not None]
        return f"{parts[0].__name__}{''.join(limits)}"
    if origin in {Literal, Union, UnionType}:
        return " or ".join(map(repr if origin is Literal else _describe, parts))
    return str(expected) if parts else str(expected.__name__).replace("NoneType", "None")


def _limits(meta: Meta) -> tuple[tuple[str, float | None], ...]:
    return ("from", meta.ge), ("to", meta.le)
