"""The caller's messages and tools, as plain JSON objects, without touching the originals. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pydantic import BaseModel

from gateway.errors import InvalidRequestError

Plain = Mapping[str, object]


def plain(items: object, what: str) -> list[Plain]:
    """Read a list of messages or tools, each a mapping or an object of the SDK.

    Raises:
        InvalidRequestError: If it is something else.
    """
    if items is None:
        return []
    if isinstance(items, str | Mapping) or not isinstance(items, Iterable):
        raise InvalidRequestError(f"{what!r} must be a list of objects")
    return [_plain(item, what) for item in items]


def _plain(item: object, what: str) -> Plain:
    read = _read(item)
    if isinstance(read, Mapping):
        return read
    raise InvalidRequestError(f"each of {what!r} must be an object, got {type(item).__name__}")


def _read(value: object) -> object:
    """Write objects of the SDK as the SDK sends them, at any depth: a later request then repeats
    an earlier one to the byte.
    """
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", exclude_unset=True, by_alias=True)
    if isinstance(value, Mapping):
        return {key: _read(inner) for key, inner in value.items()}
    return [_read(inner) for inner in value] if isinstance(value, list | tuple) else value
