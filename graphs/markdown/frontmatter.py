"""Front matter: a small, safe part of YAML, where every scalar stays a string.

Refused: more than 64 kB, anchors, aliases, tags, deep nesting, keys that stand twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TypeAlias

import yaml

from graphs.errors import DocumentError
from graphs.parameters import MAX_FRONT_MATTER_BYTES, MAX_FRONT_MATTER_DEPTH

# libyaml is ten times faster where the wheel brings it; the events are the same.
_LOADER = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
_TOO_DEEP = f"the front matter is nested deeper than {MAX_FRONT_MATTER_DEPTH}: flatten it"


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


Value: TypeAlias = "Scalar | list[Value] | dict[Key, Value]"


def read(block: str, *, path: str = "", line: int = 2) -> dict[Key, Value]:
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
    reader = _Reader(path=path, line=line)
    if len(block.encode("utf-8", "replace")) > MAX_FRONT_MATTER_BYTES:
        raise reader.fault("the front matter is longer than 64 kB: move text into the body")
    try:
        events = yaml.parse(block.encode("utf-8"), Loader=_LOADER)
        # The stream begins, then the document; an empty one has no more.
        found = next(reader.values(islice(events, 2, None)), {})
    except UnicodeEncodeError as error:
        raise reader.fault("the front matter holds half a character: save it as UTF-8") from error
    except yaml.MarkedYAMLError as error:
        offset = error.problem_mark.line if error.problem_mark else 0
        # The parser has a limit of its own, which some blocks reach first.
        is_deep = "nesting depth" in str(error.problem)
        detail = _TOO_DEEP if is_deep else f"{error.problem}: mend or quote the value"
        raise reader.fault(detail, offset) from error
    except yaml.YAMLError as error:
        raise reader.fault("the front matter holds a character that YAML forbids") from error
    if not isinstance(found, dict):
        raise reader.fault("the front matter is not a mapping: write `key: value` lines")
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reader:
    path: str
    line: int

    def fault(self, detail: str, offset: int = 0) -> DocumentError:
        return DocumentError(detail, path=self.path, line=self.line + offset)

    def values(self, events: Iterator[yaml.Event], depth: int = 0) -> Iterator[Value]:
        """Yield the values up to the end of the list or mapping that they are in."""
        for event in events:
            if not isinstance(event, yaml.NodeEvent):
                return
            yield self._value(event, events, depth)

    def _value(self, event: yaml.NodeEvent, events: Iterator[yaml.Event], depth: int) -> Value:
        offset = event.start_mark.line if event.start_mark else 0
        if event.anchor is not None:
            raise self.fault("anchors and aliases are not read: write the value out", offset)
        if getattr(event, "tag", None) is not None:
            raise self.fault("tags are not read: remove the `!…`, or quote the value", offset)
        if depth > MAX_FRONT_MATTER_DEPTH:
            raise self.fault(_TOO_DEEP, offset)
        if isinstance(event, yaml.ScalarEvent):
            return Scalar(text=event.value, line=self.line + offset)
        children = self.values(events, depth + 1)
        if isinstance(event, yaml.SequenceStartEvent):
            return list(children)
        return self._mapping(children, offset)

    def _mapping(self, children: Iterator[Value], offset: int) -> dict[Key, Value]:
        found: dict[Key, Value] = {}
        for scalar in children:
            if not isinstance(scalar, Scalar):
                raise self.fault("a key is a list or a mapping: write it as one word", offset)
            key = Key(scalar.text)
            key.line = scalar.line
            if key in found:
                detail = f"the key {key!r} stands twice: keep one of them"
                raise DocumentError(detail, path=self.path, line=key.line)
            found[key] = next(children)
        return found
