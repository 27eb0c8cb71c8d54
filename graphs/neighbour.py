"""What an expansion gives, and what an index remembers of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from graphs.adjacency import Memo, Role


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One statement on the way from a seed to a neighbour, as it was made."""

    subject: str
    """The node it is about."""
    predicate: str
    """A name of the vocabulary."""
    object: str
    """The node it points to."""
    path: str
    """The file it was read from; empty if from none."""
    line: int
    """The line of the file, counted from 1; 0 if unknown."""
    declared: bool
    """Whether the host stands for it."""
    origin: str = ""
    """Which rule derived it; empty if a document says it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbour:
    """A node near a seed."""

    node: str
    """The node's id; never a concept and never a seed."""
    role: Role
    """What it is to the seed."""
    score: float
    """How near it is, in (0, 1]; comparable within one role."""
    path: tuple[Step, ...]
    """The statements that lead from the seed to it, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expansion:
    """What was found around the seeds, and what it cost."""

    neighbours: tuple[Neighbour, ...]
    """Best first; prerequisites in the order in which they are needed to be told."""
    visited: int
    """How many statements were looked at."""


Near: TypeAlias = tuple[float, str, str, int, tuple[int, ...]]
"""A neighbour as it is sorted: minus its score, its label, its id; then its position and way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """What was worked out about an index."""

    around: Memo[tuple[int, Role, bool], tuple[tuple[Near, ...], int]] = field(default_factory=Memo)
    """What is one hop from a node, best first, and how many edges were looked at for it."""
    neighbours: Memo[tuple[Role, float, int, tuple[int, ...]], Neighbour] = field(
        default_factory=Memo
    )
    steps: Memo[int, Step] = field(default_factory=Memo)
