"""What can go wrong in a graph.

GraphError
└── DocumentError
"""

from __future__ import annotations


class GraphError(Exception):
    """Tell what is wrong with a graph and what to do about it."""


class DocumentError(GraphError):
    """Tell which line of which document cannot be read, and how to mend it."""

    path: str
    """The document's path as it was given; empty when the text came from no file."""
    line: int
    """The line, counted from 1; 0 when the fault belongs to the whole document."""
    detail: str
    """What is wrong and how to mend it, without the place."""

    def __init__(self, detail: str, *, path: str = "", line: int = 0) -> None:
        super().__init__(f"{path or 'document'}:{line}: {detail}")
        self.path = path
        self.line = line
        self.detail = detail
