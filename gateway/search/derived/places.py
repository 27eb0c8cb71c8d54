"""Where tools stand, by their words, and where they look for each other: what rules read. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import field
from typing import TypeAlias

from gateway.search.derived.namewords import Relation, ToolWords
from gateway.values import dataclass

Place: TypeAlias = tuple[str, Hashable]
"""A rule's word of its own, and the words by which tools stand there or look there."""
Found: TypeAlias = Iterator[tuple[Relation, str]]
"""How a tool belongs to others, by their ids."""


@dataclass(slots=True, kw_only=True)
class Table:
    """Tools by the places where they stand, and by the places where they look."""

    most: Mapping[str, int]
    """How many may stand at a place of each kind before they are a crowd, which tells nothing."""
    tools: dict[str, ToolWords] = field(default_factory=dict)
    """By id."""
    held: dict[Place, dict[str, None]] = field(default_factory=dict)
    lookers: defaultdict[Place, dict[str, None]] = field(default_factory=lambda: defaultdict(dict))

    def known(self, place: Place) -> tuple[str, ...] | None:
        """Give who stands at *place*; nobody if it is a crowd, None if there is nobody."""
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
    """How a rule reads."""

    stands: Callable[[ToolWords], Iterable[Place]]
    """Where a tool stands, for others to find it."""
    looks: Callable[[ToolWords], Iterable[Place]]
    """Where a tool looks for others."""
    edges: Callable[[ToolWords, Table], Found]
    """What a tool finds there."""
