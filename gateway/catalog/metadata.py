"""Metadata -> the words by which its entry is found. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from gateway.catalog.projection import project
from gateway.runtime.text import clean
from gateway.types import JsonObject

MAX_DEPTH = 6
MAX_VALUES = 200
MAX_VALUE_CHARS = 300
MAX_CHARS = 4000
_ADDRESSES = ("http://", "https://", "data:")


def flattened(metadata: JsonObject, fields: Sequence[str] | None = None) -> str:
    """Write *metadata* as lines of its keys and values, nested ones with all keys above them.

    Texts and numbers count; truths, nulls and addresses say nothing that one would search by.

    Args:
        metadata: Any JSON object.
        fields: Which parts of it, by dot paths; None is all.

    Returns:
        At most 200 lines, 4,000 characters and 6 levels; empty if nothing is left.
    """
    lines = islice(_lines(project(metadata, fields), "", MAX_DEPTH), MAX_VALUES)
    return "\n".join(lines)[:MAX_CHARS]


def _lines(value: object, keys: str, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        if value.strip() and not value.startswith(_ADDRESSES):
            yield f"{keys} {clean(value, limit=MAX_VALUE_CHARS)}".strip()
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield f"{keys} {value}".strip()
    elif isinstance(value, Mapping) and depth:
        for key, inner in value.items():
            yield from _lines(
                inner, f"{keys} {clean(key, limit=MAX_VALUE_CHARS)}".strip(), depth - 1
            )
    elif isinstance(value, list) and depth:
        for inner in value:
            yield from _lines(inner, keys, depth - 1)
