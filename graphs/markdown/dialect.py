"""Markdown-LD texts and the `Document` that each describes; folders and bundles of such texts.

* ``parse(render(document)) == document`` for every document with an id whose sections hold
  Markdown that stands by itself (no heading, no unclosed fence).
* A document is data: nothing in it is fetched, run or believed.

Edits of a Markdown-LD text: one edge more, and all else stays to the character. Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any

from graphs.errors import DocumentError, GraphError, Notice
from graphs.facts.vocabulary import DOCUMENT_BASE
from graphs.lexical.analysis import slug
from graphs.markdown.body import Body
from graphs.markdown.document import Document, Edge, Link, Section, Text
from graphs.markdown.fields import KEYS, LINK_LISTS, SINGLE_TEXTS, TEXT_LISTS, Fields
from graphs.parameters import MAX_DOCUMENT_CHARS, MAX_DOCUMENT_LINES, MAX_REMEMBERED_DOCUMENTS

_BUNDLE_VERSION = 1
_THIS = frozenset({"", "article", "document", "this article", "this document"})
_ESCAPED = re.compile(
    r'[^\x20-\x7e\xa0-\u2027\u202a-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]|["\\]'
)
_LONE = re.compile("[\ud800-\udfff]")


def parse(text: str, *, path: str = "", declared: bool = True) -> Document:
    """Read one Markdown-LD text.

    An id that the text does not give is `DOCUMENT_BASE` and its path without suffix, or the slug
    of its title.

    Args:
        text: Front matter between ``---`` lines, if any, and a Markdown body.
        path: Where it was read; it resolves relative links and names the document in messages.
        declared: Whether the host stands for the text.

    Returns:
        The document; its ``notices`` name each rule that could not be read.

    Raises:
        DocumentError: The front matter is broken, or nothing names the document.
    """
    if len(text) > MAX_DOCUMENT_CHARS or text.count("\n") > MAX_DOCUMENT_LINES:
        raise DocumentError("more than 2 MB or 20,000 lines: split the document", path=path)
    body = Body(text, path=path)
    front = Fields(body.front, path=path)
    sections = body.sections()
    title = front.one("title") or next((each.heading for each in sections if each.level == 1), "")
    own, url = front.one("id"), front.one("url")
    stem = path.removesuffix(".md") or (title and slug(title))
    if not (own or url or stem):
        raise DocumentError("nothing names the document: give it a `title` or an `id`", path=path)
    node = own or url or DOCUMENT_BASE + stem
    lists: dict[str, Any] = {name: front.texts(name) for name in TEXT_LISTS}
    lists |= {name: front.links(name) for name in LINK_LISTS}
    properties = list(front.properties())
    notices: list[Notice] = []
    stated = {_about(edge, node): None for edge in body.statements(front.prefixes, notices)}
    front_edges = [*front.edges("edges"), *(one for one in properties if isinstance(one, Edge))]
    front_stated = {_about(edge, node): None for edge in front_edges}
    document = Document(
        id=node,
        path=path,
        url=url if own else "",
        title=title or path.rpartition("/")[2].removesuffix(".md"),
        summary=front.one("summary"),
        search_text=front.one("search_text"),
        published=front.date("published"),
        modified=front.date("modified"),
        source_project=front.one("source_project"),
        language=front.language(),
        sections=sections,
        edges=(*(edge for edge in front_stated if edge not in stated), *stated),
        forbidden=tuple(_about(edge, node) for edge in front.edges("forbidden")),
        texts=(*front.translations(), *(one for one in properties if isinstance(one, Text))),
        prefixes=tuple(front.prefixes.items()),
        declared=declared,
        **lists,
    )
    notices = sorted([*front.notices, *notices], key=lambda notice: notice.line)
    return replace(document, notices=tuple(notices))


def render(document: Document) -> str:
    """Write *document* as Markdown-LD, the same text every time.

    Halves of surrogate pairs, which no file can hold, are replaced.
    """
    text = "".join(map(_section, document.sections))
    statements = Body(text, path=document.path).statements(dict(document.prefixes), [])
    stated = {_about(edge, document.id) for edge in statements}
    prefixes = [f"  {name}: {_value(iri)}" for name, iri in document.prefixes]
    lists = {name: getattr(document, name) for name in (*TEXT_LISTS, *LINK_LISTS)}
    front = [
        *(
            f"{KEYS[name][0]}: {_value(value)}\n"
            for name in SINGLE_TEXTS
            if (value := getattr(document, name))
        ),
        _rows("prefixes", prefixes),
        *(_rows(name, map(_row, values)) for name, values in lists.items()),
        _rows("edges", edge_rows((e for e in document.edges if e not in stated), document.id)),
        _rows("forbidden", edge_rows(document.forbidden, document.id)),
        _rows("texts", map(_text, document.texts)),
    ]
    return _LONE.sub("\ufffd", f"---\n{''.join(front)}---\n{text}")


def read(path: str | Path) -> tuple[Document, ...]:
    """Read the documents of a folder, a bundle or a single file.

    Args:
        path: A folder (every ``*.md`` under it, sorted by path), a JSON bundle
            ``{"version": 1, "documents": [{"path": …, "content": …}]}``, or one text.

    Returns:
        The documents, their paths relative to the folder; empty for an empty folder.

    Raises:
        GraphError: There is nothing at *path*, or the bundle is malformed.
        DocumentError: A document cannot be read.
    """
    return tuple(parse(_decoded(text, name), path=name) for name, text in _texts(Path(path)))


def collect(path: str | Path) -> tuple[tuple[Document, ...], tuple[Notice, ...]]:
    """Read as `read` does, but let one broken document not stop the others.

    A text that was read before is the same document, and is not parsed again.

    Returns:
        The documents that can be read, and the notices of all: the rules that were passed over,
        and the documents that could not be read.

    Raises:
        GraphError: There is nothing at *path*, or the bundle is malformed.
    """
    documents: list[Document] = []
    notices: list[Notice] = []
    for name, text in _texts(Path(path)):
        try:
            documents.append(_cached_parse(_decoded(text, name), path=name))
            notices += documents[-1].notices
        except DocumentError as error:
            notices.append(
                Notice(path=name, line=error.line, code="document_invalid", detail=error.detail)
            )
    return tuple(documents), tuple(notices)


def write(documents: Iterable[Document], folder: str | Path) -> tuple[Path, ...]:
    """Write *documents* into *folder*, which is made if need be.

    Returns:
        The files, in the order of the documents. A document without a path is named by its title.

    Raises:
        GraphError: A document's path leads out of the folder, or two documents share one.
    """
    files: dict[Path, Document] = {}
    for document in documents:
        path = PurePosixPath(document.path or f"{slug(document.title or document.id)}.md")
        if path.is_absolute() or ".." in path.parts:
            detail = f"the path {document.path!r} leads out of the folder: make it relative"
            raise GraphError(detail)
        file = Path(folder) / path
        if file in files:
            raise GraphError(f"two documents want the file {str(file)!r}: give one another path")
        files[file] = document
    for file, document in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(render(document), encoding="utf-8")
    return tuple(files)


_cached_parse = lru_cache(maxsize=MAX_REMEMBERED_DOCUMENTS)(parse)


def _about(edge: Edge, document: str) -> Edge:
    """Put *document* where the edge says ``this document`` or leaves the subject out."""
    ends = (document if end.casefold() in _THIS else end for end in (edge.subject, edge.object))
    subject, target = ends
    return replace(edge, subject=subject, object=target)


def _section(section: Section) -> str:
    closing = " #" if section.heading.endswith("#") else ""
    heading = f"\n{'#' * section.level} {section.heading}{closing}\n" if section.level else ""
    return f"{heading}\n{section.text}\n" if section.text else heading


def _rows(name: str, rows: Iterable[str]) -> str:
    written = "".join(f"{row}\n" for row in rows)
    return f"{KEYS[name][0]}:\n{written}" if written else ""


def _row(value: str | Link) -> str:
    if isinstance(value, str):
        return f"  - {_value(value)}"
    if not (value.label or value.types or value.same_as):
        return f"  - {_value(value.target)}"
    return _mapping(id=value.target, label=value.label, type=value.types, same_as=value.same_as)


def edge_rows(edges: Iterable[Edge], document: str) -> Iterator[str]:
    """Yield *edges* as rows of a list in the front matter of *document*, an id."""
    for edge in edges:
        yield _mapping(
            subject="" if edge.subject == document else edge.subject,
            predicate=edge.predicate,
            object=edge.object,
            weight=0.0 if edge.weight == 1 else edge.weight,
        )


def _text(text: Text) -> str:
    return _mapping(
        predicate=text.predicate, value=text.value, language=text.language, datatype=text.datatype
    )


def _mapping(**entries: str | float | tuple[str, ...]) -> str:
    """Write a mapping on one line, without what is empty or 0."""
    inside = ", ".join(f"{key}: {_value(value)}" for key, value in entries.items() if value)
    return f"  - {{{inside}}}"


def _value(value: str | float | tuple[str, ...]) -> str:
    """Write *value* in YAML that every reader reads back the same; a text in double quotes."""
    if isinstance(value, tuple):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, float):
        return repr(value)
    return f'"{_ESCAPED.sub(lambda found: _escape(found[0]), value)}"'


def _escape(mark: str) -> str:
    return f"\\{mark}" if mark in '"\\' else f"\\u{ord(mark):04x}"


def _texts(path: Path) -> Iterator[tuple[str, bytes | str]]:
    """Yield the path and the text of each document."""
    if path.is_dir():
        for file in sorted(file for file in path.rglob("*.md") if file.is_file()):
            yield file.relative_to(path).as_posix(), file.read_bytes()
    elif not path.is_file():
        raise GraphError(
            f"there is no file or folder {str(path)!r}: create it, or correct the path"
        )
    elif path.suffix == ".json":
        yield from _bundle(path)
    else:
        yield path.name, path.read_bytes()


def _decoded(text: bytes | str, path: str) -> str:
    if isinstance(text, str):
        return text
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError as error:
        line = text.count(b"\n", 0, error.start) + 1
        raise DocumentError("not UTF-8: save the file as UTF-8", path=path, line=line) from error


def _bundle(file: Path) -> Iterator[tuple[str, str]]:
    try:
        bundle = json.loads(_decoded(file.read_bytes(), file.name))
    except (json.JSONDecodeError, RecursionError) as error:
        raise GraphError(f"the bundle {str(file)!r} is not JSON: {error}") from error
    version = bundle.get("version") if isinstance(bundle, dict) else None
    if version != _BUNDLE_VERSION:
        raise GraphError(f"the bundle {str(file)!r} has version {version!r}: version 1 is read")
    entries = bundle.get("documents")
    if not isinstance(entries, list):
        raise GraphError(f"the bundle {str(file)!r} has no list `documents`: add it")
    for entry in entries:
        path = entry.get("path") if isinstance(entry, dict) else None
        content = entry.get("content") if isinstance(entry, dict) else None
        if not (isinstance(path, str) and path.strip() and isinstance(content, str)):
            raise GraphError(f"an entry of {str(file)!r} lacks text `path` or `content`: add them")
        yield path, content


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
