"""A `Document` written as Markdown-LD: the same document, the same text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from graphs.markdown import body
from graphs.markdown.document import Document, Edge, Link, Text
from graphs.markdown.keys import KEYS

_ESCAPED = re.compile(
    r'[^\x20-\x7e\xa0-\u2027\u202a-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]|["\\]'
)
_LONE = re.compile("[\ud800-\udfff]")
_SINGLE = ("id", "url", "title", "summary", "published", "modified", "source_project", "language")
_LISTS = (
    "types", "tags", "keywords", "aliases", "authors", "about", "hints", "groups", "related",
    "next_steps", "requires", "consumes", "produces", "entities",
)  # fmt: skip


def render(document: Document) -> str:
    """Write *document* as Markdown-LD, the same text every time.

    Halves of surrogate pairs, which no file can hold, are replaced.
    """
    text = "".join(body.write(section) for section in document.sections)
    read = body.read(text, path=document.path)
    stated = body.statements(read, dict(document.prefixes), [])
    body_edges = {body.about(edge, document.id) for edge in stated}
    front = [
        *(_line(key, getattr(document, key)) for key in _SINGLE),
        _prefixes(document.prefixes),
        *(_rows(key, getattr(document, key)) for key in _LISTS),
        _edges("edges", [edge for edge in document.edges if edge not in body_edges], document.id),
        _edges("forbidden", document.forbidden, document.id),
        _texts(document.texts),
    ]
    return _LONE.sub("\ufffd", f"---\n{''.join(front)}---\n{text}")


def quoted(text: str) -> str:
    """Write *text* as a double-quoted YAML scalar that every reader reads back the same."""
    return f'"{_ESCAPED.sub(lambda found: _escape(found[0]), text)}"'


def _escape(mark: str) -> str:
    if mark in '"\\':
        return "\\" + mark
    return f"\\u{ord(mark):04x}"


def _line(key: str, text: str) -> str:
    return f"{KEYS[key][0]}: {quoted(text)}\n" if text else ""


def _prefixes(prefixes: Iterable[tuple[str, str]]) -> str:
    rows = [f"  {name}: {quoted(iri)}\n" for name, iri in prefixes]
    return "".join([f"{KEYS['prefixes'][0]}:\n", *rows]) if rows else ""


def _rows(key: str, values: Sequence[str | Link]) -> str:
    return "".join([f"{KEYS[key][0]}:\n", *map(_row, values)]) if values else ""


def _row(value: str | Link) -> str:
    if isinstance(value, str):
        return f"  - {quoted(value)}\n"
    if not (value.label or value.types or value.same_as):
        return f"  - {quoted(value.target)}\n"
    return _mapping(
        id=quoted(value.target),
        label=quoted(value.label) if value.label else "",
        type=_list(value.types),
        same_as=_list(value.same_as),
    )


def _edges(key: str, edges: Iterable[Edge], document: str) -> str:
    rows = [
        _mapping(
            subject="" if edge.subject == document else quoted(edge.subject),
            predicate=quoted(edge.predicate) if edge.predicate else "",
            object=quoted(edge.object),
            weight="" if edge.weight == 1 else repr(edge.weight),
        )
        for edge in edges
    ]
    return "".join([f"{KEYS[key][0]}:\n", *rows]) if rows else ""


def _texts(texts: Iterable[Text]) -> str:
    rows = [
        _mapping(
            predicate=quoted(text.predicate),
            value=quoted(text.value),
            language=quoted(text.language) if text.language else "",
            datatype=quoted(text.datatype) if text.datatype else "",
        )
        for text in texts
    ]
    return "".join([f"{KEYS['texts'][0]}:\n", *rows]) if rows else ""


def _list(values: Sequence[str]) -> str:
    return f"[{', '.join(map(quoted, values))}]" if values else ""


def _mapping(**entries: str) -> str:
    inside = ", ".join(f"{key}: {value}" for key, value in entries.items() if value)
    return f"  - {{{inside}}}\n"
