"""What can go wrong in a graph.

GraphError
├── DocumentError
├── QueryError
│   └── QueryTimeoutError
└── ExtraError

A rule of a document that cannot be read is no error: it is passed over and leaves a `Notice`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Code = Literal[
    "key_unknown",
    "value_invalid",
    "edge_invalid",
    "predicate_unknown",
    "language_invalid",
    "date_invalid",
    "prefix_invalid",
    "weight_invalid",
    "document_invalid",
]
"""What is wrong with a rule; `docs/markdown-ld.md` says it in full."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """A rule of a document that was passed over, and how to mend it."""

    path: str
    """The document's path; empty when the text came from no file."""
    line: int
    """The line, counted from 1; 0 when the fault belongs to the whole document."""
    code: Code
    """What kind of fault it is."""
    detail: str
    """What is wrong and how to mend it, without the place."""

    def __str__(self) -> str:
        """Write it as an editor can jump to: ``path:line: detail``."""
        return f"{self.path or 'document'}:{self.line}: {self.detail}"


class GraphError(Exception):
    """A fault of a graph, with what to do about it."""


class DocumentError(GraphError):
    """A document cannot be read; the message names the line and the remedy."""

    def __init__(self, detail: str, *, path: str = "", line: int = 0) -> None:
        super().__init__(f"{path or 'document'}:{line}: {detail}")
        self.path = path
        """The document's path as it was given; empty when the text came from no file."""
        self.line = line
        """The line, counted from 1; 0 when the fault belongs to the whole document."""
        self.detail = detail
        """What is wrong and how to mend it, without the place."""


class QueryError(GraphError):
    """A SPARQL query is refused or cannot be answered."""


class QueryTimeoutError(QueryError):
    """A query took longer than it may; a narrower one helps."""

    def __init__(self, timeout_s: float) -> None:
        super().__init__(f"the query took longer than {timeout_s:g} s: ask for less")
        self.timeout_s = timeout_s
        """The limit that was passed, in seconds."""


class ExtraError(GraphError):
    """An optional part is not installed; the message says how to install it."""

    def __init__(self, extra: str, *, package: str) -> None:
        super().__init__(f"{package} is not installed: pip install 'tool-gateway[{extra}]'")
        self.extra = extra
        """The name of the extra."""
