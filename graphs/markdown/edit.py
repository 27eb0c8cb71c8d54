"""Edits of a Markdown-LD text: one edge more, and all else stays to the character. Pure."""

from __future__ import annotations

import re
from dataclasses import replace

from graphs.errors import DocumentError
from graphs.markdown.dialect import edge_rows, parse
from graphs.markdown.document import Document, Edge
from graphs.markdown.fields import KEYS

_FRONT = re.compile(r"\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*\r?$", re.DOTALL | re.MULTILINE)
"""A front matter, fences and all."""


def add_edge(text: str, edge: Edge, *, path: str = "", forbidden: bool = False) -> str:
    """Return *text* with *edge* in its front matter, above the edges that are there.

    Args:
        text: A Markdown-LD text.
        edge: With a subject of its own.
        path: The path of the document, for messages.
        forbidden: Whether the edge may not be derived; else it is stated.

    Returns:
        The new text; *text* itself if it says so already.

    Raises:
        DocumentError: The text cannot be read, or is written so that it cannot be edited safely.
    """
    field = "forbidden" if forbidden else "edges"
    before = parse(text, path=path)
    if edge in getattr(before, field):
        return text
    (row,) = edge_rows([edge], before.id)
    edited = _insert(text, KEYS[field][0], row)
    try:
        is_same = _contents(parse(edited, path=path)) == _contents(before, **{field: edge})
    except DocumentError:
        is_same = False
    if not is_same:
        detail = f"written so that it cannot be edited safely: add `{row.strip()}` by hand"
        raise DocumentError(detail, path=path)
    return edited


def _insert(text: str, key: str, row: str) -> str:
    """Put *row* at the head of the list of *key*, which is made if it is not there."""
    end = "\r\n" if "\r\n" in text else "\n"
    front = _FRONT.match(text)
    if front is None:
        return f"---{end}{key}:{end}{row}{end}---{end}{text}"
    lines = re.compile(rf"^{key}:[ \t]*(?:#.*)?\r?\n(?P<indent>[ \t]*)(?=-)", re.MULTILINE)
    if found := lines.search(text, front.start(1), front.end(1)):
        at = found.start("indent")
        return f"{text[:at]}{found['indent']}{row.lstrip()}{end}{text[at:]}"
    at = front.end(1)
    return f"{text[:at]}{key}:{end}{row}{end}{text[at:]}"


def _contents(document: Document, **added: Edge) -> tuple[object, ...]:
    """Return all that *document* says, and *added* by field; edges in no order."""
    fields = ("edges", "forbidden")
    edges = [{*getattr(document, name), *filter(None, [added.get(name)])} for name in fields]
    return replace(document, edges=(), forbidden=()), edges, len(document.notices)
