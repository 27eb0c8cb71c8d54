"""One Markdown-LD text -> the `Document` that it describes.

* ``parse(render(document)) == document`` for every document with an id whose sections hold
  Markdown that stands by itself (no heading, no unclosed fence).
* A document is data: nothing in it is fetched, run or believed.
"""

from __future__ import annotations

from dataclasses import replace

from graphs.errors import DocumentError, Notice
from graphs.facts.vocabulary import DOCUMENT_BASE
from graphs.lexical.analysis import slug
from graphs.markdown import body
from graphs.markdown.document import Document, Section
from graphs.markdown.fields import Fields
from graphs.parameters import MAX_DOCUMENT_CHARS, MAX_DOCUMENT_LINES


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
    read = body.read(text, path=path)
    front = Fields.of(read.front, path=path)
    document = _headed(front, body.sections(read), path)
    notices: list[Notice] = []
    body_edges = body.statements(read, front.prefixes, notices)
    body_edges = tuple(dict.fromkeys(body.about(edge, document.id) for edge in body_edges))
    front_edges = dict.fromkeys(body.about(edge, document.id) for edge in front.edges())
    return replace(
        _linked(document, front),
        edges=(*(edge for edge in front_edges if edge not in body_edges), *body_edges),
        forbidden=tuple(body.about(edge, document.id) for edge in front.forbidden()),
        texts=front.other_texts(),
        prefixes=tuple(front.prefixes.items()),
        declared=declared,
        # Last: until here each field may leave a notice.
        notices=tuple(sorted([*front.notices, *notices], key=lambda notice: notice.line)),
    )


def _headed(front: Fields, sections: tuple[Section, ...], path: str) -> Document:
    """Return the document with its name and its single texts."""
    title = front.one("title") or _first_heading(sections)
    own = front.one("id")
    url = front.one("url")
    name = own or url or _default_id(path, title)
    if not name:
        raise DocumentError("nothing names the document: give it a `title` or an `id`", path=path)
    return Document(
        id=name,
        path=path,
        url=url if own else "",
        title=title or path.rpartition("/")[2].removesuffix(".md"),
        summary=front.one("summary"),
        published=front.date("published"),
        modified=front.date("modified"),
        source_project=front.one("source_project"),
        language=front.language(),
        sections=sections,
    )


def _linked(document: Document, front: Fields) -> Document:
    """Return *document* with its lists of texts and links."""
    return replace(
        document,
        types=front.texts("types"),
        tags=front.texts("tags"),
        keywords=front.texts("keywords"),
        aliases=front.texts("aliases"),
        authors=front.links("authors"),
        about=front.links("about"),
        hints=front.links("hints"),
        groups=front.links("groups"),
        related=front.links("related"),
        next_steps=front.links("next_steps"),
        requires=front.links("requires"),
        consumes=front.links("consumes"),
        produces=front.links("produces"),
        entities=front.links("entities"),
    )


def _first_heading(sections: tuple[Section, ...]) -> str:
    return next((section.heading for section in sections if section.level == 1), "")


def _default_id(path: str, title: str) -> str:
    stem = path.removesuffix(".md")
    return DOCUMENT_BASE + (stem or slug(title)) if stem or title else ""
