"""Edges between tools, derived by rules; each rule can be switched off.

* phases: see `gateway.index.tool_words`; the other rules derive prerequisites.
* suppliers: a tool that gets X and needs nothing feeds a required argument called X; one that needs
  something itself feeds it where X is more than one word (``get_city_code`` feeds ``city_code``).
* calendar: what tells the current date or time feeds arguments written as a date or a time.
* checks: what validates X comes before what needs an X.
* sign_in: what signs in to something comes before what uses it.
* connection: what tells whether the machine is online comes before what needs to be.

A single word means the same to one server only, but for what everybody has: a date, a place.

All of these are guesses: they are *derived*, never declared, and a host's own document can
override them. Rules look tools up by keys instead of comparing pairs: when a tool comes or goes,
only the tools whose words lead to it are read again.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from gateway.index.tool_words import (
    FILLERS,
    SUPPLY,
    Name,
    Relation,
    ToolWords,
    noun_keys,
    step_keys,
    steps_after,
)
from gateway.options import GraphOptions
from gateway.types import Entity

Edges: TypeAlias = Mapping[tuple[Relation, str], str]
"""The edges of one tool: by relation and the id it leads to, the rule that found it."""
_Key: TypeAlias = tuple[str, Hashable]
"""A kind of words, and the words."""
_RuleEdges: TypeAlias = Iterator[tuple[Relation, str]]
"""The edges of one tool: pairs of the relation and the other tool's id."""
MAX_GROUP = 64
"""A word that more tools of one server share relates none of them."""
MAX_SUPPLIERS = 2
"""An argument that more tools could feed is fed by none in particular."""
_MAX_TOOLS: Mapping[str, int] = {
    "about": MAX_GROUP, "free": MAX_SUPPLIERS, "whole": MAX_SUPPLIERS,
    "date": 1, "time": 1, "check": 1, "online": 1,
}  # fmt: skip
"""How many tools may share a key, by its kind; a key of more tells nothing."""
_MAX_WORDS = 1 << 14
"""How many tools' words are remembered."""
_SERVER_KEYS = ("check", "online")
"""Kinds whose tools serve their own server, or all servers if that reports the machine."""

_SIGN_IN = frozenset({"login", "signin", "authenticate", "authorize"})
_SPLIT_SIGN_IN = (frozenset({"log", "in"}), frozenset({"sign", "in"}))
_ROUND_SIGN_IN = FILLERS | {"log", "sign", "in", "to", "into", "account"}
_QUALIFIERS = frozenset({"address", "number"})
_DATE_PARTS = frozenset({("year",), ("month",), ("day",)})
_DATE_FORMAT = re.compile(r"\b(?:yyyy|dd|mm)([-/.])(?:mm|dd)\1(?:dd|yyyy)\b", re.IGNORECASE)
_TIME_FORMAT = re.compile(r"\bhh:mm\b", re.IGNORECASE)
_CLOCK_NAMES: Mapping[str, frozenset[Name]] = {
    "date": frozenset({("date",), ("datetime",)}),
    "time": frozenset({("time",), ("datetime",)}),
}
_NETWORK_WORDS = ("wifi", "internet", "connectivity")
_ONLINE = re.compile(
    r"\b(?:internet|network|wi-?fi) (?:connection|access)\b|\bconnectivity\b", re.IGNORECASE
)


class EdgeDeriver:
    """The derived edges of a catalog that changes. Not for two threads at once.

    Args:
        options: Which rules are switched on.
    """

    def __init__(self, options: GraphOptions) -> None:
        self._rules = {name: rule for name, rule in RULES.items() if getattr(options, name)}
        self._index = _ToolIndex()
        self.edges: dict[str, Edges] = {}
        """By the id of the tool where they start; tools without edges are left out."""

    def update(self, removed: Iterable[Entity], added: Iterable[Entity]) -> set[str]:
        """Take entities out and put others in; return the tools whose edges changed."""
        index, old, new = self._index, list(removed), list(added)
        changed = dict.fromkeys(entity.id for entity in (*old, *new))
        keys = {key for entity in (*old, *new) for key in _own_keys(index.words(entity))}
        before = {key: index.find(key) for key in keys}
        index.replace(old, new)
        touched, machines_changed = dict(changed), False
        for key, found in before.items():
            now = index.find(key)
            if found != now or (now and not changed.keys().isdisjoint(now)):
                touched |= index.readers.get(key, {})
            machines_changed |= key[0] == "machine" and (found is None) != (now is None)
        if machines_changed:
            for helper in [each for each in index.owners if each[0] in _SERVER_KEYS]:
                touched |= index.readers.get(helper, {})
        return {tool_id for tool_id in touched if self._update_edges(tool_id)}

    def _update_edges(self, tool_id: str) -> bool:
        """Derive the edges of one tool anew; return whether they changed."""
        previous = self.edges.pop(tool_id, {})
        found: dict[tuple[Relation, str], str] = {}
        if entity := self._index.entities.get(tool_id):
            tool = self._index.words(entity)
            for name, rule in self._rules.items():
                edges = (edge for edge in rule(tool, self._index) if edge[1] != tool_id)
                found = dict.fromkeys(edges, name) | found
        if found:
            self.edges[tool_id] = found
        return previous != found


class _ToolIndex:
    """Tools by the keys that they are found under, and by those that they look up."""

    def __init__(self) -> None:
        self.entities: dict[str, Entity] = {}
        """By id."""
        self._words: dict[str, ToolWords] = {}
        """Those of some entities, by id: a cache, for all of them take more than the entities."""
        self.owners: defaultdict[_Key, dict[str, None]] = defaultdict(dict)
        """The ids of the tools that are found under a key."""
        self.readers: defaultdict[_Key, dict[str, None]] = defaultdict(dict)
        """The ids of the tools that look a key up."""

    def replace(self, old: Iterable[Entity], new: Iterable[Entity]) -> None:
        for entity in old:
            tool = self.words(entity)
            del self.entities[tool.id]
            _discard(self.owners, _own_keys(tool), tool.id)
            _discard(self.readers, _lookup_keys(tool), tool.id)
        for entity in new:
            tool = self.words(entity)
            self.entities[tool.id] = entity
            for key in _own_keys(tool):
                self.owners[key][tool.id] = None
            for key in _lookup_keys(tool):
                self.readers[key][tool.id] = None

    def words(self, entity: Entity) -> ToolWords:
        """Return the words of *entity*."""
        found = self._words.get(entity.id)
        if found is None or found.entity is not entity:
            if len(self._words) >= _MAX_WORDS:
                self._words.clear()
            found = self._words[entity.id] = ToolWords.of(entity)
        return found

    def tool(self, tool_id: str) -> ToolWords:
        """Return the words of the tool of this id."""
        return self.words(self.entities[tool_id])

    def find(self, key: _Key) -> tuple[str, ...] | None:
        """Return the ids of the tools under *key*: () if they are too many, None if none is."""
        found = self.owners.get(key)
        if not found:
            return None
        return tuple(sorted(found)) if len(found) <= _MAX_TOOLS.get(key[0], len(found)) else ()

    def helpers(self, key: _Key, server: str) -> Iterator[str]:
        """Yield the tools under *key* that serve *server*: its own, or the machine's."""
        for helper in self.find(key) or ():
            own = self.entities[helper].server
            if own == server or ("machine", own) in self.owners:
                yield helper


def _discard(table: dict[_Key, dict[str, None]], keys: Iterable[_Key], tool_id: str) -> None:
    for key in dict.fromkeys(keys):
        table[key].pop(tool_id, None)
        if not table[key]:
            del table[key]


def _own_keys(tool: ToolWords) -> Iterator[_Key]:
    """Yield the keys under which other tools find *tool*."""
    yield from noun_keys(tool)
    yield from _supplier_keys(tool)
    if tool.reports_environment:
        yield "machine", tool.server
        yield from ((kind, ()) for kind, names in _CLOCK_NAMES.items() if tool.subject in names)
    if tool.verb == "validate":
        yield "check", tool.subject
    target = _sign_in_target(tool)
    if target and _signs_in(tool.name):
        yield "sign_in", min(target, key=tool.name.index)
    if _reports_network(tool):
        yield "online", ()


def _lookup_keys(tool: ToolWords) -> Iterator[_Key]:
    """Yield the keys that the rules look up for *tool*."""
    yield from noun_keys(tool)
    for name in tool.required:
        yield from (("free", name[start:]) for start in range(len(name)))
        yield from (("whole", name), ("check", name), ("check", _short(name)))
    yield from _clock_keys(tool)
    yield from (("sign_in", word) for word in tool.name)
    if _needs_network(tool):
        yield "online", ()


def _phase_edges(tool: ToolWords, index: _ToolIndex) -> _RuleEdges:
    """Yield the next steps among the tools that share the rarest noun."""
    found = [index.find(key) or () for key in step_keys(tool)]
    rarest = min(found, key=len, default=())
    others = steps_after(tool, map(index.tool, rarest))
    yield from (("next_steps", other.id) for other in others)


def _supplier_keys(tool: ToolWords) -> Iterator[_Key]:
    what = tool.subject
    if not what or tool.verb not in SUPPLY:
        return
    if not tool.required:
        yield "free", what
    elif len(what) > 1 and what not in (name for name, _, _ in tool.arguments):
        yield "whole", what


def _supplier_edges(tool: ToolWords, index: _ToolIndex) -> _RuleEdges:
    """Yield the tools that return what a required argument is called after."""
    for name in tool.required:
        for supplier in _best_suppliers(name, index) or index.find(("whole", name)) or ():
            if index.tool(supplier).is_understood_by(tool.server):
                yield "requires", supplier


def _best_suppliers(name: Name, index: _ToolIndex) -> Sequence[str]:
    """Return what feeds an argument: ``start_date`` from a start date, else from a date."""
    for start in range(len(name)):
        found = index.find(("free", name[start:]))
        if found is not None:
            return found
    return ()


def _clock_keys(tool: ToolWords) -> list[_Key]:
    """Return what *tool* has to be told of the clock: ``date``, ``time``."""
    needed: set[str] = set()
    for name, text, required in tool.arguments:
        if required and (name in _DATE_PARTS or _DATE_FORMAT.search(text)):
            needed.add("date")
        if required and _TIME_FORMAT.search(text):
            needed.add("time")
    return [(kind, ()) for kind in sorted(needed)]


def _clock_edges(tool: ToolWords, index: _ToolIndex) -> _RuleEdges:
    """Yield the one tool that reports the date or time, where the catalog has only one."""
    for key in _clock_keys(tool):
        yield from (("requires", helper) for helper in index.find(key) or ())


def _short(name: Name) -> Name:
    return name[:-1] if len(name) > 1 and name[-1] in _QUALIFIERS else name


def _check_edges(tool: ToolWords, index: _ToolIndex) -> _RuleEdges:
    """Yield ``validate_email`` for what takes an ``email`` or an ``email_address``."""
    for name in tool.required:
        has_own = index.find(("check", name)) is not None
        key = "check", name if has_own else _short(name)
        yield from (("requires", check) for check in index.helpers(key, tool.server))


def _sign_in_target(tool: ToolWords) -> frozenset[str]:
    """Return what a sign-in signs in to, as its name says."""
    return frozenset(tool.name) - _SIGN_IN - _ROUND_SIGN_IN


def _sign_in_edges(tool: ToolWords, index: _ToolIndex) -> _RuleEdges:
    """Yield the one sign-in whose target is in the tool's name as a whole."""
    for word in tool.name:
        sign_ins = index.find(("sign_in", word)) or ()
        fitting = [
            other for other in sign_ins if _sign_in_target(index.tool(other)) <= {*tool.name}
        ]
        if len(fitting) == 1:
            yield "requires", fitting[0]


def _signs_in(name: Name) -> bool:
    """Return whether a name begins or ends with signing in: within it, it means another thing."""
    core = [word for word in name if word not in FILLERS] or [""]
    split = any(pair <= {*name} for pair in _SPLIT_SIGN_IN)
    return split or core[0] in _SIGN_IN or core[-1] in _SIGN_IN


def _needs_network(tool: ToolWords) -> bool:
    return _signs_in(tool.name) or bool(_ONLINE.search(tool.description))


def _connection_edges(tool: ToolWords, index: _ToolIndex) -> _RuleEdges:
    """Yield the connection check for what signs in or describes that it needs the network."""
    if _needs_network(tool):
        yield from (("requires", helper) for helper in index.helpers(("online", ()), tool.server))


def _reports_network(tool: ToolWords) -> bool:
    name = "".join(tool.subject)
    asks = tool.verb in SUPPLY | {"check", "is"}
    return (
        asks
        and name.startswith(_NETWORK_WORDS)
        and len(tool.subject) <= len(("wi", "fi", "status"))
        and not tool.required
    )


RULES: Mapping[str, Callable[[ToolWords, _ToolIndex], _RuleEdges]] = {
    "phases": _phase_edges,
    "suppliers": _supplier_edges,
    "calendar": _clock_edges,
    "checks": _check_edges,
    "sign_in": _sign_in_edges,
    "connection": _connection_edges,
}
"""Rules, keyed by the `GraphOptions` field that enables them. Groups are links of the tool's
document."""
