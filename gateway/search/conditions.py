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
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from gateway.search.namewords import FILLERS, SUPPLY, Derived, Name, NameWords, arguments, words

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


def suppliers(catalog: NameWords) -> Iterator[Derived]:
    """What an argument is called after its supplier tells."""
    free, whole = _supply(catalog)
    for position, entity in enumerate(catalog.entities):
        for argument in entity.required:
            name = words(argument)
            for supplier in _feeding(name, free) or _few(whole.get(name, ())):
                if supplier != position and catalog.speaks_to(supplier, entity.server):
                    yield _before(position, supplier, "suppliers")


def _supply(catalog: NameWords) -> tuple[dict[Name, list[int]], dict[Name, list[int]]]:
    """Give who gets what: those that need nothing, and those that do but name it in full."""
    free: dict[Name, list[int]] = defaultdict(list)
    whole: dict[Name, list[int]] = defaultdict(list)
    for position, entity in enumerate(catalog.entities):
        what = catalog.thing(position)
        if not what or catalog.verb(position) not in SUPPLY:
            continue
        if not entity.required:
            free[what].append(position)
        elif len(what) > 1 and what not in (words(name) for name, _ in arguments(entity)):
            whole[what].append(position)
    return free, whole


def _feeding(name: Name, supply: Mapping[Name, Sequence[int]]) -> Sequence[int]:
    """``start_date`` is fed by what gets a start date, else by what gets a date."""
    for start in range(len(name)):
        found = supply.get(name[start:], ())
        if found:
            return _few(found)
    return ()


def _few(found: Sequence[int]) -> Sequence[int]:
    return found if len(found) <= MAX_SUPPLIERS else ()


def calendar(catalog: NameWords) -> Iterator[Derived]:
    """Only what tells of here and now, and only where the catalog has one of it."""
    clocks = {
        kind: [spot for spot in catalog.here if catalog.thing(spot) in things]
        for kind, things in _TELLS.items()
    }
    for position, entity in enumerate(catalog.entities):
        wanted = {
            kind
            for name, text in arguments(entity)
            if name in entity.required
            for kind in _written_as(words(name), text)
        }
        for kind in sorted(wanted):
            clock = _only(clocks[kind])
            if clock is not None and clock != position:
                yield _before(position, clock, "calendar")


def _written_as(name: Name, text: str) -> Iterator[str]:
    if name in _DATE_PARTS or _DATE_FORMAT.search(text):
        yield "date"
    if _TIME_FORMAT.search(text):
        yield "time"


def checks(catalog: NameWords) -> Iterator[Derived]:
    """``validate_email`` comes before what takes an ``email`` or an ``email_address``."""
    validators: dict[Name, list[int]] = defaultdict(list)
    for position in range(len(catalog.entities)):
        if catalog.verb(position) in _CHECK:
            validators[catalog.thing(position)].append(position)
    for position, entity in enumerate(catalog.entities):
        for argument in entity.required:
            name = words(argument)
            short = name[:-1] if len(name) > 1 and name[-1] in _QUALIFIERS else name
            check = _only(validators[name] if name in validators else validators.get(short, ()))
            if check is not None and check != position and catalog.serves(check, entity.server):
                yield _before(position, check, "checks")


def sign_ins(catalog: NameWords) -> Iterator[Derived]:
    """What shares all that a sign-in's name says of where it leads to."""
    doors: dict[str, list[tuple[int, frozenset[str]]]] = defaultdict(list)
    for position, name in enumerate(catalog.names):
        place = frozenset(name) - _SIGN_IN - _ROUND_SIGN_IN
        if place and _signs_in(name):
            doors[min(place, key=name.index)].append((position, place))
    for position, name in enumerate(catalog.names):
        for word in name:
            door = _only([door for door, place in doors.get(word, ()) if place <= {*name}])
            if door is not None and door != position:
                yield _before(position, door, "sign_in")


def _signs_in(name: Name) -> bool:
    """Whether a name begins or ends with signing in: in the midst it is about something else."""
    core = [word for word in name if word not in FILLERS] or [""]
    split = any(pair <= {*name} for pair in _SPLIT_SIGN_IN)
    return split or core[0] in _SIGN_IN or core[-1] in _SIGN_IN


def connections(catalog: NameWords) -> Iterator[Derived]:
    """Signing in goes over the net, and some descriptions say that they do."""
    check = _only([spot for spot in range(len(catalog.entities)) if _tells_of_net(catalog, spot)])
    if check is None:
        return
    for position, entity in enumerate(catalog.entities):
        needed = _signs_in(catalog.names[position]) or _ONLINE.search(entity.description)
        if needed and position != check and catalog.serves(check, entity.server):
            yield _before(position, check, "connection")


def _tells_of_net(catalog: NameWords, position: int) -> bool:
    joined = "".join(catalog.thing(position))
    asks = catalog.verb(position) in SUPPLY | {"check", "is"}
    return (
        asks
        and joined.startswith(_NETS)
        and len(catalog.thing(position)) <= len(("wi", "fi", "status"))
        and not catalog.entities[position].required
    )


def _only(found: Sequence[int]) -> int | None:
    return found[0] if len(found) == 1 else None


def _before(position: int, condition: int, rule: str) -> Derived:
    return Derived(subject=position, relation="requires", object=condition, rule=rule)
