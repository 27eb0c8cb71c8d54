"""The table in which rules look tools up, by the words where each stands and looks. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from gateway.index.rules.name_words import Relation, ToolWords

Place: TypeAlias = tuple[str, Hashable]
"""A name that a rule gives to its places, and the words by which a tool stands or looks there."""
Found: TypeAlias = Iterator[tuple[Relation, str]]
"""How one tool belongs to others: pairs of the relation and the other's id."""


@dataclass(slots=True, kw_only=True)
class Table:
    """Tools by the places where they stand, and by the places where they look."""

    most: Mapping[str, int]
    """How many tools may stand at a place, by its name; more are a crowd, which tells nothing."""
    tools: dict[str, ToolWords] = field(default_factory=dict)
    """By id."""
    held: dict[Place, dict[str, None]] = field(default_factory=dict)
    lookers: defaultdict[Place, dict[str, None]] = field(default_factory=lambda: defaultdict(dict))

    def known(self, place: Place) -> tuple[str, ...] | None:
        """Give the ids of the tools at *place*: () if they are a crowd, None if there is none."""
        found = self.held.get(place)
        if not found:
            return None
        return tuple(sorted(found)) if len(found) <= self.most.get(place[0], len(found)) else ()

    def serves(self, helper: str, server: str) -> bool:
        """Whether *helper* is of *server*, or of one that speaks for the machine."""
        own = self.tools[helper].server
        return own == server or ("machine", own) in self.held


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """How a rule finds edges."""

    stands: Callable[[ToolWords], Iterable[Place]]
    """Where a tool stands, for others to find it."""
    looks: Callable[[ToolWords], Iterable[Place]]
    """Where a tool looks for others."""
    edges: Callable[[ToolWords, Table], Found]
    """The edges of a tool, from what it finds there."""
