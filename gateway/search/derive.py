"""Edges that nobody wrote, read out of a plain catalog. Pure; each rule can be switched off.

* phases: what finds comes before what inspects, and that before what acts on the same thing.
* data flow: a field of one tool's output is a required argument of another.
* suppliers: a tool that gets X and needs nothing feeds an argument called X; one that needs
  something itself feeds it where X is more than one word (``get_city_code`` feeds ``city_code``).
* sign-in: what signs in to something comes before what uses it.
* mentions: a description that names another tool says how the two belong together.

All of these are guesses: they are *derived*, never declared, and a host's own document can
override them. Every rule is linear in the catalog: it looks up words, it compares no pairs.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from gateway.config import GraphOptions
from gateway.types import Entity
from graphs.text import split_identifier

Relation = Literal["requires", "next_steps", "related"]
_Supply: TypeAlias = dict[tuple[str, ...], list[int]]
"""Who gets what, by the words of its name."""
MAX_STEPS = 3
MAX_SUPPLIERS = 2
"""An argument that more tools could feed is fed by none in particular."""
MAX_GROUP = 64
"""A word that more tools of one server share than this relates nobody to anybody."""

_DISCOVER = frozenset({"search", "find", "list", "query", "discover", "browse", "lookup", "scan"})
_INSPECT = frozenset(
    {"get", "read", "fetch", "show", "describe", "inspect", "view", "details", "info", "check"}
)
_SIGN_IN = frozenset({"login", "signin", "authenticate", "authorize"})
_ACT = 2
_SUPPLY = frozenset({"get", "fetch", "read", "retrieve", "detect", "determine", "generate"})
_OWNERS = frozenset({"current", "system", "user", "my", "device", "the", "a", "an", "desired"})
_IDENTIFIER = re.compile(
    r"\b[A-Za-z][A-Za-z0-9]*(?:[_.-][A-Za-z0-9]+|(?<=[a-z0-9])[A-Z][a-z0-9]+)+"
)
_BEFORE = re.compile(
    r"\b(?:after|first|requires?|required|from|returned by|obtained|must)\b", re.IGNORECASE
)
_AFTER = re.compile(r"\b(?:before|then|next|followed by|afterwards)\b", re.IGNORECASE)
_CUE_CHARS = 48


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
    catalog = _Words.of(entities)
    rules = [rule for name, rule in RULES.items() if getattr(options, name)]
    return tuple(dict.fromkeys(edge for rule in rules for edge in rule(catalog)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Words:
    """The words of a catalog's names, read once for all rules."""

    entities: Sequence[Entity]
    names: Sequence[tuple[str, ...]]
    """Lower-case words of each name, plural s dropped."""

    @classmethod
    def of(cls, entities: Sequence[Entity]) -> _Words:
        names = [_words(e.name) for e in entities]
        return cls(entities=entities, names=names)

    def nouns(self, position: int) -> tuple[str, ...]:
        """The words but the first, which is the verb, and but single letters and other verbs."""
        words = [word for word in self.names[position] if len(word) > 1]
        verbs = _DISCOVER | _INSPECT
        return tuple(dict.fromkeys(word for word in words[1:] or words if word not in verbs))

    def phase(self, position: int) -> int:
        """0 finds, 1 inspects, 2 acts."""
        verbs = set(self.names[position])
        return 0 if verbs & _DISCOVER else 1 if verbs & _INSPECT else _ACT

    def speaks_to(self, supplier: int, server: str) -> bool:
        """Whether what *supplier* gets means the same to *server*: a bare ``status`` does not."""
        more_than_a_word = len(self.names[supplier]) > len(("verb", "word"))
        return more_than_a_word or self.entities[supplier].server == server


def nouns_of(entity: Entity) -> tuple[str, ...]:
    """Give what an entity's name is about."""
    return _Words.of([entity]).nouns(0)


def _phases(catalog: _Words) -> Iterator[Derived]:
    about: dict[tuple[str, str], list[int]] = defaultdict(list)
    for position, entity in enumerate(catalog.entities):
        for noun in catalog.nouns(position):
            about[entity.server, noun].append(position)
    phases = [catalog.phase(position) for position in range(len(catalog.entities))]
    for position, entity in enumerate(catalog.entities):
        shared: Counter[int] = Counter()
        for noun in catalog.nouns(position) if phases[position] < _ACT else ():
            group = about[entity.server, noun]
            if len(group) <= MAX_GROUP:
                shared.update(other for other in group if phases[other] > phases[position])
        ranked = sorted(shared, key=lambda other: (-shared[other], phases[other], other))
        for step in ranked[:MAX_STEPS]:
            yield Derived(subject=position, relation="next_steps", object=step, rule="phases")


def _suppliers(catalog: _Words) -> Iterator[Derived]:
    free, whole = _supply(catalog)
    for position, entity in enumerate(catalog.entities):
        for argument in _arguments(entity):
            words = _words(argument)
            for supplier in _feeding(words, free) or _few(whole.get(words, ())):
                if supplier != position and catalog.speaks_to(supplier, entity.server):
                    yield Derived(
                        subject=position, relation="requires", object=supplier, rule="suppliers"
                    )


def _supply(catalog: _Words) -> tuple[_Supply, _Supply]:
    """Give who gets what: those that need nothing, and those that do but name it in full."""
    free: _Supply = defaultdict(list)
    whole: _Supply = defaultdict(list)
    for position, entity in enumerate(catalog.entities):
        verb, *rest = catalog.names[position] or ("",)
        what = tuple(word for word in rest if word not in _OWNERS)
        if verb not in _SUPPLY or not what:
            continue
        if not entity.required:
            free[what].append(position)
        elif len(what) > 1 and what not in map(_words, _arguments(entity)):
            whole[what].append(position)
    return free, whole


def _feeding(words: tuple[str, ...], supply: _Supply) -> Sequence[int]:
    """``start_date`` is fed by what gets a start date, else by what gets a date."""
    for start in range(len(words)):
        found = supply.get(words[start:], ())
        if found:
            return _few(found)
    return ()


def _few(suppliers: Sequence[int]) -> Sequence[int]:
    return suppliers if len(suppliers) <= MAX_SUPPLIERS else ()


def _sign_ins(catalog: _Words) -> Iterator[Derived]:
    doors: dict[str, list[int]] = defaultdict(list)
    for position, words in enumerate(catalog.names):
        if set(words) & _SIGN_IN or {"log", "in"} <= set(words) or {"sign", "in"} <= set(words):
            rest = set(words) - _SIGN_IN - _OWNERS - {"log", "sign", "in", "to", "account"}
            if rest:
                doors[min(rest, key=words.index)].append(position)
    for position, words in enumerate(catalog.names):
        for word in words:
            for door in doors.get(word, ()):
                if door != position and len(doors[word]) == 1:
                    yield Derived(
                        subject=position, relation="requires", object=door, rule="sign_in"
                    )


def _mentions(catalog: _Words) -> Iterator[Derived]:
    by_name: dict[tuple[str, str], int] = {}
    for position, entity in enumerate(catalog.entities):
        by_name[entity.server, entity.name.casefold()] = position
    for position, entity in enumerate(catalog.entities):
        text = _described(entity)
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


def _described(entity: Entity) -> str:
    properties = entity.definition.input_schema.get("properties")
    told = properties.values() if isinstance(properties, Mapping) else ()
    texts = [each.get("description") for each in told if isinstance(each, Mapping)]
    return "\n".join([entity.description, *(text for text in texts if isinstance(text, str))])


def _arguments(entity: Entity) -> Iterable[str]:
    properties = entity.definition.input_schema.get("properties")
    return map(str, properties) if isinstance(properties, Mapping) else ()


def _words(name: str) -> tuple[str, ...]:
    return tuple(_singular(word.casefold()) for word in split_identifier(name))


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


RULES: Mapping[str, Callable[[_Words], Iterator[Derived]]] = {
    "phases": _phases,
    "suppliers": _suppliers,
    "sign_in": _sign_ins,
    "mentions": _mentions,
}
"""By the name of their switch in `GraphOptions`; data flow and groups are links of the document."""
