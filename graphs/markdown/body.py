"""The Markdown around and under the front matter: sections, links and arrows.

* Only the block structure is parsed: inline parsing can be made slow by hostile text, and facts
  need none of it.
* A link to another document, ``[[a wikilink]]`` and ``A --predicate--> B`` are statements.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.front_matter import front_matter_plugin

from graphs.errors import Code, DocumentError, Notice
from graphs.facts.vocabulary import predicate_names, resolve
from graphs.markdown import frontmatter
from graphs.markdown.document import Edge, Section
from graphs.markdown.frontmatter import Value

_FENCE = "---"
_THIS = frozenset({"", "article", "document", "this article", "this document"})
_CODE = re.compile(r"`[^`\n]*`")
_WIKILINK = re.compile(r"\[\[([^\[\]|\n]{1,512})(?:\|[^\[\]\n]{0,512})?\]\]")
_LINK = re.compile(
    r"\]\(<?([^()<>\s]{1,1024}\.(?:md|markdown))(?:#[^()<>\s]{0,512})?>?\)", re.IGNORECASE
)
_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:")


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """One text, taken apart."""

    front: Mapping[str, Value]
    """The front matter; empty if there is none."""
    tokens: tuple[Token, ...]
    """The blocks of the Markdown, as markdown-it names them."""
    lines: tuple[str, ...]
    """The lines of the text, the front matter's included."""
    start: int
    """How many lines the front matter takes."""
    path: str
    """Where the text was read; relative links start there."""


def read(text: str, *, path: str = "") -> Body:
    """Take a Markdown text apart.

    Raises:
        DocumentError: The front matter is broken.
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
    return Body(front=front, tokens=tuple(parsed), lines=tuple(lines), start=start, path=path)


def sections(body: Body) -> tuple[Section, ...]:
    """Return the sections of *body* in order; text before the first heading is one of level 0."""
    marks: list[tuple[int, int, int, str]] = [(body.start, body.start, 0, "")]
    for token, inline in pairwise(body.tokens):
        if token.type == "heading_open" and token.level == 0 and token.map:
            heading = " ".join(inline.content.split())
            marks.append((token.map[0], token.map[1], int(token.tag[1:]), heading))
    ends = [*(first for first, *_ in marks[1:]), len(body.lines)]
    found = (
        Section(heading=heading, level=level, text=_trimmed(body.lines[after:end]), line=first + 1)
        for (first, after, level, heading), end in zip(marks, ends, strict=True)
    )
    return tuple(section for section in found if section.level or section.text)


def statements(body: Body, prefixes: Mapping[str, str], notices: list[Notice]) -> tuple[Edge, ...]:
    """Return the statements of *body* in order; an empty subject means the document itself.

    Args:
        body: The text.
        prefixes: The document's own namespaces, for the predicates of arrows.
        notices: Takes a notice of each arrow that cannot be read.
    """
    reader = _Reader(path=body.path, prefixes=prefixes, notices=notices)
    return tuple(
        edge
        for before, token in pairwise(body.tokens)
        if token.type == "inline"
        for edge in reader.statements(token, heading=before.type == "heading_open")
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


def _trimmed(lines: Sequence[str]) -> str:
    full = [at for at, line in enumerate(lines) if line.strip()]
    return "\n".join(lines[full[0] : full[-1] + 1]) if full else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reader:
    path: str
    prefixes: Mapping[str, str]
    notices: list[Notice]

    def statements(self, token: Token, *, heading: bool) -> Iterator[Edge]:
        # A heading is one line, also where it was written on several.
        lines = [" ".join(token.content.split())] if heading else token.content.split("\n")
        for number, text in enumerate(lines, (token.map or [0])[0] + 1):
            arrow = self._arrow(text, number)
            if arrow:
                yield arrow
            else:
                yield from self._mentions(_CODE.sub("", text), number)

    def _arrow(self, text: str, line: int) -> Edge | None:
        # An arrow inside a code span is an example, one between two of them is not.
        bare = _CODE.sub(lambda code: "`" * len(code[0]), text)
        end = bare.find("-->")
        start = bare.rfind("--", 0, max(end, 0))
        if start < 0:
            return None
        subject, word, target = text[:start], text[start + 2 : end], text[end + 3 :]
        if not word or word != word.strip():
            return None
        if subject and not subject[-1].isspace():
            return None
        predicate = resolve(word, self.prefixes)
        if predicate is None or not target.strip() or "-->" in bare[end + 3 :]:
            self._refuse(word, target, line, known_word=predicate is not None)
            return None
        ends = self._end(subject), self._end(target)
        return Edge(subject=ends[0], predicate=predicate, object=ends[1], line=line)

    def _refuse(self, word: str, target: str, line: int, *, known_word: bool) -> None:
        code: Code = "edge_invalid"
        if not known_word:
            if not target.strip():
                return
            code = "predicate_unknown"
            detail = (
                f"the arrow names an unknown predicate {word!r}: use an IRI or {predicate_names()}"
            )
        elif not target.strip():
            detail = "the arrow leads nowhere: write what it leads to"
        else:
            detail = "two arrows on one line: write each on its own"
        self.notices.append(Notice(path=self.path, line=line, code=code, detail=detail))

    def _end(self, text: str) -> str:
        bare = text.strip().strip("`").strip()
        if wikilink := _WIKILINK.fullmatch(bare):
            return wikilink[1].strip()
        link = _LINK.search(bare)
        return _relative(link[1], self.path) if link and bare.endswith(")") else bare

    def _mentions(self, text: str, line: int) -> Iterator[Edge]:
        targets = [match[1].strip() for match in _WIKILINK.finditer(text)]
        targets += [
            _relative(match[1], self.path)
            for match in _LINK.finditer(text)
            if not _SCHEME.match(match[1])
        ]
        for target in filter(None, targets):
            yield Edge(subject="", predicate="mentions", object=target, line=line)


def _relative(target: str, path: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
