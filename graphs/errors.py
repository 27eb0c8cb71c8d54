"""Errors of the package `graphs`.

    GraphError
    + DocumentError
    + QueryError
      + QueryTimeoutError
    + ExtraError

An unreadable rule of a document does not raise an error. It is skipped with a `Notice`.
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
"""Codes of skipped rules; `docs/markdown-ld.md` has their full meanings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """A skipped rule of a document, and how to fix it."""

    path: str
    """Path of the document; empty if the text does not come from a file."""
    line: int
    """Line number, from 1; 0 if the problem concerns the whole document."""
    code: Code
    """Kind of problem."""
    detail: str
    """Problem and remedy, without the path and line."""

    def __str__(self) -> str:
        return f"{self.path or 'document'}:{self.line}: {self.detail}"


class GraphError(Exception):
    """Base class of the errors of graphs. Most messages contain a remedy."""


class DocumentError(GraphError):
    """A document cannot be read."""

    def __init__(self, detail: str, *, path: str = "", line: int = 0) -> None:
        super().__init__(f"{path or 'document'}:{line}: {detail}")
        self.path = path
        """Path of the document as given; empty if the text does not come from a file."""
        self.line = line
        """Line number, from 1; 0 if the problem concerns the whole document."""
        self.detail = detail
        """Problem, and a remedy if known, without the path and line."""


class QueryError(GraphError):
    """A SPARQL query is refused or cannot be answered."""


class QueryTimeoutError(QueryError):
    """A query exceeded its time limit."""

    def __init__(self, timeout_s: float) -> None:
        super().__init__(f"the query took longer than {timeout_s:g} s: ask for less")
        self.timeout_s = timeout_s
        """Time limit of the query, in seconds."""


class ExtraError(GraphError):
    """An optional dependency is not installed."""

    def __init__(self, extra: str, *, package: str) -> None:
        super().__init__(f"{package} is not installed: pip install 'tool-gateway[{extra}]'")
        self.extra = extra
        """Name of the extra."""
