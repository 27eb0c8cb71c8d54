"""The parts of an entry's metadata that somebody asks for, by dot paths. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from gateway.errors import InvalidRequestError
from gateway.types import JsonObject

MAX_PATHS = 20
MAX_DEPTH = 5
MAX_SEGMENT = 64
_SEGMENT = r"[\w-]+"
_Tree = dict[str, "_Tree | None"]
_MISSING: Final = object()


def project(metadata: JsonObject, fields: Sequence[str] | None) -> JsonObject:
    """Return the parts of *metadata* that *fields* name, in the shape that it has.

    A path goes through a list to each of its objects. What is not there is left out; a path of
    which another is the beginning adds nothing.

    Args:
        metadata: Any JSON object.
        fields: Dot paths such as ``provider.name``: at most 20, each of at most 5 parts of at
            most 64 letters, digits, '_' and '-'. None gives everything, an empty list nothing.

    Raises:
        InvalidRequestError: If a path cannot be used.
    """
    if fields is None:
        return metadata
    found = _picked(metadata, tree_of(fields))
    return found if isinstance(found, Mapping) else {}


def tree_of(fields: Sequence[str]) -> _Tree:
    """Read dot paths; see `project`. None stands for all below.

    Raises:
        InvalidRequestError: If there are too many, or one cannot be used.
    """
    if len(fields) > MAX_PATHS:
        raise InvalidRequestError(
            f"{len(fields)} fields of metadata; at most {MAX_PATHS} are given"
        )
    whole: _Tree = {}
    # Short ones first: a path swallows those that go on from it.
    for parts in sorted(map(_parts, fields), key=len):
        _grow(whole, parts)
    return whole


def _grow(tree: _Tree, parts: Sequence[str]) -> None:
    for part in parts[:-1]:
        below = tree.setdefault(part, {})
        if below is None:
            return
        tree = below
    tree.setdefault(parts[-1], None)


def _parts(path: str) -> list[str]:
    parts = path.split(".") if isinstance(path, str) else []
    fits = all(len(part) <= MAX_SEGMENT and re.fullmatch(_SEGMENT, part) for part in parts)
    if not parts or not fits or len(parts) > MAX_DEPTH:
        raise InvalidRequestError(
            f"field {path!r} of metadata: write up to {MAX_DEPTH} names with dots between them, "
            f"each of up to {MAX_SEGMENT} letters, digits, '_' or '-'"
        )
    return parts


def _picked(value: object, tree: _Tree | None) -> object:
    if tree is None:
        return value
    if isinstance(value, list):
        inner = [_picked(each, tree) for each in value if isinstance(each, Mapping | list)]
        return [each for each in inner if each is not _MISSING] or _MISSING
    if not isinstance(value, Mapping):
        return _MISSING
    parts = {key: _picked(value[key], below) for key, below in tree.items() if key in value}
    return {key: each for key, each in parts.items() if each is not _MISSING} or _MISSING
