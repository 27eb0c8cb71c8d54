"""Rules for prerequisites, from names and arguments. Pure.

* suppliers: a tool that gets X and needs nothing feeds a required argument called X; one that needs
  something itself feeds it where X is more than one word (``get_city_code`` feeds ``city_code``).
* calendar: what tells the current date or time feeds arguments written as a date or a time.
* checks: what validates X comes before what needs an X.
* sign-in: what signs in to something comes before what uses it.
* connection: what tells whether the machine is online comes before what needs to be.

A single word means the same to one server only, but for what everybody has: a date, a place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from gateway.index.rules.name_words import (
    FILLERS,
    SUPPLY,
    IndexKey,
    Name,
    Rule,
    RuleEdges,
    RuleIndex,
    ToolNameWords,
)

MAX_SUPPLIERS = 2
"""An argument that more tools could feed is fed by none in particular."""

_SIGN_IN = frozenset({"login", "signin", "authenticate", "authorize"})
_SPLIT_SIGN_IN = (frozenset({"log", "in"}), frozenset({"sign", "in"}))
_ROUND_SIGN_IN = FILLERS | {"log", "sign", "in", "to", "into", "account"}
_CHECK = frozenset({"validate"})
_QUALIFIERS = frozenset({"address", "number"})
_DATE_PARTS = frozenset({("year",), ("month",), ("day",)})
_DATE_FORMAT = re.compile(r"\b(?:yyyy|dd|mm)([-/.])(?:mm|dd)\1(?:dd|yyyy)\b", re.IGNORECASE)
_TIME_FORMAT = re.compile(r"\bhh:mm\b", re.IGNORECASE)
_CLOCK_THINGS: Mapping[str, frozenset[Name]] = {
    "date": frozenset({("date",), ("datetime",)}),
    "time": frozenset({("time",), ("datetime",)}),
}
_NETWORK_WORDS = ("wifi", "internet", "connectivity")
_ONLINE = re.compile(
    r"\b(?:internet|network|wi-?fi) (?:connection|access)\b|\bconnectivity\b", re.IGNORECASE
)


def _supplier_keys(tool: ToolNameWords) -> Iterator[IndexKey]:
    what = tool.thing
    if not what or tool.verb not in SUPPLY:
        return
    if not tool.required:
        yield "free", what
    elif len(what) > 1 and what not in (name for name, _, _ in tool.arguments):
        yield "whole", what


def _argument_keys(tool: ToolNameWords) -> Iterator[IndexKey]:
    for name in tool.required:
        yield from (("free", name[start:]) for start in range(len(name)))
        yield "whole", name


def _supplier_edges(tool: ToolNameWords, index: RuleIndex) -> RuleEdges:
    """Yield the tools that return what a required argument is called after."""
    for name in tool.required:
        for supplier in _best_suppliers(name, index) or index.find(("whole", name)) or ():
            if index.tools[supplier].is_understood_by(tool.server):
                yield "requires", supplier


def _best_suppliers(name: Name, index: RuleIndex) -> Sequence[str]:
    """Return what feeds an argument: ``start_date`` from a start date, else from a date."""
    for start in range(len(name)):
        found = index.find(("free", name[start:]))
        if found is not None:
            return found
    return ()


def _clock_keys(tool: ToolNameWords) -> Iterator[IndexKey]:
    if tool.reports_environment:
        yield from ((kind, ()) for kind, things in _CLOCK_THINGS.items() if tool.thing in things)


def _clock_lookups(tool: ToolNameWords) -> Iterator[IndexKey]:
    wanted = {
        kind
        for name, text, required in tool.arguments
        if required
        for kind in _time_kinds(name, text)
    }
    return ((kind, ()) for kind in sorted(wanted))


def _clock_edges(tool: ToolNameWords, index: RuleIndex) -> RuleEdges:
    """Yield the one tool that reports the date or time, where the catalog has only one."""
    for key in _clock_lookups(tool):
        yield from (("requires", helper) for helper in index.find(key) or ())


def _time_kinds(name: Name, text: str) -> Iterator[str]:
    if name in _DATE_PARTS or _DATE_FORMAT.search(text):
        yield "date"
    if _TIME_FORMAT.search(text):
        yield "time"


def _check_keys(tool: ToolNameWords) -> Iterator[IndexKey]:
    if tool.verb in _CHECK:
        yield "check", tool.thing
    yield from _machine_keys(tool)


def _machine_keys(tool: ToolNameWords) -> Iterator[IndexKey]:
    if tool.reports_environment:
        yield "machine", tool.server


def _check_lookups(tool: ToolNameWords) -> Iterator[IndexKey]:
    for name in tool.required:
        yield "check", name
        yield "check", _short(name)


def _short(name: Name) -> Name:
    return name[:-1] if len(name) > 1 and name[-1] in _QUALIFIERS else name


def _check_edges(tool: ToolNameWords, index: RuleIndex) -> RuleEdges:
    """Yield ``validate_email`` for what takes an ``email`` or an ``email_address``."""
    for name in tool.required:
        found = index.find(("check", name))
        for check in (index.find(("check", _short(name))) if found is None else found) or ():
            if index.serves(check, tool.server):
                yield "requires", check


def _sign_in_target(tool: ToolNameWords) -> frozenset[str]:
    """Return what a sign-in signs in to, as its name says."""
    return frozenset(tool.name) - _SIGN_IN - _ROUND_SIGN_IN


def _sign_in_keys(tool: ToolNameWords) -> Iterator[IndexKey]:
    target = _sign_in_target(tool)
    if target and _signs_in(tool.name):
        yield "sign_in", min(target, key=tool.name.index)


def _sign_in_lookups(tool: ToolNameWords) -> Iterator[IndexKey]:
    return (("sign_in", word) for word in tool.name)


def _sign_in_edges(tool: ToolNameWords, index: RuleIndex) -> RuleEdges:
    """Yield the one sign-in whose target is in the tool's name as a whole."""
    for key in _sign_in_lookups(tool):
        sign_ins = index.find(key) or ()
        fitting = [
            other for other in sign_ins if _sign_in_target(index.tools[other]) <= {*tool.name}
        ]
        if len(fitting) == 1:
            yield "requires", fitting[0]


def _signs_in(name: Name) -> bool:
    """Return whether a name begins or ends with signing in: within it, it means another thing."""
    core = [word for word in name if word not in FILLERS] or [""]
    split = any(pair <= {*name} for pair in _SPLIT_SIGN_IN)
    return split or core[0] in _SIGN_IN or core[-1] in _SIGN_IN


def _network_keys(tool: ToolNameWords) -> Iterator[IndexKey]:
    if _reports_network(tool):
        yield "online", ()
    yield from _machine_keys(tool)


def _network_lookups(tool: ToolNameWords) -> Iterator[IndexKey]:
    if _signs_in(tool.name) or _ONLINE.search(tool.description):
        yield "online", ()


def _connection_edges(tool: ToolNameWords, index: RuleIndex) -> RuleEdges:
    """Yield the connection check for what signs in or describes that it needs the network."""
    for key in _network_lookups(tool):
        for helper in index.find(key) or ():
            if index.serves(helper, tool.server):
                yield "requires", helper


def _reports_network(tool: ToolNameWords) -> bool:
    name = "".join(tool.thing)
    asks = tool.verb in SUPPLY | {"check", "is"}
    return (
        asks
        and name.startswith(_NETWORK_WORDS)
        and len(tool.thing) <= len(("wi", "fi", "status"))
        and not tool.required
    )


MAX_TOOLS: Mapping[str, int] = {
    "free": MAX_SUPPLIERS, "whole": MAX_SUPPLIERS, "date": 1, "time": 1, "check": 1, "online": 1,
}  # fmt: skip
"""How many tools may share a key, by its kind."""
SERVER_KEYS = ("check", "online")
"""Kinds whose tools serve their own server, or all servers if that reports the machine."""
RULES: Mapping[str, Rule] = {
    "suppliers": Rule(own_keys=_supplier_keys, lookup_keys=_argument_keys, edges=_supplier_edges),
    "calendar": Rule(own_keys=_clock_keys, lookup_keys=_clock_lookups, edges=_clock_edges),
    "checks": Rule(own_keys=_check_keys, lookup_keys=_check_lookups, edges=_check_edges),
    "sign_in": Rule(own_keys=_sign_in_keys, lookup_keys=_sign_in_lookups, edges=_sign_in_edges),
    "connection": Rule(
        own_keys=_network_keys, lookup_keys=_network_lookups, edges=_connection_edges
    ),
}
