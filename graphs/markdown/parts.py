"""The parts that a document is made of, as values."""

from __future__ import annotations

from dataclasses import dataclass, field


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
