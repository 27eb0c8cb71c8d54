"""A document and the parts that it is made of, as values.

Lines tell where something stands, not what it says: they do not count in comparisons.
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
    """A name of the vocabulary, or an absolute IRI; empty in a ban of every predicate."""
    object: str
    """Id, path, name or label of the object."""
    weight: float = 1.0
    """How sure the statement is, in (0, 1]."""
    line: int = field(default=0, compare=False)
    """The line it stands on, counted from 1; 0 if it was not read from a text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A reference to another thing by id, path, name or label."""

    target: str
    """What it points to, as it was written."""
    label: str = ""
    """What to call it; empty if the target says it."""
    types: tuple[str, ...] = ()
    """What it is: schema.org names, prefixed names or IRIs."""
    same_as: tuple[str, ...] = ()
    """Where else the same thing is described: IRIs or prefixed names."""
    line: int = field(default=0, compare=False)
    """The line it stands on, counted from 1; 0 if it was not read from a text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A text about the document, in a language or of a datatype of its own."""

    predicate: str
    """A name of the vocabulary, or an absolute IRI."""
    value: str
    """The text."""
    language: str = ""
    """The BCP 47 language; empty if it has none."""
    datatype: str = ""
    """The datatype's IRI or prefixed name; empty for plain text."""
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
    search_text: str = ""
    """What a search for the thing itself reads in place of its own description; no fact."""
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
    """Edges that may not be derived; only the host's own documents forbid."""
    texts: tuple[Text, ...] = ()
    """Texts in further languages, of further predicates or of a datatype."""
    sections: tuple[Section, ...] = ()
    """The body, heading by heading."""
    language: str = ""
    """The BCP 47 language of its texts; empty if unknown."""
    prefixes: tuple[tuple[str, str], ...] = ()
    """Its own namespaces: prefix and IRI."""
    declared: bool = field(default=True)
    """Whether the host declares it; False for what an upstream says of itself."""
    notices: tuple[Notice, ...] = field(default=(), compare=False)
    """The rules of its text that were passed over."""
