"""What must come before what, read out of names and arguments. Pure.

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

from gateway.index.rules.name_words import FILLERS, SUPPLY, Name, ToolWords
from gateway.index.rules.rule_index import Found, Place, Rule, Table

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
_TELLS: Mapping[str, frozenset[Name]] = {
    "date": frozenset({("date",), ("datetime",)}),
    "time": frozenset({("time",), ("datetime",)}),
}
_NETS = ("wifi", "internet", "connectivity")
_ONLINE = re.compile(
    r"\b(?:internet|network|wi-?fi) (?:connection|access)\b|\bconnectivity\b", re.IGNORECASE
)


def _supplied(tool: ToolWords) -> Iterator[Place]:
    what = tool.thing
    if not what or tool.verb not in SUPPLY:
        return
    if not tool.required:
        yield "free", what
    elif len(what) > 1 and what not in (name for name, _, _ in tool.arguments):
        yield "whole", what


def _asked(tool: ToolWords) -> Iterator[Place]:
    for name in tool.required:
        yield from (("free", name[start:]) for start in range(len(name)))
        yield "whole", name


def _suppliers(tool: ToolWords, table: Table) -> Found:
    """What an argument is called after its supplier tells."""
    for name in tool.required:
        for key in _feeding(name, table) or table.known(("whole", name)) or ():
            if table.tools[key].speaks_to(tool.server):
                yield "requires", key


def _feeding(name: Name, table: Table) -> Sequence[str]:
    """``start_date`` is fed by what gets a start date, else by what gets a date."""
    for start in range(len(name)):
        found = table.known(("free", name[start:]))
        if found is not None:
            return found
    return ()


def _clock(tool: ToolWords) -> Iterator[Place]:
    if tool.tells_of_here:
        yield from ((kind, ()) for kind, things in _TELLS.items() if tool.thing in things)


def _timed(tool: ToolWords) -> Iterator[Place]:
    wanted = {
        kind
        for name, text, required in tool.arguments
        if required
        for kind in _written_as(name, text)
    }
    return ((kind, ()) for kind in sorted(wanted))


def _calendar(tool: ToolWords, table: Table) -> Found:
    """Only what tells of here and now, and only where the catalog has one of it."""
    for place in _timed(tool):
        yield from (("requires", key) for key in table.known(place) or ())


def _written_as(name: Name, text: str) -> Iterator[str]:
    if name in _DATE_PARTS or _DATE_FORMAT.search(text):
        yield "date"
    if _TIME_FORMAT.search(text):
        yield "time"


def _validates(tool: ToolWords) -> Iterator[Place]:
    if tool.verb in _CHECK:
        yield "check", tool.thing
    yield from _machine(tool)


def _machine(tool: ToolWords) -> Iterator[Place]:
    if tool.tells_of_here:
        yield "machine", tool.server


def _checkable(tool: ToolWords) -> Iterator[Place]:
    for name in tool.required:
        yield "check", name
        yield "check", _short(name)


def _short(name: Name) -> Name:
    return name[:-1] if len(name) > 1 and name[-1] in _QUALIFIERS else name


def _checks(tool: ToolWords, table: Table) -> Found:
    """``validate_email`` comes before what takes an ``email`` or an ``email_address``."""
    for name in tool.required:
        found = table.known(("check", name))
        for key in (table.known(("check", _short(name))) if found is None else found) or ():
            if table.serves(key, tool.server):
                yield "requires", key


def _behind(tool: ToolWords) -> frozenset[str]:
    """Where a sign-in leads to, as its name says."""
    return frozenset(tool.name) - _SIGN_IN - _ROUND_SIGN_IN


def _door(tool: ToolWords) -> Iterator[Place]:
    place = _behind(tool)
    if place and _signs_in(tool.name):
        yield "door", min(place, key=tool.name.index)


def _at_doors(tool: ToolWords) -> Iterator[Place]:
    return (("door", word) for word in tool.name)


def _sign_ins(tool: ToolWords, table: Table) -> Found:
    """What shares all that a sign-in's name says of where it leads to."""
    for place in _at_doors(tool):
        doors = table.known(place) or ()
        leading = [key for key in doors if _behind(table.tools[key]) <= {*tool.name}]
        if len(leading) == 1:
            yield "requires", leading[0]


def _signs_in(name: Name) -> bool:
    """Whether a name begins or ends with signing in: in the midst it is about something else."""
    core = [word for word in name if word not in FILLERS] or [""]
    split = any(pair <= {*name} for pair in _SPLIT_SIGN_IN)
    return split or core[0] in _SIGN_IN or core[-1] in _SIGN_IN


def _net(tool: ToolWords) -> Iterator[Place]:
    if _tells_of_net(tool):
        yield "online", ()
    yield from _machine(tool)


def _netted(tool: ToolWords) -> Iterator[Place]:
    if _signs_in(tool.name) or _ONLINE.search(tool.description):
        yield "online", ()


def _connections(tool: ToolWords, table: Table) -> Found:
    """Signing in goes over the net, and some descriptions say that they do."""
    for place in _netted(tool):
        for key in table.known(place) or ():
            if table.serves(key, tool.server):
                yield "requires", key


def _tells_of_net(tool: ToolWords) -> bool:
    joined = "".join(tool.thing)
    asks = tool.verb in SUPPLY | {"check", "is"}
    return (
        asks
        and joined.startswith(_NETS)
        and len(tool.thing) <= len(("wi", "fi", "status"))
        and not tool.required
    )


MOST: Mapping[str, int] = {
    "free": MAX_SUPPLIERS, "whole": MAX_SUPPLIERS, "date": 1, "time": 1, "check": 1, "online": 1,
}  # fmt: skip
"""How many may stand at a place."""
HELPED = ("check", "online")
"""What is only used by its own server, or by all if it speaks for the machine."""
RULES: Mapping[str, Rule] = {
    "suppliers": Rule(stands=_supplied, looks=_asked, edges=_suppliers),
    "calendar": Rule(stands=_clock, looks=_timed, edges=_calendar),
    "checks": Rule(stands=_validates, looks=_checkable, edges=_checks),
    "sign_in": Rule(stands=_door, looks=_at_doors, edges=_sign_ins),
    "connection": Rule(stands=_net, looks=_netted, edges=_connections),
}
