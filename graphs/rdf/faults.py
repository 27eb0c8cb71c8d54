"""What a graph may be wrong in, by the shapes of the dialect."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SHAPES_FILE = "shapes.ttl"
Severity = Literal["violation", "warning", "info"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One place where a graph is not as its shapes say."""

    node: str
    """The node that is at fault."""
    path: str
    """The IRI of the predicate; empty if the fault is no predicate's."""
    value: str
    """The value that is at fault; empty if one is missing."""
    severity: Severity
    detail: str
    """What is wrong."""
