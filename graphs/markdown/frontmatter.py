"""Parser of front matter: a small, safe subset of YAML, in which every scalar is a string.

More than 64 kB, anchors, aliases, tags, deep nesting and duplicate keys are refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TypeAlias

import yaml

from graphs.errors import DocumentError
from graphs.parameters import MAX_FRONT_MATTER_BYTES, MAX_FRONT_MATTER_DEPTH

# libyaml is ten times faster and gives the same events.
_LOADER = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
_TOO_DEEP = f"the front matter is nested deeper than {MAX_FRONT_MATTER_DEPTH}: flatten it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scalar:
    """One text of the front matter."""

    text: str
    """The text without quotes; never converted to a number, a date or a boolean."""
    line: int
    """Line number in the document, from 1."""


class Key(str):
    """A key of a mapping, with its line number."""

    __slots__ = ("line",)
    line: int
    """Line number in the document, from 1."""


Value: TypeAlias = "Scalar | list[Value] | dict[Key, Value]"


def read(block: str, *, path: str = "", line: int = 2) -> dict[Key, Value]:
    """Read a front matter block, without its fences; empty for an empty block.

    *line* is the block's first line number in the document.

    Raises:
        DocumentError: If the block is not a mapping, or uses a refused feature.
    """
    reader = _Reader(path=path, line=line)
    if len(block.encode("utf-8", "replace")) > MAX_FRONT_MATTER_BYTES:
        raise reader.fault("the front matter is longer than 64 kB: move text into the body")
    try:
        events = yaml.parse(block.encode("utf-8"), Loader=_LOADER)
        # The first two events start the stream and the document. An empty document has no values.
        front = next(reader.values(islice(events, 2, None)), {})
    except UnicodeEncodeError as error:
        raise reader.fault(
            "the front matter contains half a character: save it as UTF-8"
        ) from error
    except yaml.MarkedYAMLError as error:
        offset = error.problem_mark.line if error.problem_mark else 0
        # Some blocks reach the parser's own depth limit first.
        is_deep = "nesting depth" in str(error.problem)
        detail = _TOO_DEEP if is_deep else f"{error.problem}: fix or quote the value"
        raise reader.fault(detail, offset) from error
    except yaml.YAMLError as error:
        raise reader.fault("the front matter contains a character that YAML forbids") from error
    if not isinstance(front, dict):
        raise reader.fault("the front matter is not a mapping: write `key: value` lines")
    return front


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reader:
    path: str
    line: int

    def fault(self, detail: str, offset: int = 0) -> DocumentError:
        return DocumentError(detail, path=self.path, line=self.line + offset)

    def values(self, events: Iterator[yaml.Event], depth: int = 0) -> Iterator[Value]:
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
        mapping: dict[Key, Value] = {}
        for scalar in children:
            if not isinstance(scalar, Scalar):
                raise self.fault("a key is a list or a mapping: write it as one word", offset)
            key = Key(scalar.text)
            key.line = scalar.line
            if key in mapping:
                detail = f"the key {key!r} occurs twice: keep one of them"
                raise DocumentError(detail, path=self.path, line=key.line)
            mapping[key] = next(children)
        return mapping
