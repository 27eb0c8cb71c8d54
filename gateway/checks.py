"""What is checked of every object of options: first that each value is of its type, then what its
owner says besides. All faults are told at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from gateway.errors import ConfigError

_WORDS: Mapping[object, str] = {
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    str: "a text",
    Path: "a pathlib.Path",
    NoneType: "None",
    tuple: "a tuple of texts",
}


def check(owner: Any, *faults: str) -> None:
    """Refuse *owner* if a value is not of its type, or if one of *faults* is not empty.

    Raises:
        ConfigError: All that is wrong: with types, or where they are right with the rest.
    """
    told = _mistyped(owner) or [fault for fault in faults if fault]
    if told:
        raise ConfigError(f"{type(owner).__name__}: {'; '.join(told)}")


def at_least(name: str, value: float, least: float) -> str:
    """Say what is wrong with *value*, if it is below *least*."""
    fits = not (_number(value) and _number(least)) or value >= least
    return "" if fits else f"{name} must be at least {least}, got {value}"


def share(name: str, value: float) -> str:
    """Say what is wrong with *value*, if it is no share of one."""
    fits = not _number(value) or 0 <= value <= 1
    return "" if fits else f"{name} must be between 0 and 1, got {value}"


def one_of(name: str, value: str, choices: object) -> str:
    """Say what is wrong with *value*, if the literal type *choices* does not hold it."""
    *known, last = get_args(choices)
    # Not a set: what is no text may have no hash.
    fits = value in (*known, last)
    return "" if fits else f"{name} must be {', '.join(known)} or {last}, got {value!r}"


def _number(value: object) -> bool:
    # A number of numpy is one; what is none is told by its type.
    return hasattr(value, "__float__")


def _mistyped(owner: Any) -> list[str]:
    values = {each: getattr(owner, each.name) for each in fields(owner)}
    odd = {each.name: value for each, value in values.items() if not _usual(each, value)}
    hints = get_type_hints(type(owner)) if odd else {}
    return [
        f"{name} must be {_said(hints[name])}, got {value!r}"
        for name, value in odd.items()
        if not _fits(value, hints[name])
    ]


def _usual(field: Field[Any], value: object) -> bool:
    """Say whether *value* needs no look at the type's own words, which costs a start too much."""
    if field.default is MISSING:
        return type(value) is field.default_factory and not (isinstance(value, dict) and value)
    if isinstance(value, tuple):
        return value is field.default
    return type(value) is type(field.default)


def _fits(value: object, hint: Any) -> bool:
    """Say whether *value* is of the type *hint*; which of its texts a literal takes others say."""
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
        # A truth value counts as a number nowhere, a number of numpy does.
        kind = "__index__" if hint is int else "__float__"
        return hasattr(value, kind) and not isinstance(value, bool)
    return isinstance(value, origin or hint)


def _said(hint: Any) -> str:
    if get_origin(hint) in {UnionType, Union}:
        return " or ".join(map(_said, get_args(hint)))
    if get_origin(hint) is Literal:
        return "a text"
    kind = get_origin(hint) or hint
    return _WORDS.get(kind, f"a {kind.__name__}")
