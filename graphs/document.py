"""One Markdown-LD text, and the `Document` that it says.

* ``parse(render(document)) == document`` for every document with an id whose sections hold
  Markdown that stands by itself (no heading, no unclosed fence).
* Lines tell where something stands, not what it says: they do not count in comparisons.
* A document is data: nothing in it is fetched, run or believed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from graphs import body, fields
from graphs.body import Edge, Section
from graphs.errors import DocumentError
from graphs.fields import Fields, Link
from graphs.text import slug
from graphs.vocabulary import DOCUMENT_BASE

MAX_CHARS = 2 * 1024 * 1024
MAX_LINES = 20_000
_LONE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """What one Markdown-LD text says about one thing."""

    id: str
    """The IRI, or any unique text, that names the thing."""
    path: str = ""
    """Where the text was read, relative to its folder; empty if it came from no file."""
    title: str
    """The name of the thing."""
    summary: str = ""
    """One or two sentences about it."""
    types: tuple[str, ...] = ()
    """Further types: schema.org names or IRIs."""
    tags: tuple[str, ...] = ()
    """Words to find it by."""
    keywords: tuple[str, ...] = ()
    """More words to find it by."""
    aliases: tuple[str, ...] = ()
    """Its other names."""
    groups: tuple[Link, ...] = ()
    """Labels of the groups it is a member of."""
    related: tuple[Link, ...] = ()
    """Documents that do something like it."""
    next_steps: tuple[Link, ...] = ()
    """Documents that are often used after it."""
    requires: tuple[Link, ...] = ()
    """Documents that must be used before it."""
    consumes: tuple[Link, ...] = ()
    """Labels of the kinds of data that it takes."""
    produces: tuple[Link, ...] = ()
    """Labels of the kinds of data that it gives."""
    edges: tuple[Edge, ...] = ()
    """Every other statement, those of the body included."""
    sections: tuple[Section, ...] = ()
    """The body, heading by heading."""
    language: str = ""
    """The BCP 47 language of its texts; empty if unknown."""
    declared: bool = field(default=True)
    """Whether the host stands for it; False for what an upstream says of itself."""


def parse(
    text: str, *, path: str = "", base: str = DOCUMENT_BASE, declared: bool = True
) -> Document:
    """Read one Markdown-LD text.

    Args:
        text: Front matter between ``---`` lines, if any, and a Markdown body.
        path: Where it was read; it resolves relative links and names the document in messages.
        base: What an id is made with if the text gives none: base + path without suffix, or
            base + slug of the title.
        declared: Whether the host stands for the text.

    Raises:
        DocumentError: The text cannot be read, or has neither id, path nor title.
    """
    if len(text) > MAX_CHARS or text.count("\n") > MAX_LINES:
        raise DocumentError("more than 2 MB or 20,000 lines: split the document", path=path)
    read = body.read(text, path=path)
    front = Fields.of(read.front, path=path)
    title = front.one("title") or _first_heading(read.sections)
    name = front.one("id") or _default_id(path, title, base)
    if not name:
        raise DocumentError("nothing names the document: give it a `title` or an `id`", path=path)
    said = tuple(dict.fromkeys(body.about(edge, name) for edge in read.edges))
    written = (body.about(edge, name) for edge in front.edges())
    return Document(
        id=name,
        path=path,
        title=title or path.rpartition("/")[2].removesuffix(".md"),
        summary=front.one("summary"),
        types=front.texts("types"),
        tags=front.texts("tags"),
        keywords=front.texts("keywords"),
        aliases=front.texts("aliases"),
        groups=front.links("groups"),
        related=front.links("related"),
        next_steps=front.links("next_steps"),
        requires=front.links("requires"),
        consumes=front.links("consumes"),
        produces=front.links("produces"),
        edges=(*(edge for edge in dict.fromkeys(written) if edge not in said), *said),
        sections=read.sections,
        language=front.language(),
        declared=declared,
    )


def render(document: Document) -> str:
    """Write *document* as Markdown-LD, the same text every time.

    Halves of surrogate pairs, which no file can hold, are replaced.
    """
    text = "".join(body.write(section) for section in document.sections)
    read = body.read(text, path=document.path)
    said = {body.about(edge, document.id) for edge in read.edges}
    front = [
        *(fields.line(key, getattr(document, key)) for key in ("id", "title", "summary")),
        *(fields.line(key, getattr(document, key)) for key in ("language",)),
        *(fields.rows(key, getattr(document, key)) for key in _LISTS),
        fields.edge_rows([edge for edge in document.edges if edge not in said], document.id),
    ]
    return _LONE.sub("\ufffd", f"---\n{''.join(front)}---\n{text}")


_LISTS = (
    "types", "tags", "keywords", "aliases", "groups", "related", "next_steps", "requires",
    "consumes", "produces",
)  # fmt: skip


def _first_heading(sections: tuple[Section, ...]) -> str:
    return next((section.heading for section in sections if section.level == 1), "")


def _default_id(path: str, title: str, base: str) -> str:
    stem = path.removesuffix(".md")
    return base + stem if stem else base + slug(title) if title else ""
