"""One Markdown-LD text, and the `Document` that it says.

* ``parse(render(document)) == document`` for every document with an id whose sections hold
  Markdown that stands by itself (no heading, no unclosed fence).
* Lines tell where something stands, not what it says: they do not count in comparisons.
* A document is data: nothing in it is fetched, run or believed.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from graphs.errors import DocumentError, Notice
from graphs.facts.vocabulary import DOCUMENT_BASE
from graphs.lexical.analysis import slug
from graphs.markdown import body
from graphs.markdown.fields import Fields
from graphs.markdown.parts import Edge, Link, Section, Text

MAX_CHARS = 2 * 1024 * 1024
MAX_LINES = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """What one Markdown-LD text says about one thing."""

    id: str
    """The IRI, or any unique text, that names the thing."""
    path: str = ""
    """Where the text was read, relative to its folder; empty if it came from no file."""
    url: str = ""
    """Where the thing is published, if the id does not say it."""
    title: str
    """The name of the thing."""
    summary: str = ""
    """One or two sentences about it."""
    published: str = ""
    """When it was published, as ISO 8601."""
    modified: str = ""
    """When it was changed last, as ISO 8601."""
    source_project: str = ""
    """The project that it comes from."""
    types: tuple[str, ...] = ()
    """Further types: schema.org names, prefixed names or IRIs."""
    tags: tuple[str, ...] = ()
    """Words to find it by."""
    keywords: tuple[str, ...] = ()
    """More words to find it by."""
    aliases: tuple[str, ...] = ()
    """Its other names."""
    authors: tuple[Link, ...] = ()
    """Who wrote it."""
    about: tuple[Link, ...] = ()
    """Labels of its topics."""
    hints: tuple[Link, ...] = ()
    """Things that it mentions."""
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
    entities: tuple[Link, ...] = ()
    """Other things that it describes: their names, types and addresses elsewhere."""
    edges: tuple[Edge, ...] = ()
    """Every other statement, those of the body included."""
    forbidden: tuple[Edge, ...] = ()
    """Edges that nobody may derive; only the host's own documents forbid."""
    texts: tuple[Text, ...] = ()
    """Texts in further languages, of further predicates or of a datatype."""
    sections: tuple[Section, ...] = ()
    """The body, heading by heading."""
    language: str = ""
    """The BCP 47 language of its texts; empty if unknown."""
    prefixes: tuple[tuple[str, str], ...] = ()
    """Its own namespaces: prefix and IRI."""
    declared: bool = field(default=True)
    """Whether the host stands for it; False for what an upstream says of itself."""
    notices: tuple[Notice, ...] = field(default=(), compare=False)
    """The rules of its text that were passed over."""


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
    if len(text) > MAX_CHARS or text.count("\n") > MAX_LINES:
        raise DocumentError("more than 2 MB or 20,000 lines: split the document", path=path)
    read = body.read(text, path=path)
    front = Fields.of(read.front, path=path)
    document = _headed(front, body.sections(read), path)
    notices: list[Notice] = []
    said = body.statements(read, front.prefixes, notices)
    said = tuple(dict.fromkeys(body.about(edge, document.id) for edge in said))
    written = dict.fromkeys(body.about(edge, document.id) for edge in front.edges())
    return replace(
        _linked(document, front),
        edges=(*(edge for edge in written if edge not in said), *said),
        forbidden=tuple(body.about(edge, document.id) for edge in front.forbidden()),
        texts=front.other_texts(),
        prefixes=tuple(front.prefixes.items()),
        declared=declared,
        # Last: until here each field may leave a notice.
        notices=tuple(sorted([*front.notices, *notices], key=lambda notice: notice.line)),
    )


def _headed(front: Fields, sections: tuple[Section, ...], path: str) -> Document:
    """Give the document with its name and its single texts."""
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
    """Give *document* with its lists of texts and links."""
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
