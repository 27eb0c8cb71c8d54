"""One statement of the graph."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One statement of the graph, and where it comes from."""

    subject: str
    """A node id."""
    predicate: str
    """A name of the vocabulary, or an absolute IRI."""
    object: str
    """A node id, or a text if `literal`."""
    literal: bool
    """Whether the object is a text."""
    weight: float = 1.0
    """How sure the statement is, in (0, 1]; the predicate's own weight comes on top."""
    language: str = ""
    """The BCP 47 language of a text; empty if unknown."""
    datatype: str = ""
    """The datatype's IRI of a text; empty for plain text."""
    path: str = ""
    """The file it was read from; empty if from none."""
    line: int = 0
    """The line of the file, counted from 1; 0 if unknown."""
    origin: str = ""
    """Which rule derived it; empty if a document says it."""
    declared: bool
    """Whether the host declares it."""
