"""Arguments of a meta-tool under other keys than its own: corrected if only one reading fits. Pure.

Models write ``q`` for ``query``, ``parameters`` for ``arguments``, or the arguments of the called
tool next to its name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from contextlib import suppress
from typing import Any

from gateway.types import JsonObject

_TOOL_KEY = re.compile(r"(tool|function)_?(name|id)?", re.IGNORECASE)
"""Keys of the called tool's name."""
_INSTEAD = {"query": "queries", "code": "resume"}
"""Parameters that may be given instead of a meta-tool's first one."""


def correct_keys(properties: Collection[str], given: JsonObject) -> JsonObject:
    """Return *given* with its only unknown text, or list, as the meta-tool's first parameter.

    If *given* is one unknown key with an object of the meta-tool's parameters, that object takes
    its place. A parameter that is given, also as another one, is not overwritten.

    Args:
        properties: The names of the meta-tool's parameters.
        given: The arguments of the model.
    """
    if not properties:
        return given
    is_wrapped = len(given) == 1 and not given.keys() & {*properties}
    inner = _read_object(*given.values()) if is_wrapped else None
    given = inner if inner and inner.keys() & {*properties} else given
    texts = [key for key in given if key not in properties and isinstance(given[key], str | list)]
    first = next(iter(properties))
    if first == "name":
        texts = [key for key in texts if _TOOL_KEY.fullmatch(key)] or texts
    if len(texts) != 1 or given.get(first) or given.get(_INSTEAD.get(first, "")):
        return given
    return {first if key in texts else key: given[key] for key in given if key != first}


def fold_arguments(given: JsonObject, parameters: Collection[str]) -> JsonObject:
    """Return the arguments of the call tool, with unknown keys as the called tool's arguments.

    They are these arguments, or a single one holds them. Nothing changes if both readings fit, or
    if *given* includes ``arguments``.

    Args:
        given: The arguments of the call tool.
        parameters: The names of the called tool's parameters. Without any, it takes all objects.
    """
    rest = {key: given[key] for key in given.keys() - {"name", "arguments"}}
    if not rest or given.get("arguments"):
        return given
    inner = _read_object(*rest.values()) if len(rest) == 1 else None
    readings: list[JsonObject] = [rest] if rest.keys() <= {*parameters} else []
    if inner is not None and (not parameters or inner.keys() <= {*parameters}):
        readings.append(inner)
    return {"name": given.get("name"), "arguments": readings[0]} if len(readings) == 1 else given


def _read_object(value: Any) -> JsonObject | None:
    """Return *value* if it is an object, or the object that it is as JSON."""
    with suppress(TypeError, ValueError, RecursionError):
        value = json.loads(value)
    return value if isinstance(value, dict) else None
