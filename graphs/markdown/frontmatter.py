"""Front matter: a small, safe part of YAML, where every scalar stays a string.

Refused: more than 64 kB, anchors, aliases, tags, deep nesting, keys that stand twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import yaml

from graphs.errors import DocumentError
from graphs.parameters import MAX_FRONT_MATTER_BYTES, MAX_FRONT_MATTER_DEPTH

# libyaml is ten times faster where the wheel brings it; the events are the same.
_LOADER = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scalar:
    """One text of the front matter."""

    text: str
    """The text as it was written, unquoted; never a number, a date or a truth value."""
    line: int
    """The line of the document, counted from 1."""


class Key(str):
    """A key of a mapping that knows its line."""

    __slots__ = ("line",)
    line: int
    """The line of the document, counted from 1."""

    @classmethod
    def of(cls, scalar: Scalar) -> Key:
        """Make a key of a scalar."""
        key = cls(scalar.text)
        key.line = scalar.line
        return key


Value: TypeAlias = "Scalar | list[Value] | dict[str, Value]"


def read(block: str, *, path: str = "", line: int = 2) -> dict[str, Value]:
    """Read a front matter block.

    Args:
        block: The text between the fences.
        path: The document's path, for messages.
        line: The line of the document on which the block begins.

    Returns:
        The mapping, its keys of the class `Key`; empty for an empty block.

    Raises:
        DocumentError: The block is not a mapping, or uses what is refused here.
    """
    location = _Location(path=path, line=line)
    if len(block.encode("utf-8", "replace")) > MAX_FRONT_MATTER_BYTES:
        raise location.error("the front matter is longer than 64 kB: move text into the body")
    try:
        events = yaml.parse(block.encode("utf-8"), Loader=_LOADER)
        found = _document(events, location)
    except UnicodeEncodeError as error:
        raise location.error("the front matter holds half a character: save it as UTF-8") from error
    except yaml.MarkedYAMLError as error:
        offset = error.problem_mark.line if error.problem_mark else 0
        raise location.error(f"{error.problem}: mend or quote the value", offset) from error
    except yaml.YAMLError as error:
        raise location.error("the front matter holds a character that YAML forbids") from error
    if not isinstance(found, dict):
        raise location.error("the front matter is not a mapping: write `key: value` lines")
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Location:
    path: str
    line: int

    def error(self, detail: str, offset: int = 0) -> DocumentError:
        return DocumentError(detail, path=self.path, line=self.line + offset)


def _document(events: Iterator[yaml.Event], location: _Location) -> Value:
    for event in events:
        if isinstance(event, yaml.NodeEvent):
            return _value(event, events, location, depth=0)
    return {}


def _value(
    event: yaml.NodeEvent, events: Iterator[yaml.Event], location: _Location, *, depth: int
) -> Value:
    offset = event.start_mark.line if event.start_mark else 0
    _refuse(event, location, depth)
    if isinstance(event, yaml.ScalarEvent):
        return Scalar(text=event.value, line=location.line + offset)
    children = _children(events, location, depth)
    if isinstance(event, yaml.SequenceStartEvent):
        return list(children)
    found: dict[str, Value] = {}
    for key in children:
        if not isinstance(key, Scalar):
            raise location.error("a key is a list or a mapping: write it as one word", offset)
        if key.text in found:
            detail = f"the key {key.text!r} stands twice: keep one of them"
            raise DocumentError(detail, path=location.path, line=key.line)
        found[Key.of(key)] = next(children)
    return found


def _children(events: Iterator[yaml.Event], location: _Location, depth: int) -> Iterator[Value]:
    for event in events:
        if not isinstance(event, yaml.NodeEvent):
            return
        yield _value(event, events, location, depth=depth + 1)


def _refuse(event: yaml.NodeEvent, location: _Location, depth: int) -> None:
    offset = event.start_mark.line if event.start_mark else 0
    if event.anchor is not None:
        raise location.error("anchors and aliases are not read: write the value out", offset)
    if getattr(event, "tag", None) is not None:
        raise location.error("tags are not read: remove the `!…`, or quote the value", offset)
    if depth > MAX_FRONT_MATTER_DEPTH:
        raise location.error(
            f"the front matter is nested deeper than {MAX_FRONT_MATTER_DEPTH}: flatten it", offset
        )
