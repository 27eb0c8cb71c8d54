"""Documents on disk: the only module here that touches one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, partial
from pathlib import Path, PurePosixPath

from graphs.errors import DocumentError, GraphError, Notice
from graphs.lexical.analysis import slug
from graphs.markdown.document import Document
from graphs.markdown.parser import parse
from graphs.markdown.writer import render
from graphs.parameters import MAX_REMEMBERED_DOCUMENTS

_BUNDLE_VERSION = 1
_parse = lru_cache(maxsize=MAX_REMEMBERED_DOCUMENTS)(parse)


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
    return tuple(parse(text(), path=name) for name, text in _texts(Path(path)))


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
            document = _parse(text(), path=name)
        except DocumentError as error:
            notices.append(
                Notice(path=name, line=error.line, code="document_invalid", detail=error.detail)
            )
        else:
            documents.append(document)
            notices += document.notices
    return tuple(documents), tuple(notices)


def write(documents: Iterable[Document], folder: str | Path) -> tuple[Path, ...]:
    """Write *documents* into *folder*, which is made if need be.

    Returns:
        The files, in the order of the documents. A document without a path is named by its title.

    Raises:
        GraphError: A document's path leads out of the folder, or two documents share one.
    """
    root = Path(folder)
    files: dict[Path, Document] = {}
    for document in documents:
        file = root / _inside(document)
        if file in files:
            raise GraphError(f"two documents want the file {str(file)!r}: give one another path")
        files[file] = document
    for file, document in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(render(document), encoding="utf-8")
    return tuple(files)


def _texts(path: Path) -> Iterator[tuple[str, Callable[[], str]]]:
    """Yield the path of each document, and what reads its text."""
    if path.is_dir():
        for file in sorted(file for file in path.rglob("*.md") if file.is_file()):
            name = file.relative_to(path).as_posix()
            yield name, partial(_text, file, name)
        return
    if not path.is_file():
        raise GraphError(
            f"there is no file or folder {str(path)!r}: create it, or correct the path"
        )
    if path.suffix == ".json":
        yield from _bundle(path)
        return
    yield path.name, partial(_text, path, path.name)


def _text(file: Path, path: str) -> str:
    data = file.read_bytes()
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DocumentError("not UTF-8: save the file as UTF-8", path=path, line=line) from error


def _bundle(file: Path) -> Iterator[tuple[str, Callable[[], str]]]:
    try:
        bundle = json.loads(_text(file, file.name))
    except (json.JSONDecodeError, RecursionError) as error:
        raise GraphError(f"the bundle {str(file)!r} is not JSON: {error}") from error
    version = bundle.get("version") if isinstance(bundle, dict) else None
    if version != _BUNDLE_VERSION:
        raise GraphError(f"the bundle {str(file)!r} has version {version!r}: version 1 is read")
    entries = bundle.get("documents")
    if not isinstance(entries, list):
        raise GraphError(f"the bundle {str(file)!r} has no list `documents`: add it")
    for path, content in [_entry(entry, file) for entry in entries]:
        yield path, partial(str, content)


def _entry(entry: object, file: Path) -> tuple[str, str]:
    path = entry.get("path") if isinstance(entry, dict) else None
    content = entry.get("content") if isinstance(entry, dict) else None
    if not (isinstance(path, str) and path.strip() and isinstance(content, str)):
        raise GraphError(f"an entry of {str(file)!r} lacks text `path` or `content`: add them")
    return path, content


def _inside(document: Document) -> PurePosixPath:
    path = PurePosixPath(document.path or f"{slug(document.title or document.id)}.md")
    if path.is_absolute() or ".." in path.parts:
        raise GraphError(f"the path {document.path!r} leads out of the folder: make it relative")
    return path
