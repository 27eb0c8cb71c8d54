"""Metadata of entries: parts of it by dot paths, and the words that find its entry. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

from gateway.errors import InvalidRequestError
from gateway.runtime.text import clean
from gateway.types import JsonObject

MAX_PATHS = 20
MAX_PATH_DEPTH = 5
MAX_SEGMENT = 64
MAX_DEPTH = 6
MAX_VALUES = 200
MAX_VALUE_CHARS = 300
MAX_CHARS = 4000
_SEGMENT = r"[\w-]+"
_URL_STARTS = ("http://", "https://", "data:")
_Tree = dict[str, "_Tree | None"]
_MISSING: Final = object()


def project(metadata: JsonObject, fields: Sequence[str] | None) -> JsonObject:
    """Return the parts of *metadata* that *fields* name, in the shape that it has.

    A path goes through a list to each of its objects. What is not there is left out; a path of
    which another is the beginning adds nothing.

    Args:
        metadata: Any JSON object.
        fields: Dot paths such as ``provider.name``: at most 20, each of at most 5 parts of at
            most 64 letters, digits, '_' and '-'. None returns everything, an empty list nothing.

    Raises:
        InvalidRequestError: A path cannot be used.
    """
    if fields is None:
        return metadata
    part = _pick(metadata, parse_paths(fields))
    return part if isinstance(part, Mapping) else {}


def parse_paths(fields: Sequence[str]) -> _Tree:
    """Return dot paths as a tree; see `project`. None stands for all below.

    Raises:
        InvalidRequestError: There are too many, or one cannot be used.
    """
    if len(fields) > MAX_PATHS:
        raise InvalidRequestError(
            f"{len(fields)} fields of metadata; at most {MAX_PATHS} are given"
        )
    tree: _Tree = {}
    # Short ones first: a path swallows those that go on from it.
    for path in sorted(map(_split, fields), key=len):
        branch: _Tree | None = tree
        for name in path[:-1]:
            branch = branch.setdefault(name, {}) if branch is not None else None
        if branch is not None:
            branch.setdefault(path[-1], None)
    return tree


def _split(path: str) -> list[str]:
    names = path.split(".") if isinstance(path, str) else []
    fits = all(len(name) <= MAX_SEGMENT and re.fullmatch(_SEGMENT, name) for name in names)
    if not names or not fits or len(names) > MAX_PATH_DEPTH:
        raise InvalidRequestError(
            f"field {path!r} of metadata: write up to {MAX_PATH_DEPTH} names with dots between "
            f"them, each of up to {MAX_SEGMENT} letters, digits, '_' or '-'"
        )
    return names


def _pick(value: object, tree: _Tree | None) -> object:
    if tree is None:
        return value
    if isinstance(value, list):
        parts = [_pick(item, tree) for item in value if isinstance(item, Mapping | list)]
        return [part for part in parts if part is not _MISSING] or _MISSING
    if not isinstance(value, Mapping):
        return _MISSING
    table = {key: _pick(value[key], below) for key, below in tree.items() if key in value}
    return {key: part for key, part in table.items() if part is not _MISSING} or _MISSING


def flatten(metadata: JsonObject, fields: Sequence[str] | None = None) -> str:
    """Return *metadata* as lines of its keys and values, nested ones with all keys above them.

    Texts and numbers count; booleans, nulls and addresses hold nothing to search by.

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
        if value.strip() and not value.startswith(_URL_STARTS):
            yield f"{keys} {clean(value, limit=MAX_VALUE_CHARS)}".strip()
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield f"{keys} {value}".strip()
    elif isinstance(value, Mapping) and depth:
        for key, inner in value.items():
            path = f"{keys} {clean(key, limit=MAX_VALUE_CHARS)}".strip()
            yield from _lines(inner, path, depth - 1)
    elif isinstance(value, list) and depth:
        for inner in value:
            yield from _lines(inner, keys, depth - 1)
