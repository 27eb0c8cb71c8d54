"""Documents and their parts, as values.

Line numbers are positions, so they are ignored in comparisons.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from graphs.errors import Notice


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """One statement: subject, predicate, object."""

    subject: str
    """Id, path, name or label of the subject."""
    predicate: str
    """Name in the vocabulary, or an absolute IRI. In a ban, empty means every predicate."""
    object: str
    """Id, path, name or label of the object."""
    weight: float = 1.0
    """Certainty of the statement, in (0, 1]."""
    line: int = field(default=0, compare=False)
    """Line number, from 1; 0 if it was not read from a text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A reference to another thing by id, path, name or label."""

    target: str
    """Target of the link, as written."""
    label: str = ""
    """Name of the target; empty if *target* already is its name."""
    types: tuple[str, ...] = ()
    """Types of the target: schema.org names, prefixed names or IRIs."""
    same_as: tuple[str, ...] = ()
    """Other descriptions of the same thing: IRIs or prefixed names."""
    line: int = field(default=0, compare=False)
    """Line number, from 1; 0 if it was not read from a text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A text about the document, with its own language or datatype."""

    predicate: str
    """Name in the vocabulary, or an absolute IRI."""
    value: str
    language: str = ""
    """BCP 47 language; empty if unknown."""
    datatype: str = ""
    """Datatype as an IRI or prefixed name; empty for plain text."""
    line: int = field(default=0, compare=False)
    """Line number, from 1; 0 if it was not read from a text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A heading and the text under it."""

    heading: str
    """Text of the heading as Markdown; empty for the text before the first heading."""
    level: int
    """Level of the heading, 1 to 6; 0 for the text before the first heading."""
    text: str
    """The text as Markdown, without blank lines at its ends."""
    line: int = field(default=0, compare=False)
    """Line number of the heading, from 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """Description of one thing, read from one Markdown-LD text."""

    id: str
    """Unique name of the thing, an IRI or any text."""
    path: str = ""
    """Path of the text, relative to its folder; empty if it does not come from a file."""
    url: str = ""
    """URL where the thing is published, if it differs from the id."""
    title: str
    """Name of the thing."""
    summary: str = ""
    """Summary in one or two sentences."""
    search_text: str = ""
    """Text that ranks in place of the thing's own description; not a fact."""
    published: str = ""
    """Date of publication, ISO 8601."""
    modified: str = ""
    """Date of the last change, ISO 8601."""
    source_project: str = ""
    """Project from which the thing comes."""
    types: tuple[str, ...] = ()
    """Further types: schema.org names, prefixed names or IRIs."""
    tags: tuple[str, ...] = ()
    """Searchable words."""
    keywords: tuple[str, ...] = ()
    """Further searchable words."""
    aliases: tuple[str, ...] = ()
    """Other names."""
    authors: tuple[Link, ...] = ()
    about: tuple[Link, ...] = ()
    """Labels of the topics."""
    hints: tuple[Link, ...] = ()
    """Mentioned things."""
    groups: tuple[Link, ...] = ()
    """Labels of the groups of which the thing is a member."""
    related: tuple[Link, ...] = ()
    """Documents of similar things."""
    next_steps: tuple[Link, ...] = ()
    """Documents of things that are often used after this one."""
    requires: tuple[Link, ...] = ()
    """Documents of things that must be used before this one."""
    consumes: tuple[Link, ...] = ()
    """Labels of the kinds of data that the thing takes."""
    produces: tuple[Link, ...] = ()
    """Labels of the kinds of data that the thing gives."""
    entities: tuple[Link, ...] = ()
    """Further things that the document describes: names, types and URLs."""
    edges: tuple[Edge, ...] = ()
    """All other statements, including those of the body."""
    forbidden: tuple[Edge, ...] = ()
    """Edges that must not be derived. Only documents of the host can forbid edges."""
    texts: tuple[Text, ...] = ()
    """Texts in other languages, with other predicates or with a datatype."""
    sections: tuple[Section, ...] = ()
    """Body, as a sequence of sections."""
    language: str = ""
    """BCP 47 language of the texts; empty if unknown."""
    prefixes: tuple[tuple[str, str], ...] = ()
    """The document's own namespaces, as pairs of prefix and IRI."""
    declared: bool = field(default=True)
    """True if the host declares the document, False if an upstream describes itself."""
    notices: tuple[Notice, ...] = field(default=(), compare=False)
    """Skipped rules of the text."""
