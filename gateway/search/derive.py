"""Edges that nobody wrote, read out of a plain catalog. Pure; each rule can be switched off.

* phases: what finds comes before what inspects, and that before what acts on the same thing.
* mentions: a description that names another tool says how the two belong together.
* what must come before what: see `conditions`.

All of these are guesses: they are *derived*, never declared, and a host's own document can
override them. Every rule is linear in the catalog: it looks up words, it compares no pairs.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence

from gateway.config import GraphOptions
from gateway.search import conditions
from gateway.search.namewords import ACT, Derived, NameWords, Relation, described
from gateway.types import Entity

MAX_STEPS = 3
MAX_GROUP = 64
"""A word that more tools of one server share than this relates nobody to anybody."""

_IDENTIFIER = re.compile(
    r"\b[A-Za-z][A-Za-z0-9]*(?:[_.-][A-Za-z0-9]+|(?<=[a-z0-9])[A-Z][a-z0-9]+)+"
)
_BEFORE = re.compile(
    r"\b(?:after|first|requires?|required|from|returned by|obtained|must)\b", re.IGNORECASE
)
_AFTER = re.compile(r"\b(?:before|then|next|followed by|afterwards)\b", re.IGNORECASE)
_CUE_CHARS = 48


def derive(entities: Sequence[Entity], options: GraphOptions) -> tuple[Derived, ...]:
    """Read all edges that the switched-on rules find; an empty catalog has none."""
    catalog = NameWords.of(entities)
    rules = [rule for name, rule in RULES.items() if getattr(options, name)]
    return tuple(dict.fromkeys(edge for rule in rules for edge in rule(catalog)))


def nouns_of(entity: Entity) -> tuple[str, ...]:
    """Give what an entity's name is about."""
    return NameWords.of([entity]).nouns(0)


def _phases(catalog: NameWords) -> Iterator[Derived]:
    about: dict[tuple[str, str], list[int]] = defaultdict(list)
    for position, entity in enumerate(catalog.entities):
        for noun in catalog.nouns(position):
            about[entity.server, noun].append(position)
    phases = [catalog.phase(position) for position in range(len(catalog.entities))]
    for position, entity in enumerate(catalog.entities):
        shared: Counter[int] = Counter()
        for noun in catalog.nouns(position) if phases[position] < ACT else ():
            group = about[entity.server, noun]
            if len(group) <= MAX_GROUP:
                shared.update(other for other in group if phases[other] > phases[position])
        ranked = sorted(shared, key=lambda other: (-shared[other], phases[other], other))
        for step in ranked[:MAX_STEPS]:
            yield Derived(subject=position, relation="next_steps", object=step, rule="phases")


def _mentions(catalog: NameWords) -> Iterator[Derived]:
    by_name: dict[tuple[str, str], int] = {}
    for position, entity in enumerate(catalog.entities):
        by_name[entity.server, entity.name.casefold()] = position
    for position, entity in enumerate(catalog.entities):
        text = described(entity)
        for found in _IDENTIFIER.finditer(text):
            other = by_name.get((entity.server, found.group().casefold()))
            if other is not None and other != position:
                cue = text[max(0, found.start() - _CUE_CHARS) : found.start()]
                yield Derived(
                    subject=position, relation=_relation(cue), object=other, rule="mentions"
                )


def _relation(cue: str) -> Relation:
    """What the words before a name say of it; the last one counts."""
    before = [match.end() for match in _BEFORE.finditer(cue)]
    after = [match.end() for match in _AFTER.finditer(cue)]
    if not before and not after:
        return "related"
    return "requires" if max(before, default=-1) > max(after, default=-1) else "next_steps"


RULES: Mapping[str, Callable[[NameWords], Iterator[Derived]]] = {
    "phases": _phases,
    "suppliers": conditions.suppliers,
    "calendar": conditions.calendar,
    "checks": conditions.checks,
    "sign_in": conditions.sign_ins,
    "connection": conditions.connections,
    "mentions": _mentions,
}
"""By the name of their switch in `GraphOptions`; data flow and groups are links of the document."""
SURE = frozenset(RULES) - {"phases", "mentions"}
"""The rules whose prerequisites may come from outside the window: seldom wrong where the truth is
known. What a description says is not among them: an upstream would promote what it likes."""
