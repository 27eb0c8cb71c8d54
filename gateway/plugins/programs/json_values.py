"""What crosses the border of a sandbox, as JSON of bounded size and depth. Pure."""

from __future__ import annotations

import math
from datetime import date, datetime, time
from decimal import Decimal

MAX_DEPTH = 64
MAX_VALUES = 100_000
MAX_CHARS = 4 * 1024 * 1024
_MAX_BITS = 4096
_PLAIN = (str, bool, int, float)
_TEXTS = (datetime, date, time, Decimal)


class ValueRefusedError(ValueError):
    """A value that is no JSON, or too large or too deep; a circular one is too deep."""


class _Budget:
    def __init__(self) -> None:
        self.values, self.chars = MAX_VALUES, MAX_CHARS

    def take(self, chars: int = 0) -> None:
        self.values -= 1
        self.chars -= chars
        if self.values < 0 or self.chars < 0:
            raise ValueRefusedError(
                f"the value is too large: at most {MAX_VALUES} parts and {MAX_CHARS} characters"
            )


def to_json(value: object) -> object:
    """Return *value* as JSON: tuples and sets become lists, dates and decimals become texts.

    Only the built-in types themselves are read: nothing of a foreign class is called.

    Raises:
        ValueRefusedError: It holds another type or no finite number, or is too large or too deep.
    """
    return _convert(value, MAX_DEPTH, _Budget())


def _convert(value: object, depth: int, budget: _Budget) -> object:
    kind = type(value)
    if value is None or kind in _PLAIN:
        return _plain(value, budget)
    if kind in _TEXTS:
        budget.take()
        return str(value)
    if depth <= 0:
        raise ValueRefusedError(f"the value is deeper than {MAX_DEPTH}")
    budget.take()
    if isinstance(value, dict) and kind is dict:
        return {_key(key, budget): _convert(item, depth - 1, budget) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_convert(item, depth - 1, budget) for item in value]
    raise ValueRefusedError(f"a value of type {kind.__name__} is no JSON")


def _plain(value: object, budget: _Budget) -> object:
    if isinstance(value, str):
        budget.take(len(value))
    elif isinstance(value, int):
        budget.take(value.bit_length() // 3)
        if value.bit_length() > _MAX_BITS:
            raise ValueRefusedError("an integer is too large")
    elif isinstance(value, float) and not math.isfinite(value):
        raise ValueRefusedError(f"{value} is no JSON")
    return value


def _key(key: object, budget: _Budget) -> str:
    if key is not None and type(key) not in _PLAIN:
        raise ValueRefusedError("the keys of an object are texts")
    return str(_plain(key, budget))
