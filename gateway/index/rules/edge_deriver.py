"""Edges between tools, derived by rules; each rule can be switched off.

* phases: what finds a thing comes before what inspects it, and that before what acts on it.
* mentions: a description that names another tool says how the two belong together.
* what must come before what: see `gateway.index.rules.prerequisite_rules`.

All of these are guesses: they are *derived*, never declared, and a host's own document can
override them. When a tool comes or goes, only the tools whose words lead to it are read again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from gateway.index.rules import prerequisite_rules
from gateway.index.rules.name_words import (
    ACT,
    IndexKey,
    Relation,
    Rule,
    RuleEdges,
    RuleIndex,
    ToolNameWords,
)
from gateway.options import GraphOptions
from gateway.types import Entity

Edges: TypeAlias = Mapping[tuple[Relation, str], str]
"""The edges of one tool: by relation and the id it leads to, the rule that found it."""
MAX_STEPS = 3
MAX_GROUP = 64
"""A word that more tools of one server share relates none of them."""


class EdgeDeriver:
    """The derived edges of a catalog that changes. Not for two threads at once.

    Args:
        options: Which rules are switched on.
    """

    def __init__(self, options: GraphOptions) -> None:
        self._rules = [rule for name, rule in RULES.items() if getattr(options, name)]
        self._names = [name for name in RULES if getattr(options, name)]
        self._index = RuleIndex(max_tools={**prerequisite_rules.MAX_TOOLS, "about": MAX_GROUP})
        self.edges: dict[str, Edges] = {}
        """By the id of the tool where they start; tools without edges are left out."""

    def update(self, removed: Iterable[Entity], added: Iterable[Entity]) -> set[str]:
        """Take entities out and put others in; return the tools whose edges changed."""
        old = [self._index.tools.pop(entity.id) for entity in removed]
        new = [ToolNameWords.of(entity) for entity in added]
        changed = dict.fromkeys(tool.id for tool in (*old, *new))
        keys = {key for tool in (*old, *new) for key in self._own_keys(tool)}
        before = {key: self._index.find(key) for key in keys}
        self._replace(old, new)
        touched = dict(changed)
        for key, found in before.items():
            now = self._index.find(key)
            if found != now or (now and not changed.keys().isdisjoint(now)):
                touched |= self._index.readers.get(key, {})
            if key[0] == "machine" and (found is None) != (now is None):
                touched |= self._users_of_helpers()
        return self._update_edges(touched)

    def _replace(self, old: Iterable[ToolNameWords], new: Iterable[ToolNameWords]) -> None:
        index = self._index
        for tool in old:
            _discard(index.by_key, self._own_keys(tool), tool.id)
            _discard(index.readers, self._lookup_keys(tool), tool.id)
        for tool in new:
            index.tools[tool.id] = tool
            for key in self._own_keys(tool):
                index.by_key.setdefault(key, {})[tool.id] = None
            for key in self._lookup_keys(tool):
                index.readers[key][tool.id] = None

    def _own_keys(self, tool: ToolNameWords) -> Iterator[IndexKey]:
        for rule in self._rules:
            yield from rule.own_keys(tool)

    def _lookup_keys(self, tool: ToolNameWords) -> Iterator[IndexKey]:
        for rule in self._rules:
            yield from rule.lookup_keys(tool)

    def _users_of_helpers(self) -> dict[str, None]:
        """Return the tools that may use another server's helper that reports the machine."""
        keys = (key for key in self._index.by_key if key[0] in prerequisite_rules.SERVER_KEYS)
        return {tool: None for key in keys for tool in self._index.readers.get(key, ())}

    def _update_edges(self, tools: Iterable[str]) -> set[str]:
        changed = set()
        for tool_id in tools:
            previous = self.edges.pop(tool_id, {})
            tool = self._index.tools.get(tool_id)
            found = self._edges_of(tool) if tool else {}
            if found:
                self.edges[tool_id] = found
            if previous != found:
                changed.add(tool_id)
        return changed

    def _edges_of(self, tool: ToolNameWords) -> Edges:
        found: dict[tuple[Relation, str], str] = {}
        for name, rule in zip(self._names, self._rules, strict=True):
            for relation, target in rule.edges(tool, self._index):
                if target != tool.id:
                    found.setdefault((relation, target), name)
        return found


def _discard(
    table: dict[IndexKey, dict[str, None]], keys: Iterable[IndexKey], tool_id: str
) -> None:
    for key in dict.fromkeys(keys):
        table[key].pop(tool_id, None)
        if not table[key]:
            del table[key]


def _noun_keys(tool: ToolNameWords) -> Iterator[IndexKey]:
    return (("about", (tool.server, noun)) for noun in tool.nouns)


def _phase_edges(tool: ToolNameWords, index: RuleIndex) -> RuleEdges:
    tools = index.tools
    shared: Counter[str] = Counter()
    for key in _noun_keys(tool) if tool.phase < ACT else ():
        shared.update(other for other in index.find(key) or () if tools[other].phase > tool.phase)
    ranked = sorted(
        shared, key=lambda other: (-shared[other], tools[other].phase, tools[other].order)
    )
    return (("next_steps", other) for other in ranked[:MAX_STEPS])


def _name_keys(tool: ToolNameWords) -> Iterator[IndexKey]:
    yield "name", (tool.server, tool.own)


def _mention_lookups(tool: ToolNameWords) -> Iterator[IndexKey]:
    return (("name", (tool.server, name)) for name, _ in tool.mentions)


def _mention_edges(tool: ToolNameWords, index: RuleIndex) -> RuleEdges:
    for name, relation in tool.mentions:
        if found := index.find(("name", (tool.server, name))):
            yield relation, max(found, key=lambda other: index.tools[other].order)


RULES: Mapping[str, Rule] = {
    "phases": Rule(own_keys=_noun_keys, lookup_keys=_noun_keys, edges=_phase_edges),
    **prerequisite_rules.RULES,
    "mentions": Rule(own_keys=_name_keys, lookup_keys=_mention_lookups, edges=_mention_edges),
}
"""By the name of their switch in `GraphOptions`; data flow and groups are links of the document."""
