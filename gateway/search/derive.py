"""Edges that nobody wrote, read out of a plain catalog; each rule can be switched off.

* phases: what finds comes before what inspects, and that before what acts on the same thing.
* data flow: a field of one tool's output is a required argument of another.
* suppliers: a tool that gets X and needs nothing feeds an argument called X; one that needs
  something itself feeds it where X is more than one word (``get_city_code`` feeds ``city_code``).
* sign-in: what signs in to something comes before what uses it.
* mentions: a description that names another tool says how the two belong together.

All of these are guesses: they are *derived*, never declared, and a host's own document can
override them. Rules look up words, they compare no pairs; where a tool comes or goes, only those
are read again whose words lead to it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from gateway.config import GraphOptions
from gateway.search.toolwords import ACT, Relation, ToolWords
from gateway.types import Entity

Edges: TypeAlias = Mapping[tuple[Relation, str], str]
"""The edges of one tool: the rule of each, by what it says and the id it leads to."""
_Place: TypeAlias = tuple[str, Hashable]
"""A rule's word of its own, and the words by which tools stand there or look there."""
MAX_STEPS = 3
MAX_SUPPLIERS = 2
"""An argument that more tools could feed is fed by none in particular."""
MAX_GROUP = 64
"""A word that more tools of one server share than this relates nobody to anybody."""
_MOST: Mapping[str, int] = {
    "about": MAX_GROUP, "free": MAX_SUPPLIERS, "whole": MAX_SUPPLIERS, "door": 1,
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Derived:
    """One derived edge between two entities, by position."""

    subject: int
    relation: Relation
    object: int
    rule: str
    """Which rule read it; the reader of an explanation sees it."""


def derive(entities: Sequence[Entity], options: GraphOptions) -> tuple[Derived, ...]:
    """Read all edges that the switched-on rules find; an empty catalog has none."""
    deriver = Deriver(options)
    deriver.change((), entities)
    places = {entity.id: at for at, entity in enumerate(entities)}
    return tuple(
        Derived(subject=places[subject], relation=relation, object=places[target], rule=rule)
        for subject, edges in deriver.edges.items()
        for (relation, target), rule in edges.items()
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Reread:
    """The edges of the tools that were read again."""

    before: Mapping[str, Edges]
    after: Mapping[str, Edges]


@dataclass(slots=True)
class _Table:
    """Tools by the places where they stand, and by the places where they look."""

    held: dict[_Place, dict[str, None]] = field(default_factory=dict)
    lookers: defaultdict[_Place, dict[str, None]] = field(default_factory=lambda: defaultdict(dict))

    def known(self, place: _Place) -> tuple[str, ...] | None:
        """Give who stands at *place*; nobody if it is a crowd, None if there is nobody."""
        found = self.held.get(place)
        if not found:
            return None
        return tuple(sorted(found)) if len(found) <= _MOST.get(place[0], len(found)) else ()


class Deriver:
    """The derived edges of a catalog that changes. Not for two threads at once."""

    def __init__(self, options: GraphOptions) -> None:
        self._rules = [name for name in RULES if getattr(options, name)]
        self._tools: dict[str, ToolWords] = {}
        self._table = _Table()
        self.edges: dict[str, Edges] = {}
        """By the id of the tool where they start; tools without edges are left out."""

    def change(self, gone: Iterable[Entity], new: Iterable[Entity]) -> Reread:
        """Take entities out and put others in, and say whose edges are other ones."""
        old = [self._tools.pop(entity.id) for entity in gone]
        fresh = [ToolWords.of(entity) for entity in new]
        table = self._table
        places = {place for tool in (*old, *fresh) for place in _stands(tool, self._rules)}
        known = {place: table.known(place) for place in places}
        for tool in old:
            _leave(table.held, _stands(tool, self._rules), tool.id)
            _leave(table.lookers, _looks(tool, self._rules), tool.id)
        for tool in fresh:
            self._tools[tool.id] = tool
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
        return self._reread(turned)

    def _reread(self, keys: Iterable[str]) -> Reread:
        before: dict[str, Edges] = {}
        after: dict[str, Edges] = {}
        for key in keys:
            known = self.edges.pop(key, {})
            tool = self._tools.get(key)
            found = self._read(tool) if tool else {}
            if found:
                self.edges[key] = found
            if known != found:
                before[key], after[key] = known, found
        return Reread(before=before, after=after)

    def _read(self, tool: ToolWords) -> Edges:
        found: dict[tuple[Relation, str], str] = {}
        for rule in self._rules:
            for relation, target in RULES[rule].edges(tool, self._tools, self._table):
                if target != tool.id:
                    found.setdefault((relation, target), rule)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    """How a rule reads."""

    stands: Callable[[ToolWords], Iterable[_Place]]
    """Where a tool stands, for others to find it."""
    looks: Callable[[ToolWords], Iterable[_Place]]
    """Where a tool looks for others."""
    edges: Callable[[ToolWords, Mapping[str, ToolWords], _Table], Iterator[tuple[Relation, str]]]


def _stands(tool: ToolWords, rules: Iterable[str]) -> Iterator[_Place]:
    for rule in rules:
        yield from RULES[rule].stands(tool)


def _looks(tool: ToolWords, rules: Iterable[str]) -> Iterator[_Place]:
    for rule in rules:
        yield from RULES[rule].looks(tool)


def _leave(held: dict[_Place, dict[str, None]], places: Iterable[_Place], key: str) -> None:
    for place in dict.fromkeys(places):
        held[place].pop(key, None)
        if not held[place]:
            del held[place]


def _about(tool: ToolWords) -> Iterator[_Place]:
    return (("about", (tool.server, noun)) for noun in tool.nouns)


def _phases(
    tool: ToolWords, tools: Mapping[str, ToolWords], table: _Table
) -> Iterator[tuple[Relation, str]]:
    shared: Counter[str] = Counter()
    for place in _about(tool) if tool.phase < ACT else ():
        shared.update(key for key in table.known(place) or () if tools[key].phase > tool.phase)
    ranked = sorted(shared, key=lambda key: (-shared[key], tools[key].phase, tools[key].order))
    return (("next_steps", key) for key in ranked[:MAX_STEPS])


def _supplied(tool: ToolWords) -> Iterator[_Place]:
    if tool.supplies:
        yield "free" if tool.free else "whole", tool.supplies


def _asked(tool: ToolWords) -> Iterator[_Place]:
    for words in tool.arguments:
        yield from (("free", words[start:]) for start in range(len(words)))
        yield "whole", words


def _suppliers(
    tool: ToolWords, tools: Mapping[str, ToolWords], table: _Table
) -> Iterator[tuple[Relation, str]]:
    for words in tool.arguments:
        for key in _feeding(words, table) or table.known(("whole", words)) or ():
            if tools[key].speaks_to(tool.server):
                yield "requires", key


def _feeding(words: tuple[str, ...], table: _Table) -> Sequence[str]:
    """``start_date`` is fed by what gets a start date, else by what gets a date."""
    for start in range(len(words)):
        found = table.known(("free", words[start:]))
        if found is not None:
            return found
    return ()


def _opened(tool: ToolWords) -> Iterator[_Place]:
    if tool.opens:
        yield "door", tool.opens


def _closed(tool: ToolWords) -> Iterator[_Place]:
    return (("door", word) for word in tool.words)


def _sign_ins(
    tool: ToolWords, _tools: Mapping[str, ToolWords], table: _Table
) -> Iterator[tuple[Relation, str]]:
    for place in _closed(tool):
        yield from (("requires", key) for key in table.known(place) or ())


def _named(tool: ToolWords) -> Iterator[_Place]:
    yield "name", (tool.server, tool.name)


def _spoken(tool: ToolWords) -> Iterator[_Place]:
    return (("name", (tool.server, name)) for name, _ in tool.mentions)


def _mentions(
    tool: ToolWords, tools: Mapping[str, ToolWords], table: _Table
) -> Iterator[tuple[Relation, str]]:
    for name, relation in tool.mentions:
        if found := table.known(("name", (tool.server, name))):
            yield relation, max(found, key=lambda key: tools[key].order)


RULES: Mapping[str, _Rule] = {
    "phases": _Rule(stands=_about, looks=_about, edges=_phases),
    "suppliers": _Rule(stands=_supplied, looks=_asked, edges=_suppliers),
    "sign_in": _Rule(stands=_opened, looks=_closed, edges=_sign_ins),
    "mentions": _Rule(stands=_named, looks=_spoken, edges=_mentions),
}
"""By the name of their switch in `GraphOptions`; data flow and groups are links of the document."""
