"""The keys of the front matter: read into typed values, and written back.

Keys may be in snake_case or camelCase; unknown keys are the author's own and are left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from graphs.body import Edge
from graphs.errors import DocumentError
from graphs.frontmatter import Scalar, Value
from graphs.vocabulary import PREDICATES, resolve

_KEYS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "id": ("id", "canonical_url"),
        "title": ("title",),
        "summary": ("summary", "description"),
        "language": ("language",),
        "types": ("types", "entry_type"),
        "tags": ("tags",),
        "keywords": ("keywords",),
        "aliases": ("aliases",),
        "about": ("about",),
        "groups": ("graph_groups",),
        "related": ("graph_related",),
        "next_steps": ("graph_next_steps",),
        "requires": ("graph_requires", "requires"),
        "consumes": ("inputs", "consumes"),
        "produces": ("outputs", "produces"),
        "edges": ("graph_edges",),
    }
)
"""The keys of each field; the first is the one we write."""

_LANGUAGE = re.compile(r"[A-Za-z]{1,8}(-[A-Za-z0-9]{1,8})*")
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
_ESCAPED = re.compile(
    r'[^\x20-\x7e\xa0-\u2027\u202a-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]|["\\]'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A reference to another thing by id, path, name or label."""

    target: str
    """What it points to, as it was written."""
    label: str = ""
    """What to call it; empty if the target says it."""
    line: int = field(default=0, compare=False)
    """The line it stands on, counted from 1; 0 if it was not read from a text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fields:
    """The front matter of one document, asked by field."""

    values: Mapping[str, list[Value]]
    """The values of each snake_case key."""
    path: str
    """The document's path, for messages."""

    @classmethod
    def of(cls, front: Mapping[str, Value], *, path: str) -> Fields:
        """Sort the keys of *front*; both spellings of a key are one key."""
        values: dict[str, list[Value]] = {}
        for key, value in front.items():
            values.setdefault(_HUMP.sub("_", key).lower(), []).append(value)
        return cls(values=values, path=path)

    def one(self, name: str) -> str:
        """Give the text of a field; empty if there is none."""
        texts = (self._scalar(value, name).text.strip() for value in self._all(name))
        return next((text for text in texts if text), "")

    def texts(self, name: str) -> tuple[str, ...]:
        """Give the texts of a field, in order, without empty ones."""
        found = (self._scalar(value, name).text.strip() for value in self._each(name))
        return tuple(text for text in found if text)

    def links(self, name: str) -> tuple[Link, ...]:
        """Give the links of a field: plain texts, or mappings with ``id`` and ``label``."""
        found = (self._link(value, name) for value in self._each(name))
        return tuple(link for link in found if link.target)

    def edges(self) -> tuple[Edge, ...]:
        """Give the edges that the front matter states; an empty subject is the document."""
        about = (
            Edge(subject="", predicate="about", object=link.target, line=link.line)
            for link in self.links("about")
        )
        return (*about, *(self._edge(value) for value in self._each("edges")))

    def language(self) -> str:
        """Give the language tag, checked; empty if there is none."""
        tag = self.one("language")
        if tag and not _LANGUAGE.fullmatch(tag):
            scalar = self._scalar(self._all("language")[0], "language")
            raise self._error(f"{tag!r} is no language tag: write one such as `de`", scalar)
        return tag

    def _all(self, name: str) -> list[Value]:
        return [value for key in _KEYS[name] for value in self.values.get(key, ())]

    def _each(self, name: str) -> list[Value]:
        return [
            item
            for value in self._all(name)
            for item in (value if isinstance(value, list) else [value])
        ]

    def _scalar(self, value: Value, name: str) -> Scalar:
        if isinstance(value, Scalar):
            return value
        raise self._error(f"{_KEYS[name][0]!r} must be text, not a list or mapping", value)

    def _link(self, value: Value, name: str) -> Link:
        if isinstance(value, Scalar):
            return Link(target=value.text.strip(), line=value.line)
        if not isinstance(value, dict):
            raise self._error(f"{_KEYS[name][0]!r} holds a list in a list: flatten it", value)
        label = self._entry(value, ("label", "name", "value"), name)
        target = self._entry(value, ("id", "target"), name)
        return Link(target=target or label, label=label if target else "", line=_line(value))

    def _edge(self, value: Value) -> Edge:
        if not isinstance(value, dict):
            raise self._error("an edge is a mapping: write `predicate:` and `object:`", value)
        word = self._entry(value, ("predicate",), "edges")
        target = self._entry(value, ("object", "object_id", "target", "target_id"), "edges")
        if not word or not target:
            raise self._error("an edge needs a `predicate` and an `object`", value)
        predicate = resolve(word)
        if predicate is None:
            raise self._error(f"unknown predicate {word!r}: use an IRI or {known()}", value)
        subject = self._entry(value, ("subject", "subject_id"), "edges")
        return Edge(subject=subject, predicate=predicate, object=target, line=_line(value))

    def _entry(self, value: Mapping[str, Value], keys: tuple[str, ...], name: str) -> str:
        found = (item for key, item in value.items() if _HUMP.sub("_", key).lower() in keys)
        return next((self._scalar(item, name).text.strip() for item in found), "")

    def _error(self, detail: str, value: Value) -> DocumentError:
        return DocumentError(detail, path=self.path, line=_line(value))


def known() -> str:
    """List the predicate names, for messages."""
    return ", ".join(sorted(PREDICATES))


def line(key: str, text: str) -> str:
    """Write one text field; nothing if it is empty."""
    return f"{_KEYS[key][0]}: {quoted(text)}\n" if text else ""


def rows(key: str, values: Sequence[str | Link]) -> str:
    """Write one list field; nothing if it is empty."""
    return "".join([f"{_KEYS[key][0]}:\n", *map(_row, values)]) if values else ""


def edge_rows(edges: Iterable[Edge], document: str) -> str:
    """Write the edges of *document*; nothing if there are none."""
    written = [
        f"  - {{{_subject(edge, document)}predicate: {quoted(edge.predicate)}, "
        f"object: {quoted(edge.object)}}}\n"
        for edge in edges
    ]
    return "".join([f"{_KEYS['edges'][0]}:\n", *written]) if written else ""


def quoted(text: str) -> str:
    """Write *text* as a double-quoted YAML scalar that every reader reads back the same."""
    return f'"{_ESCAPED.sub(lambda found: _escape(found[0]), text)}"'


def _escape(mark: str) -> str:
    if mark in '"\\':
        return "\\" + mark
    return f"\\u{ord(mark):04x}"


def _row(value: str | Link) -> str:
    if isinstance(value, str):
        return f"  - {quoted(value)}\n"
    if not value.label:
        return f"  - {quoted(value.target)}\n"
    return f"  - {{id: {quoted(value.target)}, label: {quoted(value.label)}}}\n"


def _subject(edge: Edge, document: str) -> str:
    return "" if edge.subject == document else f"subject: {quoted(edge.subject)}, "


def _line(value: Value) -> int:
    if isinstance(value, Scalar):
        return value.line
    inside = value.values() if isinstance(value, dict) else value
    return next(filter(None, map(_line, inside)), 0)
