"""Values that are made of arrays, taken apart and put together again.

A value is a number, a text, None, an array, a tuple of values, or an object of the classes below.
The fields of a class say what it is made of, so that a new field is saved without a change here.
Any other value is an error when it is saved, not when it is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from gateway.index.vectors.codes import Coder, Codes
from gateway.index.vectors.exact import Large, Layout, VectorIndex
from gateway.index.vectors.scatter import Scatter
from gateway.index.vectors.segments import Mean
from gateway.index.vectors.sketch import Sketched

_CLASSES: Mapping[str, type] = {
    kind.__name__: kind
    for kind in (
        Coder,
        Codes,
        Large,
        Layout,
        Mean,
        Scatter,
        Sketched,
        VectorIndex,
    )
}


def form() -> list[list[str]]:
    """Give the fields of each class: if they differ, so does the format of the file."""
    return [[name, *(each.name for each in fields(kind))] for name, kind in _CLASSES.items()]


def taken(value: object, name: str, arrays: dict[str, np.ndarray]) -> object:
    """Take *value* apart.

    Args:
        value: As the head of this file says.
        name: Its arrays are called by this name and the path to them.
        arrays: Takes the arrays.

    Returns:
        All the rest, fit for JSON.

    Raises:
        TypeError: If it is no such value.
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.ndarray):
        arrays[name] = value
        return {"array": name}
    if isinstance(value, tuple):
        return [taken(each, f"{name}.{at}", arrays) for at, each in enumerate(value)]
    kind = type(value).__name__
    if _CLASSES.get(kind) is not type(value):
        raise TypeError(f"{name!r} holds a {kind}, which is not known how to save")
    parts = {
        each.name: taken(getattr(value, each.name), f"{name}.{each.name}", arrays)
        for each in fields(_CLASSES[kind])
    }
    return {"is": kind, "of": parts}


def put(raw: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    """Put together what `taken` took apart.

    Raises:
        KeyError: If a class or an array is not there.
    """
    if isinstance(raw, list):
        return tuple(put(each, arrays) for each in raw)
    if not isinstance(raw, dict):
        return raw
    if "array" in raw:
        return arrays[raw["array"]]
    return _CLASSES[raw["is"]](**{name: put(each, arrays) for name, each in raw["of"].items()})
