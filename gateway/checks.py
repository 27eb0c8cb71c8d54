"""Checks of what a host gives: objects of options, hints, and objects of its own.

Of options each value is first held against its type, then against what its owner says. All faults
are reported at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from functools import cache
from numbers import Integral, Real
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from gateway.errors import ConfigError
from gateway.types import Hints

_WORDS: Mapping[object, str] = {
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    str: "a text",
    Path: "a pathlib.Path",
    NoneType: "None",
    tuple: "a tuple of texts",
}
_hints = cache(get_type_hints)


def check(owner: Any, *faults: str) -> None:
    """Refuse *owner* if a value is not of its type, or if one of *faults* is not empty.

    Raises:
        ConfigError: All that is wrong. Values of fields that the repr of *owner* leaves out are
            left out here too.
    """
    told = [*_mistyped(owner), *(fault for fault in faults if fault)]
    if told:
        raise ConfigError(f"{type(owner).__name__}: {'; '.join(told)}")


def check_hints(whose: str, hints: object) -> None:
    """Refuse *hints* that are no `Hints`, or hold a value of the wrong type.

    Raises:
        ConfigError: They would break every search from now on, whoever asks.
    """
    if told := hints_fault(f"hints of {whose!r}", hints):
        raise ConfigError(told)


def hints_fault(name: str, hints: object) -> str:
    """Say what is wrong with *hints*, which are called *name*."""
    if not isinstance(hints, Hints):
        return f"{name} must be a Hints(…), got {type(hints).__name__}"
    told = _mistyped(hints)
    return f"{name}: {'; '.join(told)}" if told else ""


def check_shape(name: str, given: object, wanted: str, *parts: str) -> None:
    """Refuse an object of the host's, given as *name*, that is a class or lacks one of *parts*.

    Raises:
        ConfigError: It is not *wanted*.
    """
    if isinstance(given, type) or not all(hasattr(given, part) for part in parts):
        told = f"the class {given.__name__}" if isinstance(given, type) else type(given).__name__
        raise ConfigError(f"{name} must be {wanted}, got {told}")


def at_least(name: str, value: float, least: float) -> str:
    """Say what is wrong with *value*, if it is below *least*."""
    fits = not (_number(value) and _number(least)) or value >= least
    return "" if fits else f"{name} must be at least {least}, got {value}"


def share(name: str, value: float) -> str:
    """Say what is wrong with *value*, unless it is 0 to 1."""
    return between(name, value, 0, 1)


def between(name: str, value: float, least: float, most: float) -> str:
    """Say what is wrong with *value*, if it is below *least* or above *most*."""
    fits = not _number(value) or least <= value <= most
    return "" if fits else f"{name} must be between {least} and {most}, got {value}"


def one_of(name: str, value: str, choices: object) -> str:
    """Say what is wrong with *value*, unless it is one of the literal type *choices*."""
    *known, last = get_args(choices)
    # If it is no text, the check of its type says so.
    fits = not isinstance(value, str) or value in {*known, last}
    return "" if fits else f"{name} must be {', '.join(known)} or {last}, got {value!r}"


def _number(value: object) -> bool:
    # Numbers of numpy count. If it is no number, the check of its type says so.
    return isinstance(value, Real)


def _mistyped(owner: Any) -> list[str]:
    values = ((each, getattr(owner, each.name)) for each in fields(owner))
    odd = [(each, value) for each, value in values if not _usual(each, value)]
    hints = _hints(type(owner)) if odd else {}  # type: ignore[arg-type]  # (a class has a hash)
    return [
        f"{each.name} must be {_said(hints[each.name])}" + (f", got {value!r}" if each.repr else "")
        for each, value in odd
        if not _fits(value, hints[each.name])
    ]


def _usual(field: Field[Any], value: object) -> bool:
    """Say whether *value* is right by its type alone: to resolve hints costs a start too much."""
    if field.default is MISSING:
        return type(value) is field.default_factory and not (isinstance(value, dict) and value)
    if isinstance(value, tuple):
        return value is field.default
    return type(value) is type(field.default)


def _fits(value: object, hint: Any) -> bool:
    """Say whether *value* is of the type *hint*; the texts of a literal are checked apart."""
    origin, inside = get_origin(hint), get_args(hint)
    if origin in {UnionType, Union}:
        return any(_fits(value, each) for each in inside)
    if origin is Literal:
        return isinstance(value, str)
    if origin is tuple:
        return isinstance(value, tuple) and all(_fits(each, inside[0]) for each in value)
    if origin is Mapping:
        return isinstance(value, Mapping) and all(_fits(each, inside[1]) for each in value.values())
    if hint in {int, float}:
        # Numbers of numpy count as numbers. Truth values do not, be they numpy's or Python's.
        kind = Integral if hint is int else Real
        return isinstance(value, kind) and not isinstance(value, bool)
    return isinstance(value, origin or hint)


def _said(hint: Any) -> str:
    if get_origin(hint) in {UnionType, Union}:
        return " or ".join(map(_said, get_args(hint)))
    if get_origin(hint) is Literal:
        return "a text"
    if get_origin(hint) is Mapping:
        return f"a Mapping, each of its values {_said(get_args(hint)[1])}"
    kind = get_origin(hint) or hint
    return _WORDS.get(kind, f"a {kind.__name__}")
