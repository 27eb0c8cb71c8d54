"""The index in which rules look tools up by words instead of comparing pairs. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from gateway.index.rules.name_words import Relation, ToolNameWords

IndexKey: TypeAlias = tuple[str, Hashable]
"""What a rule calls a kind of words, and the words."""
RuleEdges: TypeAlias = Iterator[tuple[Relation, str]]
"""The edges of one tool: pairs of the relation and the other tool's id."""


@dataclass(slots=True, kw_only=True)
class RuleIndex:
    """Tools by the keys that they are found under, and by those that they look up."""

    max_tools: Mapping[str, int]
    """How many tools may share a key, by its kind; a key of more tells nothing."""
    tools: dict[str, ToolNameWords] = field(default_factory=dict)
    """By id."""
    by_key: dict[IndexKey, dict[str, None]] = field(default_factory=dict)
    """The ids of the tools that are found under a key."""
    readers: defaultdict[IndexKey, dict[str, None]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    """The ids of the tools that look a key up."""

    def find(self, key: IndexKey) -> tuple[str, ...] | None:
        """Return the ids of the tools under *key*: () if they are too many, None if none is."""
        found = self.by_key.get(key)
        if not found:
            return None
        return tuple(sorted(found)) if len(found) <= self.max_tools.get(key[0], len(found)) else ()

    def serves(self, helper: str, server: str) -> bool:
        """Return whether *helper* is of *server*, or of one that reports the machine's state."""
        own = self.tools[helper].server
        return own == server or ("machine", own) in self.by_key


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """How a rule finds edges."""

    own_keys: Callable[[ToolNameWords], Iterable[IndexKey]]
    """The keys under which other tools find a tool."""
    lookup_keys: Callable[[ToolNameWords], Iterable[IndexKey]]
    """The keys that a tool looks up."""
    edges: Callable[[ToolNameWords, RuleIndex], RuleEdges]
    """The edges of a tool, from what it finds there."""
