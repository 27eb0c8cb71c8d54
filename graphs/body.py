"""The Markdown around and under the front matter: sections, links and arrows.

* Only the block structure is parsed: inline parsing can be made slow by hostile text, and facts
  need none of it.
* A link to another document, ``[[a wikilink]]`` and ``A --predicate--> B`` are statements.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise

from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.front_matter import front_matter_plugin

from graphs import frontmatter
from graphs.errors import DocumentError
from graphs.frontmatter import Value
from graphs.vocabulary import resolve

_FENCE = "---"
_THIS = frozenset({"", "article", "document", "this article", "this document"})
_CODE = re.compile(r"`[^`\n]*`")
_WIKILINK = re.compile(r"\[\[([^\[\]|\n]{1,512})(?:\|[^\[\]\n]{0,512})?\]\]")
_LINK = re.compile(
    r"\]\(<?([^()<>\s]{1,1024}\.(?:md|markdown))(?:#[^()<>\s]{0,512})?>?\)", re.IGNORECASE
)
_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:")


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """One statement: subject, predicate, object."""

    subject: str
    """Id, path, name or label of the subject."""
    predicate: str
    """A name of the vocabulary, or an absolute IRI."""
    object: str
    """Id, path, name or label of the object."""
    line: int = field(default=0, compare=False)
    """The line it stands on, counted from 1; 0 if it was not read from a text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A heading and the text under it."""

    heading: str
    """The heading's text as Markdown; empty for the text before the first heading."""
    level: int
    """1 to 6; 0 for the text before the first heading."""
    text: str
    """The text as Markdown, without blank lines at its ends."""
    line: int = field(default=0, compare=False)
    """The line of the heading, counted from 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """The parts of one text."""

    front: Mapping[str, Value]
    """The front matter; empty if there is none."""
    sections: tuple[Section, ...]
    """The sections in order."""
    edges: tuple[Edge, ...]
    """The statements in order; an empty subject means the document itself."""


def read(text: str, *, path: str = "") -> Body:
    """Take a Markdown text apart.

    Raises:
        DocumentError: The front matter is broken, or an arrow names an unknown predicate.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    text = text.replace("\0", "\ufffd")
    parsed = _markdown().parse(text)
    lines = text.split("\n")
    front: Mapping[str, Value] = {}
    start = 0
    if parsed and parsed[0].type == "front_matter":
        front = frontmatter.read(parsed[0].content, path=path)
        start = (parsed[0].map or [0, 0])[1]
    elif lines[0].rstrip() == _FENCE:
        raise DocumentError(
            "the front matter is not closed: end it with a line `---`", path=path, line=1
        )
    return Body(
        front=front,
        sections=tuple(_sections(parsed, lines, start)),
        edges=tuple(
            edge
            for before, token in pairwise(parsed)
            if token.type == "inline"
            for edge in _statements(token, path, heading=before.type == "heading_open")
        ),
    )


def write(section: Section) -> str:
    """Write *section* as Markdown."""
    closing = " #" if section.heading.endswith("#") else ""
    heading = f"\n{'#' * section.level} {section.heading}{closing}\n" if section.level else ""
    return f"{heading}\n{section.text}\n" if section.text else heading


def about(edge: Edge, document: str) -> Edge:
    """Put *document* where the edge says ``this document`` or leaves the subject out."""
    if edge.subject.casefold() in _THIS:
        edge = replace(edge, subject=document)
    return replace(edge, object=document) if edge.object.casefold() in _THIS else edge


@lru_cache(maxsize=1)
def _markdown() -> MarkdownIt:
    return MarkdownIt("commonmark").use(front_matter_plugin).disable("inline")


def _sections(parsed: list[Token], lines: list[str], start: int) -> Iterator[Section]:
    marks: list[tuple[int, int, int, str]] = [(start, start, 0, "")]
    for token, inline in pairwise(parsed):
        if token.type == "heading_open" and token.level == 0 and token.map:
            heading = " ".join(inline.content.split())
            marks.append((token.map[0], token.map[1], int(token.tag[1:]), heading))
    ends = [*(first for first, *_ in marks[1:]), len(lines)]
    for (first, after, level, heading), end in zip(marks, ends, strict=True):
        text = _trimmed(lines[after:end])
        if level or text:
            yield Section(heading=heading, level=level, text=text, line=first + 1)


def _trimmed(lines: list[str]) -> str:
    full = [at for at, line in enumerate(lines) if line.strip()]
    return "\n".join(lines[full[0] : full[-1] + 1]) if full else ""


def _statements(token: Token, path: str, *, heading: bool) -> Iterator[Edge]:
    # A heading is one line, also where it was written on several.
    lines = [" ".join(token.content.split())] if heading else token.content.split("\n")
    for number, text in enumerate(lines, (token.map or [0])[0] + 1):
        arrow = _arrow(text, path, number)
        if arrow:
            yield arrow
        else:
            yield from _mentions(_CODE.sub("", text), path, number)


def _arrow(text: str, path: str, line: int) -> Edge | None:
    left, arrow, target = text.partition("-->")
    subject, dashes, word = left.rpartition("--")
    if not (arrow and dashes and word and word == word.strip() and target.strip()):
        return None
    if subject and not subject[-1].isspace():
        return None
    predicate = resolve(word)
    if predicate is None:
        detail = (
            f"the arrow names an unknown predicate {word!r}: use one of the vocabulary, or an IRI"
        )
        raise DocumentError(detail, path=path, line=line)
    return Edge(
        subject=_end(subject, path), predicate=predicate, object=_end(target, path), line=line
    )


def _end(text: str, path: str) -> str:
    bare = text.strip().strip("`").strip()
    if wikilink := _WIKILINK.fullmatch(bare):
        return wikilink[1].strip()
    link = _LINK.search(bare)
    return _relative(link[1], path) if link and bare.endswith(")") else bare


def _mentions(text: str, path: str, line: int) -> Iterator[Edge]:
    targets = [match[1].strip() for match in _WIKILINK.finditer(text)]
    targets += [
        _relative(match[1], path) for match in _LINK.finditer(text) if not _SCHEME.match(match[1])
    ]
    for target in filter(None, targets):
        yield Edge(subject="", predicate="mentions", object=target, line=line)


def _relative(target: str, path: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
