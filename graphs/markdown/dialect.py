"""Reader and writer of Markdown-LD texts, and of folders and bundles of such texts.

* ``parse(render(document)) == document`` for every document with an id, if its sections are
  complete Markdown without headings and unclosed fences.
* A document is data. Its contents are not fetched, run or trusted.
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
_SELF_REFERENCES = frozenset({"", "article", "document", "this article", "this document"})
_ESCAPED = re.compile(
    r'[^\x20-\x7e\xa0-\u2027\u202a-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]|["\\]'
)
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def parse(text: str, *, path: str = "", declared: bool = True) -> Document:
    r"""Read one Markdown-LD text.

    If the text has no id, the id is `DOCUMENT_BASE` and the path without suffix, or the slug of the
    title.

    Args:
        text: Optional front matter between ``---`` lines, and a Markdown body.
        path: Path of the text. Links are relative to it, and messages contain it.
        declared: True if the host is the author of the text.

    Returns:
        The document. Its ``notices`` contain each rule that could not be read.

    Raises:
        DocumentError: If the front matter is invalid, or the document has no name.

    Example:
        >>> document = parse("---\ntitle: Book a flight\nrequires: search_flights\n---\n")
        >>> document.title, document.requires[0].target
        ('Book a flight', 'search_flights')
    """
    if len(text) > MAX_DOCUMENT_CHARS or text.count("\n") > MAX_DOCUMENT_LINES:
        raise DocumentError("more than 2 MB or 20,000 lines: split the document", path=path)
    body = Body(text, path=path)
    front = Fields(body.front, path=path)
    sections = body.sections()
    title = front.one("title") or next((part.heading for part in sections if part.level == 1), "")
    document_id, url = front.one("id"), front.one("url")
    stem = path.removesuffix(".md") or (title and slug(title))
    if not (document_id or url or stem):
        raise DocumentError("the document has no name: add a `title` or an `id`", path=path)
    node = document_id or url or DOCUMENT_BASE + stem
    lists: dict[str, Any] = {name: front.texts(name) for name in TEXT_LISTS}
    lists |= {name: front.links(name) for name in LINK_LISTS}
    properties = list(front.properties())
    notices: list[Notice] = []
    stated = {_with_subject(edge, node): None for edge in body.statements(front.prefixes, notices)}
    front_edges = [*front.edges("edges"), *(item for item in properties if isinstance(item, Edge))]
    front_stated = {_with_subject(edge, node): None for edge in front_edges}
    document = Document(
        id=node,
        path=path,
        url=url if document_id else "",
        title=title or path.rpartition("/")[2].removesuffix(".md"),
        summary=front.one("summary"),
        search_text=front.one("search_text"),
        published=front.date("published"),
        modified=front.date("modified"),
        source_project=front.one("source_project"),
        language=front.language(),
        sections=sections,
        edges=(*(edge for edge in front_stated if edge not in stated), *stated),
        forbidden=tuple(_with_subject(edge, node) for edge in front.edges("forbidden")),
        texts=(*front.translations(), *(item for item in properties if isinstance(item, Text))),
        prefixes=tuple(front.prefixes.items()),
        declared=declared,
        **lists,
    )
    notices = sorted([*front.notices, *notices], key=lambda notice: notice.line)
    return replace(document, notices=tuple(notices))


def render(document: Document) -> str:
    """Write *document* as Markdown-LD. Equal documents give equal texts.

    Lone surrogates are replaced, because files cannot contain them.
    """
    text = "".join(map(_section, document.sections))
    statements = Body(text, path=document.path).statements(dict(document.prefixes), [])
    stated = {_with_subject(edge, document.id) for edge in statements}
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
    return _LONE_SURROGATE.sub("\ufffd", f"---\n{''.join(front)}---\n{text}")


def read(path: str | Path) -> tuple[Document, ...]:
    """Read the documents of a folder, a bundle or a single file; empty for an empty folder.

    The paths of the documents are relative to the folder.

    Args:
        path: A folder (every ``*.md`` under it, sorted by path), a JSON bundle ``{"version": 1,
            "documents": [{"path": …, "content": …}]}``, or one text.

    Raises:
        GraphError: If *path* does not exist, or the bundle is malformed.
        DocumentError: If a document cannot be read.
    """
    return tuple(parse(_decode(text, name), path=name) for name, text in _texts(Path(path)))


def collect(path: str | Path) -> tuple[tuple[Document, ...], tuple[Notice, ...]]:
    """Read documents like `read`, but skip documents that cannot be read.

    A text that was read before gives the same document object.

    Returns:
        The readable documents, and notices of all skipped rules and documents.

    Raises:
        GraphError: If *path* does not exist, or the bundle is malformed.
    """
    documents: list[Document] = []
    notices: list[Notice] = []
    for name, text in _texts(Path(path)):
        try:
            documents.append(_cached_parse(_decode(text, name), path=name))
            notices += documents[-1].notices
        except DocumentError as error:
            notices.append(
                Notice(path=name, line=error.line, code="document_invalid", detail=error.detail)
            )
    return tuple(documents), tuple(notices)


def write(documents: Iterable[Document], folder: str | Path) -> tuple[Path, ...]:
    """Write *documents* into *folder*, which is created if necessary. Return the files in order.

    A document without a path is named after its title.

    Raises:
        GraphError: If a document's path leads out of the folder, or two documents have the same
            path.
    """
    files: dict[Path, Document] = {}
    for document in documents:
        path = PurePosixPath(document.path or f"{slug(document.title or document.id)}.md")
        if path.is_absolute() or ".." in path.parts:
            detail = f"the path {document.path!r} leads out of the folder: make it relative"
            raise GraphError(detail)
        file = Path(folder) / path
        if file in files:
            raise GraphError(f"two documents have the file {str(file)!r}: give one another path")
        files[file] = document
    for file, document in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(render(document), encoding="utf-8")
    return tuple(files)


_cached_parse = lru_cache(maxsize=MAX_REMEMBERED_DOCUMENTS)(parse)


def _with_subject(edge: Edge, document: str) -> Edge:
    ends = (
        document if end.casefold() in _SELF_REFERENCES else end
        for end in (edge.subject, edge.object)
    )
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
    """Yield *edges* as YAML list items for the front matter of the document with this id."""
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
    """Return a YAML list item with *entries* as a mapping, without empty texts and zeros."""
    inside = ", ".join(f"{key}: {_value(value)}" for key, value in entries.items() if value)
    return f"  - {{{inside}}}"


def _value(value: str | float | tuple[str, ...]) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, float):
        return repr(value)
    return f'"{_ESCAPED.sub(lambda found: _escape(found[0]), value)}"'


def _escape(mark: str) -> str:
    return f"\\{mark}" if mark in '"\\' else f"\\u{ord(mark):04x}"


def _texts(path: Path) -> Iterator[tuple[str, bytes | str]]:
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


def _decode(text: bytes | str, path: str) -> str:
    if isinstance(text, str):
        return text
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError as error:
        line = text.count(b"\n", 0, error.start) + 1
        raise DocumentError("not UTF-8: save the file as UTF-8", path=path, line=line) from error


def _bundle(file: Path) -> Iterator[tuple[str, str]]:
    try:
        bundle = json.loads(_decode(file.read_bytes(), file.name))
    except (json.JSONDecodeError, RecursionError) as error:
        raise GraphError(f"the bundle {str(file)!r} is not JSON: {error}") from error
    version = bundle.get("version") if isinstance(bundle, dict) else None
    if version != _BUNDLE_VERSION:
        raise GraphError(
            f"the bundle {str(file)!r} has version {version!r}, but must have version 1"
        )
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
"""Front matter with the ``---`` lines around it."""


def add_edge(text: str, edge: Edge, *, path: str = "", forbidden: bool = False) -> str:
    """Return *text* with *edge* added to its front matter; unchanged if it contains the edge.

    All other characters stay. With *forbidden*, the edge is forbidden instead of stated.

    Raises:
        DocumentError: If the text cannot be read, or cannot be edited safely.
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
    """Insert the YAML list item *row* at the start of the list *key*, created if missing."""
    end = "\r\n" if "\r\n" in text else "\n"
    front = _FRONT.match(text)
    if front is None:
        return f"---{end}{key}:{end}{row}{end}---{end}{text}"
    lines = re.compile(rf"^{key}:[ \t]*(?:#.*)?\r?\n(?P<indent>[ \t]*)(?=-)", re.MULTILINE)
    if match := lines.search(text, front.start(1), front.end(1)):
        position = match.start("indent")
        return f"{text[:position]}{match['indent']}{row.lstrip()}{end}{text[position:]}"
    position = front.end(1)
    return f"{text[:position]}{key}:{end}{row}{end}{text[position:]}"


def _contents(document: Document, **added: Edge) -> tuple[object, ...]:
    fields = ("edges", "forbidden")
    edges = [{*getattr(document, name), *filter(None, [added.get(name)])} for name in fields]
    return replace(document, edges=(), forbidden=()), edges, len(document.notices)
