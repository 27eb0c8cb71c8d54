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
    """Predicate: a name in the vocabulary, or an absolute IRI. In a forbidden edge, empty means
    every predicate."""
    object: str
    """Id, path, name or label of the object."""
    weight: float = 1.0
    """Certainty of the statement, in (0, 1]."""
    line: int = field(default=0, compare=False)
    """Line number of the statement, from 1; 0 if it was not read from a text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A reference to a thing by id, path, name or label."""

    target: str
    """Id, path, name or label of the thing, as written in the text."""
    label: str = ""
    """Name of the thing; empty if `target` already is its name."""
    types: tuple[str, ...] = ()
    """Types of the thing: schema.org names, prefixed names or IRIs."""
    same_as: tuple[str, ...] = ()
    """Descriptions of the same thing elsewhere: IRIs or prefixed names."""
    line: int = field(default=0, compare=False)
    """Line number of the reference, from 1; 0 if it was not read from a text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A text about the thing that a document describes, with a language or datatype of its own."""

    predicate: str
    """Predicate: a name in the vocabulary, or an absolute IRI."""
    value: str
    language: str = ""
    """BCP 47 language of the text; empty if unknown."""
    datatype: str = ""
    """Datatype of the text as an IRI or prefixed name; empty for plain text."""
    line: int = field(default=0, compare=False)
    """Line number of the text, from 1; 0 if it was not read from a document."""


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
    """Line number of the heading, from 1. For text before the first heading, the first line of the
    body."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """Description of one thing, read from one Markdown-LD text."""

    id: str
    """Id of the thing, which is unique: an IRI or any text."""
    path: str = ""
    """Path of the text, relative to its folder; empty if it does not come from a file."""
    url: str = ""
    """URL where the thing is published, if it differs from the id."""
    title: str
    """Name of the thing."""
    summary: str = ""
    """Summary of the thing in one or two sentences."""
    search_text: str = ""
    """Text that is searched instead of the thing's description. It does not become a fact of the
    graph."""
    published: str = ""
    """Date of publication, ISO 8601."""
    modified: str = ""
    """Date of the last change of the thing, ISO 8601."""
    source_project: str = ""
    """Project from which the thing comes."""
    types: tuple[str, ...] = ()
    """Types of the thing: schema.org names, prefixed names or IRIs."""
    tags: tuple[str, ...] = ()
    """Tags of the thing, which are searchable words."""
    keywords: tuple[str, ...] = ()
    """Further searchable words about the thing."""
    aliases: tuple[str, ...] = ()
    """Other names of the thing."""
    authors: tuple[Link, ...] = ()
    about: tuple[Link, ...] = ()
    """Topics of the thing."""
    hints: tuple[Link, ...] = ()
    """Things that the document mentions."""
    groups: tuple[Link, ...] = ()
    """Groups of which the thing is a member."""
    related: tuple[Link, ...] = ()
    """Similar things."""
    next_steps: tuple[Link, ...] = ()
    """Things that are often used after this one."""
    requires: tuple[Link, ...] = ()
    """Things that must be used before this one."""
    consumes: tuple[Link, ...] = ()
    """Kinds of data that the thing takes as input."""
    produces: tuple[Link, ...] = ()
    """Kinds of data that the thing gives as output."""
    entities: tuple[Link, ...] = ()
    """Further things that the document describes, with names, types and URLs."""
    edges: tuple[Edge, ...] = ()
    """All other statements, including those of the body."""
    forbidden: tuple[Edge, ...] = ()
    """Edges that rules must not derive. Only documents of the host can forbid edges."""
    texts: tuple[Text, ...] = ()
    """Texts about the thing in other languages, with other predicates or with a datatype."""
    sections: tuple[Section, ...] = ()
    """Body of the document, as a sequence of sections."""
    language: str = ""
    """BCP 47 language of the document's texts; empty if unknown."""
    prefixes: tuple[tuple[str, str], ...] = ()
    """Namespaces that the document defines, as pairs of prefix and IRI."""
    declared: bool = field(default=True)
    """True if the host is the author of the document, False if an upstream is."""
    notices: tuple[Notice, ...] = field(default=(), compare=False)
    """Rules of the document that could not be read and were skipped."""
