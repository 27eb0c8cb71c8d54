"""Body of a Markdown-LD text: sections, links and arrows (``Book a flight --nextStep--> Pay``).

The Markdown parser reads only the blocks, because hostile text can make inline parsing slow.
Regular expressions find links and arrows.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise

from markdown_it import MarkdownIt
from mdit_py_plugins.front_matter import front_matter_plugin

from graphs.errors import Code, DocumentError, Notice
from graphs.facts.vocabulary import PREDICATE_NAMES, resolve
from graphs.markdown.document import Edge, Section
from graphs.markdown.frontmatter import Key, Value, read

_FENCE = "---"
_CODE = re.compile(r"`[^`\n]*`")
_WIKILINK = re.compile(r"\[\[([^\[\]|\n]{1,512})(?:\|[^\[\]\n]{0,512})?\]\]")
_LINK = re.compile(
    r"\]\(<?([^()<>\s]{1,1024}\.(?:md|markdown))(?:#[^()<>\s]{0,512})?>?\)", re.IGNORECASE
)
_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:")


class Body:
    """Parser of the body of one Markdown-LD text with front matter.

    Links in the text are relative to *path*.

    Raises:
        DocumentError: If the front matter is invalid.
    """

    def __init__(self, text: str, *, path: str) -> None:
        text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
        text = text.replace("\0", "\ufffd")
        self._path = path
        self._tokens = _markdown().parse(text)
        self._lines = text.split("\n")
        self._start = 0
        """Number of lines of the front matter."""
        self.front: Mapping[Key, Value] = {}
        """Values of the front matter, keyed by key; empty without front matter."""
        if self._tokens and self._tokens[0].type == "front_matter":
            self.front = read(self._tokens[0].content, path=path)
            self._start = (self._tokens[0].map or [0, 0])[1]
        elif self._lines[0].rstrip() == _FENCE:
            raise DocumentError(
                "the front matter is not closed: end it with a line `---`", path=path, line=1
            )

    def sections(self) -> tuple[Section, ...]:
        """Return the sections in order. Text before the first heading is a section of level 0."""
        marks: list[tuple[int, int, int, str]] = [(self._start, self._start, 0, "")]
        for token, inline in pairwise(self._tokens):
            if token.type == "heading_open" and token.level == 0 and token.map:
                heading = " ".join(inline.content.split())
                marks.append((token.map[0], token.map[1], int(token.tag[1:]), heading))
        ends = [*(first for first, *_ in marks[1:]), len(self._lines)]
        return tuple(
            Section(heading=heading, level=level, text=text, line=first + 1)
            for (first, after, level, heading), end in zip(marks, ends, strict=True)
            if (text := _without_blank_ends(self._lines[after:end])) or level
        )

    def statements(self, prefixes: Mapping[str, str], notices: list[Notice]) -> Iterator[Edge]:
        """Yield the statements in order. An empty subject means the document itself.

        *prefixes* are the document's namespaces. Arrows that cannot be read are added to *notices*.
        """
        for before, token in pairwise(self._tokens):
            if token.type != "inline":
                continue
            lines = token.content.split("\n")
            if before.type == "heading_open":
                # A heading is one line, even if written on several.
                lines = [" ".join(token.content.split())]
            for number, text in enumerate(lines, (token.map or [0])[0] + 1):
                arrow = self._arrow(text, number, prefixes)
                if isinstance(arrow, Edge):
                    yield arrow
                    continue
                if arrow:
                    notices.append(arrow)
                yield from self._mentions(_CODE.sub("", text), number)

    def _arrow(self, text: str, line: int, prefixes: Mapping[str, str]) -> Edge | Notice | None:
        # An arrow inside a code span is an example. An arrow between two code spans is a statement.
        bare = _CODE.sub(lambda code: "`" * len(code[0]), text)
        end = bare.find("-->")
        start = bare.rfind("--", 0, max(end, 0))
        subject, word, target = text[:start], text[start + 2 : end], text[end + 3 :]
        if start < 0 or not word or word != word.strip() or subject[-1:].strip():
            return None
        predicate = resolve(word, prefixes)
        code: Code = "edge_invalid"
        if predicate is None:
            if not target.strip():
                return None
            code, remedy = "predicate_unknown", f"use an IRI or {PREDICATE_NAMES}"
            detail = f"the arrow names an unknown predicate {word!r}: {remedy}"
        elif not target.strip():
            detail = "the arrow has no target: write one after it"
        elif "-->" in bare[end + 3 :]:
            detail = "two arrows on one line: write each on its own"
        else:
            ends = self._arrow_end(subject), self._arrow_end(target)
            return Edge(subject=ends[0], predicate=predicate, object=ends[1], line=line)
        return Notice(path=self._path, line=line, code=code, detail=detail)

    def _arrow_end(self, text: str) -> str:
        bare = text.strip().strip("`").strip()
        if wikilink := _WIKILINK.fullmatch(bare):
            return wikilink[1].strip()
        link = _LINK.search(bare)
        return self._relative(link[1]) if link and bare.endswith(")") else bare

    def _mentions(self, text: str, line: int) -> Iterator[Edge]:
        targets = [match[1].strip() for match in _WIKILINK.finditer(text)]
        links = (match[1] for match in _LINK.finditer(text))
        targets += [self._relative(link) for link in links if not _SCHEME.match(link)]
        for target in filter(None, targets):
            yield Edge(subject="", predicate="mentions", object=target, line=line)

    def _relative(self, target: str) -> str:
        return posixpath.normpath(posixpath.join(posixpath.dirname(self._path), target))


@lru_cache(maxsize=1)
def _markdown() -> MarkdownIt:
    return MarkdownIt("commonmark").use(front_matter_plugin).disable("inline")


def _without_blank_ends(lines: Sequence[str]) -> str:
    full = [index for index, line in enumerate(lines) if line.strip()]
    return "\n".join(lines[full[0] : full[-1] + 1]) if full else ""
