"""Values of the gateway -> what `json` can write."""

from __future__ import annotations

import math
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass

from gateway.types import CODES, Diagnostic, SearchResult


def jsonable(value: object) -> object:
    """Write *value* with objects, lists, texts, numbers, booleans and null alone.

    A diagnostic gets the meaning of its code; sets are sorted; a number that JSON does not know
    becomes null.
    """
    if value is None or isinstance(value, str | int | float):
        return None if isinstance(value, float) and not math.isfinite(value) else value
    if is_dataclass(value) and not isinstance(value, type):
        return _object(value)
    if isinstance(value, Mapping):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple | AbstractSet):
        items = sorted(value, key=str) if isinstance(value, AbstractSet) else value
        return [jsonable(item) for item in items]
    return str(value)


def _object(value: object) -> dict[str, object]:
    if not is_dataclass(value):
        raise AssertionError(type(value))
    told = {each.name: jsonable(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Diagnostic):
        told["meaning"] = CODES.get(value.code, "")
    if isinstance(value, SearchResult):
        told["degraded"] = value.degraded
    return told
