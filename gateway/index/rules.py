"""Edges between tools, derived by rules. Options can disable each rule.

* phases: see `gateway.index.tool_words`. The other rules derive prerequisites.
* suppliers: a tool that gets X without arguments supplies a required argument named X. A tool with
  arguments supplies it only if X has several words (``get_city_code`` supplies ``city_code``).
* resolvers: a tool that finds things named X by a text, or lists them, comes before tools of its
  server with a required argument ``X_id``. If several tools find X, the plainest one counts.
* calendar: a tool that reports the current date or time supplies arguments in a date or time
  format.
* checks: a tool that validates X comes before tools that need an X.
* sign_in: a tool that signs in to a service comes before tools that use the service.
* connection: a tool that reports whether the machine is online comes before tools that need the
  network.

A single word has a meaning only within one server, except for universal ones (a date, a place).
Rules look tools up by keys, so that a change only affects edges of tools that look up a key of the
changed tool.
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
"""Edges of one tool: the names of the rules that found them, keyed by relation and other tool."""
_Key: TypeAlias = tuple[str, Hashable]
"""Key under which rules look up tools: the kind of the key, and a value, such as words."""
_RuleEdges: TypeAlias = Iterator[tuple[Relation, str]]
"""Edges of one tool: pairs of the relation and the id of the other tool."""
MAX_GROUP = 64
"""Maximum number of a server's tools that one noun relates. More frequent nouns are ignored."""
MAX_SUPPLIERS = 2
"""Maximum number of tools that supply an argument. If there are more, no edge is derived."""
_MAX_TOOLS: Mapping[str, int] = {
    "about": MAX_GROUP, "free": MAX_SUPPLIERS, "whole": MAX_SUPPLIERS,
    "date": 1, "time": 1, "check": 1, "online": 1,
}  # fmt: skip
"""Maximum number of tools that offer the same key, by kind of key. Keys with more are ignored."""
_MAX_WORDS = 1 << 14
_SERVER_KEYS = ("check", "online")
"""Kinds of keys that a tool offers only to tools of its own server. If that server also reports the
machine's environment, such as its clock, the tool offers them to tools of all servers."""

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
    """Derives the edges between the tools of a changing catalog. Not thread-safe.

    *options* enable the rules.
    """

    def __init__(self, options: GraphOptions) -> None:
        self._rules = {name: rule for name, rule in RULES.items() if getattr(options, name)}
        self._index = _ToolIndex()
        self.edges: dict[str, Edges] = {}
        """Edges of each tool with edges, keyed by the id of the tool where they start."""

    def update(self, removed: Iterable[Entity], added: Iterable[Entity]) -> set[str]:
        """Remove and add entities. Return the ids of tools whose edges changed."""
        index, old, new = self._index, list(removed), list(added)
        changed = dict.fromkeys(entity.id for entity in (*old, *new))
        keys = {key for entity in (*old, *new) for key in _offered_keys(index.words(entity))}
        before = {key: index.find(key) for key in keys}
        index.replace(old, new)
        touched, machines_changed = dict(changed), False
        for key, tools_before in before.items():
            now = index.find(key)
            if tools_before != now or (now and not changed.keys().isdisjoint(now)):
                touched |= index.readers.get(key, {})
            machines_changed |= key[0] == "machine" and (tools_before is None) != (now is None)
        if machines_changed:
            for helper in [owner for owner in index.owners if owner[0] in _SERVER_KEYS]:
                touched |= index.readers.get(helper, {})
        return {tool_id for tool_id in touched if self._update_edges(tool_id)}

    def _update_edges(self, tool_id: str) -> bool:
        previous = self.edges.pop(tool_id, {})
        derived: dict[tuple[Relation, str], str] = {}
        if entity := self._index.entities.get(tool_id):
            tool = self._index.words(entity)
            for name, rule in self._rules.items():
                edges = (edge for edge in rule(tool, self._index) if edge[1] != tool_id)
                derived = dict.fromkeys(edges, name) | derived
        if derived:
            self.edges[tool_id] = derived
        return previous != derived


class _ToolIndex:
    """Tools, indexed by the keys that they offer and by the keys that they look up."""

    def __init__(self) -> None:
        self.entities: dict[str, Entity] = {}
        self._words: dict[str, ToolWords] = {}
        """Cached words of some tools, keyed by id. All words would need more memory than the
        tools."""
        self.owners: defaultdict[_Key, dict[str, None]] = defaultdict(dict)
        """Ids of the tools that offer a key, keyed by the key, in an ordered set."""
        self.readers: defaultdict[_Key, dict[str, None]] = defaultdict(dict)
        """Ids of the tools that look up a key, keyed by the key, in an ordered set."""

    def replace(self, old: Iterable[Entity], new: Iterable[Entity]) -> None:
        for entity in old:
            tool = self.words(entity)
            del self.entities[tool.id]
            _discard(self.owners, _offered_keys(tool), tool.id)
            _discard(self.readers, _lookup_keys(tool), tool.id)
        for entity in new:
            tool = self.words(entity)
            self.entities[tool.id] = entity
            for key in _offered_keys(tool):
                self.owners[key][tool.id] = None
            for key in _lookup_keys(tool):
                self.readers[key][tool.id] = None

    def words(self, entity: Entity) -> ToolWords:
        cached = self._words.get(entity.id)
        if cached is None or cached.entity is not entity:
            if len(self._words) >= _MAX_WORDS:
                self._words.clear()
            cached = self._words[entity.id] = ToolWords.of(entity)
        return cached

    def tool(self, tool_id: str) -> ToolWords:
        return self.words(self.entities[tool_id])

    def find(self, key: _Key) -> tuple[str, ...] | None:
        """Return the ids of the tools that offer *key*; None if there are none, () if too many."""
        tool_ids = self.owners.get(key)
        if not tool_ids:
            return None
        return (
            tuple(sorted(tool_ids))
            if len(tool_ids) <= _MAX_TOOLS.get(key[0], len(tool_ids))
            else ()
        )

    def helpers(self, key: _Key, server: str) -> Iterator[str]:
        """Yield the ids of the tools that offer *key* to tools of *server*."""
        for helper in self.find(key) or ():
            helper_server = self.entities[helper].server
            if helper_server == server or ("machine", helper_server) in self.owners:
                yield helper


def _discard(table: dict[_Key, dict[str, None]], keys: Iterable[_Key], tool_id: str) -> None:
    for key in dict.fromkeys(keys):
        table[key].pop(tool_id, None)
        if not table[key]:
            del table[key]


def _offered_keys(tool: ToolWords) -> Iterator[_Key]:
    yield from noun_keys(tool)
    yield from _supplier_keys(tool)
    if tool.finds:
        yield _finder_key(tool, tool.finds)
    if tool.reports_environment:
        yield "machine", tool.server
        yield from ((kind, ()) for kind, names in _CLOCK_NAMES.items() if tool.subject in names)
    if tool.verb == "validate":
        yield "check", tool.subject
    target = _sign_in_target(tool)
    if target and _is_sign_in(tool.name):
        yield "sign_in", min(target, key=tool.name.index)
    if _reports_network(tool):
        yield "online", ()


def _lookup_keys(tool: ToolWords) -> Iterator[_Key]:
    yield from noun_keys(tool)
    for name in tool.required:
        yield from (("free", name[start:]) for start in range(len(name)))
        yield from (("whole", name), ("check", name), ("check", _without_qualifier(name)))
    yield from (_finder_key(tool, thing) for thing in tool.identified)
    yield from _clock_keys(tool)
    yield from (("sign_in", word) for word in tool.name)
    if _needs_network(tool):
        yield "online", ()


def _phase_edges(tool: ToolWords, index: _ToolIndex) -> _RuleEdges:
    """Yield the next steps of *tool* among the tools that share its rarest noun."""
    sharing = [index.find(key) or () for key in step_keys(tool)]
    rarest = min(sharing, key=len, default=())
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
    for name in tool.required:
        for supplier in _best_suppliers(name, index) or index.find(("whole", name)) or ():
            if index.tool(supplier).is_understood_by(tool.server):
                yield "requires", supplier


def _best_suppliers(name: Name, index: _ToolIndex) -> Sequence[str]:
    """Return the ids of the best suppliers of the argument *name*.

    For ``start_date`` these are tools that supply a start date, or else tools that supply a date.
    """
    for start in range(len(name)):
        suppliers = index.find(("free", name[start:]))
        if suppliers is not None:
            return suppliers
    return ()


def _resolver_edges(tool: ToolWords, index: _ToolIndex) -> _RuleEdges:
    """For each thing whose id *tool* requires, yield the simplest tool that finds the thing."""
    for thing in tool.identified:
        finders = [index.tool(other) for other in index.find(_finder_key(tool, thing)) or ()]
        fitting = [
            finder
            for finder in finders
            if {*finder.finds} <= {*thing, *tool.name} and finder.id != tool.id
        ]
        if fitting:
            plainest = min(
                fitting,
                key=lambda other: (
                    {*other.finds} != {*thing},
                    not other.takes_text,
                    len(other.name),
                    len(other.required),
                    other.order,
                ),
            )
            yield "requires", plainest.id


def _finder_key(tool: ToolWords, thing: Name) -> _Key:
    return "finder", (tool.server, thing[-1])


def _clock_keys(tool: ToolWords) -> list[_Key]:
    needed: set[str] = set()
    for name, text, required in tool.arguments:
        if required and (name in _DATE_PARTS or _DATE_FORMAT.search(text)):
            needed.add("date")
        if required and _TIME_FORMAT.search(text):
            needed.add("time")
    return [(kind, ()) for kind in sorted(needed)]


def _clock_edges(tool: ToolWords, index: _ToolIndex) -> _RuleEdges:
    for key in _clock_keys(tool):
        yield from (("requires", helper) for helper in index.find(key) or ())


def _without_qualifier(name: Name) -> Name:
    return name[:-1] if len(name) > 1 and name[-1] in _QUALIFIERS else name


def _check_edges(tool: ToolWords, index: _ToolIndex) -> _RuleEdges:
    for name in tool.required:
        has_own = index.find(("check", name)) is not None
        key = "check", name if has_own else _without_qualifier(name)
        yield from (("requires", check) for check in index.helpers(key, tool.server))


def _sign_in_target(tool: ToolWords) -> frozenset[str]:
    """Return the words in the name of *tool* that say to which service it signs in."""
    return frozenset(tool.name) - _SIGN_IN - _ROUND_SIGN_IN


def _sign_in_edges(tool: ToolWords, index: _ToolIndex) -> _RuleEdges:
    """Yield the tool that signs in to the service named by *tool*, if exactly one exists."""
    for word in tool.name:
        sign_ins = index.find(("sign_in", word)) or ()
        fitting = [
            other for other in sign_ins if _sign_in_target(index.tool(other)) <= {*tool.name}
        ]
        if len(fitting) == 1:
            yield "requires", fitting[0]


def _is_sign_in(name: Name) -> bool:
    """Return whether *name* contains *log in* or *sign in*, or has a sign-in word at an end."""
    core = [word for word in name if word not in FILLERS] or [""]
    split = any(pair <= {*name} for pair in _SPLIT_SIGN_IN)
    return split or core[0] in _SIGN_IN or core[-1] in _SIGN_IN


def _needs_network(tool: ToolWords) -> bool:
    return _is_sign_in(tool.name) or bool(_ONLINE.search(tool.description))


def _connection_edges(tool: ToolWords, index: _ToolIndex) -> _RuleEdges:
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
    "resolvers": _resolver_edges,
    "calendar": _clock_edges,
    "checks": _check_edges,
    "sign_in": _sign_in_edges,
    "connection": _connection_edges,
}
"""Rules that derive edges, keyed by the field of `GraphOptions` that enables them."""
