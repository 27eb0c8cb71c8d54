"""Edges that nobody wrote, read out of a plain catalog; each rule can be switched off.

* phases: what finds a thing comes before what inspects it, and that before what acts on it.
* mentions: a description that names another tool says how the two belong together.
* what must come before what: see `conditions`.

All of these are guesses: they are *derived*, never declared, and a host's own document can
override them. Rules look words up instead of comparing pairs. When a tool comes or goes, only the
tools whose words lead to it are read again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from gateway.index.rules import prerequisite_rules
from gateway.index.rules.name_words import ACT, Relation, ToolWords
from gateway.index.rules.rule_index import Found, Place, Rule, Table
from gateway.options import GraphOptions
from gateway.types import Entity

Edges: TypeAlias = Mapping[tuple[Relation, str], str]
"""The edges of one tool: by relation and the id it leads to, the rule that found it."""
MAX_STEPS = 3
MAX_GROUP = 64
"""A word that more tools of one server share relates none of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Derived:
    """One derived edge between two entities, by position."""

    subject: int
    relation: Relation
    object: int
    rule: str
    """The rule that found it; explanations name it."""


def derive(entities: Sequence[Entity], options: GraphOptions) -> tuple[Derived, ...]:
    """Give all edges that the rules find that *options* switch on; none for an empty catalog."""
    deriver = Deriver(options)
    tools = (replace(ToolWords.of(entity), id=str(at)) for at, entity in enumerate(entities))
    deriver.turn((), list(tools))
    return tuple(
        Derived(subject=int(subject), relation=relation, object=int(target), rule=rule)
        for subject, edges in deriver.edges.items()
        for (relation, target), rule in edges.items()
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Reread:
    """The edges of the tools that were read again."""

    before: Mapping[str, Edges]
    after: Mapping[str, Edges]


class Deriver:
    """The derived edges of a catalog that changes. Not for two threads at once."""

    def __init__(self, options: GraphOptions) -> None:
        self._rules = [name for name in RULES if getattr(options, name)]
        self._table = Table(most={**prerequisite_rules.MOST, "about": MAX_GROUP})
        self.edges: dict[str, Edges] = {}
        """By the id of the tool where they start; tools without edges are left out."""

    def change(self, gone: Iterable[Entity], new: Iterable[Entity]) -> Reread:
        """Take entities out and put others in; give the tools whose edges may have changed."""
        old = [self._table.tools.pop(entity.id) for entity in gone]
        return self.turn(old, [ToolWords.of(entity) for entity in new])

    def turn(self, old: Sequence[ToolWords], fresh: Sequence[ToolWords]) -> Reread:
        """Do the same with tools that were read already."""
        table = self._table
        places = {place for tool in (*old, *fresh) for place in _stands(tool, self._rules)}
        known = {place: table.known(place) for place in places}
        for tool in old:
            _leave(table.held, _stands(tool, self._rules), tool.id)
            _leave(table.lookers, _looks(tool, self._rules), tool.id)
        for tool in fresh:
            self._table.tools[tool.id] = tool
            for place in _stands(tool, self._rules):
                table.held.setdefault(place, {})[tool.id] = None
            for place in _looks(tool, self._rules):
                table.lookers[place][tool.id] = None
        turned = {tool.id: None for tool in (*old, *fresh)}
        renamed = turned.keys()
        for place, before in known.items():
            now = table.known(place)
            if before != now or (now and not renamed.isdisjoint(now)):
                turned |= table.lookers.get(place, {})
            if place[0] == "machine" and (before is None) != (now is None):
                turned |= self._helped()
        return self._reread(turned)

    def _helped(self) -> dict[str, None]:
        """Give the tools that may use a helper of another server which speaks for the machine."""
        held = (place for place in self._table.held if place[0] in prerequisite_rules.HELPED)
        return {key: None for place in held for key in self._table.lookers.get(place, ())}

    def _reread(self, keys: Iterable[str]) -> Reread:
        before: dict[str, Edges] = {}
        after: dict[str, Edges] = {}
        for key in keys:
            known = self.edges.pop(key, {})
            tool = self._table.tools.get(key)
            found = self._read(tool) if tool else {}
            if found:
                self.edges[key] = found
            if known != found:
                before[key], after[key] = known, found
        return Reread(before=before, after=after)

    def _read(self, tool: ToolWords) -> Edges:
        found: dict[tuple[Relation, str], str] = {}
        for rule in self._rules:
            for relation, target in RULES[rule].edges(tool, self._table):
                if target != tool.id:
                    found.setdefault((relation, target), rule)
        return found


def _stands(tool: ToolWords, rules: Iterable[str]) -> Iterator[Place]:
    for rule in rules:
        yield from RULES[rule].stands(tool)


def _looks(tool: ToolWords, rules: Iterable[str]) -> Iterator[Place]:
    for rule in rules:
        yield from RULES[rule].looks(tool)


def _leave(held: dict[Place, dict[str, None]], places: Iterable[Place], key: str) -> None:
    for place in dict.fromkeys(places):
        held[place].pop(key, None)
        if not held[place]:
            del held[place]


def _about(tool: ToolWords) -> Iterator[Place]:
    return (("about", (tool.server, noun)) for noun in tool.nouns)


def _phases(tool: ToolWords, table: Table) -> Found:
    tools = table.tools
    shared: Counter[str] = Counter()
    for place in _about(tool) if tool.phase < ACT else ():
        shared.update(key for key in table.known(place) or () if tools[key].phase > tool.phase)
    ranked = sorted(shared, key=lambda key: (-shared[key], tools[key].phase, tools[key].order))
    return (("next_steps", key) for key in ranked[:MAX_STEPS])


def _named(tool: ToolWords) -> Iterator[Place]:
    yield "name", (tool.server, tool.own)


def _spoken(tool: ToolWords) -> Iterator[Place]:
    return (("name", (tool.server, name)) for name, _ in tool.mentions)


def _mentions(tool: ToolWords, table: Table) -> Found:
    for name, relation in tool.mentions:
        if found := table.known(("name", (tool.server, name))):
            yield relation, max(found, key=lambda key: table.tools[key].order)


RULES: Mapping[str, Rule] = {
    "phases": Rule(stands=_about, looks=_about, edges=_phases),
    **prerequisite_rules.RULES,
    "mentions": Rule(stands=_named, looks=_spoken, edges=_mentions),
}
"""By the name of their switch in `GraphOptions`; data flow and groups are links of the document."""
