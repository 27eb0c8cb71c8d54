"""Who says what: facts with everybody who states them, as documents come and go.

* Of equal facts the declared one stays, with its own weight; else the first by rule, file and line,
  with the greatest. The order of the documents does not matter.
* What the host forbids is not derived: a fact that nobody declared is dropped.
* A change costs the facts of what changed, and of who spoke of it by a name.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TypeAlias

from graphs.facts.extraction import Said
from graphs.facts.fact import Fact
from graphs.facts.labels import Names, folded, own
from graphs.facts.vocabulary import PREDICATES
from graphs.markdown.document import Document
from graphs.patched import patched

Triple: TypeAlias = tuple[str, str, str]
Key: TypeAlias = tuple[str, str, str, bool, str, str]
Content: TypeAlias = tuple[Document, tuple[int, ...]]
"""A document with its lines, which its equality passes over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What one document said, for as long as its labels mean the same."""

    node: str
    """What the host's names make of it."""
    subject: str
    facts: Mapping[Key, Fact]
    bans: tuple[Triple, ...]
    looked_up: Mapping[str, str]

    @classmethod
    def of(cls, document: Document, names: Names) -> Kept:
        """Work out what *document* says."""
        said = Said(document=document, names=names, looked_up={})
        found: dict[Key, Fact] = {}
        for fact in said.facts():
            add(found, fact)
        bans = document.forbidden if document.declared else ()
        return cls(
            node=names.node(document),
            subject=names.subject(document),
            facts=found,
            bans=tuple(said.ban(edge) for edge in bans),
            looked_up=said.looked_up,
        )

    def holds(self, document: Document, names: Names) -> bool:
        """Say whether its labels still mean what they meant."""
        same = names.subject(document) == self.subject
        return same and all(names.find(label) == node for label, node in self.looked_up.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What a change of documents and rules comes to."""

    gone: Sequence[Content] = ()
    new: Sequence[Content] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    """The host's names that changed, with their nodes; empty for a name that is gone."""
    unsaid: Iterable[Fact] = ()
    """What rules no longer derive."""
    said: Iterable[Fact] = ()
    """What they derive now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turned:
    """How the facts changed."""

    gone: tuple[Fact, ...]
    new: tuple[Fact, ...]


class Provenance:
    """All statements, with everybody who makes them. Not for two threads at once."""

    def __init__(self) -> None:
        self.kept: Mapping[Content, Kept] = {}
        """What each document says. A change makes another table of it."""
        self.derived: Mapping[Fact, int] = {}
        """What rules say, and how often. A change makes another table of it."""
        self.read = 0
        """How many documents the last change worked out, the others being as they were."""
        self._names = Names()
        self._watched: defaultdict[str, set[Content]] = defaultdict(set)
        self._said: dict[Key, Fact | Counter[Fact]] = {}
        self._bans: Counter[Triple] = Counter()

    @property
    def forbidden(self) -> frozenset[Triple]:
        """What the host forbids: subject, predicate, empty for any, and object."""
        return frozenset(self._bans)

    def change(self, change: Change) -> Turned:
        """Make *change*, and say what it comes to."""
        names = self._names
        labels = {each for pair in change.names.items() for each in names.name(*pair)}
        for content in change.gone:
            labels.update(names.add(content[0], self.kept[content].node, -1))
        moved = self._moved(labels, set(change.gone))
        for content in moved:
            labels.update(names.add(content[0], self.kept[content].node, -1))
        for content in (*moved, *change.new):
            labels.update(names.add(content[0], names.node(content[0])))
        stale = {content: None for content in self._meant(labels) if content not in change.gone}
        stale = {each: None for each in stale if not self.kept[each].holds(each[0], names)}
        again = tuple(dict.fromkeys((*moved, *stale)))
        self.read = len(again) + len(change.new)
        return self._turn((*change.gone, *again), (*again, *change.new), change)

    def _moved(self, labels: Iterable[str], gone: set[Content]) -> tuple[Content, ...]:
        """Give the documents that speak about another node now."""
        return tuple(
            content
            for content in self._meant(labels)
            if content not in gone and self._names.node(content[0]) != self.kept[content].node
        )

    def _meant(self, labels: Iterable[str]) -> list[Content]:
        met = (self._watched.get(name, ()) for name in {folded(label) for label in labels})
        return list(dict.fromkeys(content for each in met for content in each))

    def _turn(self, gone: Sequence[Content], new: Sequence[Content], change: Change) -> Turned:
        before: dict[Key, Fact | None] = {}
        bans = self._bans.copy() if self._bans else Counter()
        for content in gone:
            kept = self.kept[content]
            self._watch(content, kept, watch=False)
            bans.subtract(kept.bans)
            for key, fact in kept.facts.items():
                self._count(before, key, fact, -1)
        fresh: dict[Content, Kept] = {}
        for content in new:
            kept = fresh[content] = Kept.of(content[0], self._names)
            self._watch(content, kept, watch=True)
            bans.update(kept.bans)
            for key, fact in kept.facts.items():
                self._count(before, key, fact, 1)
        self.kept = patched(self.kept, gone, fresh)
        told: dict[Fact, int] = {}
        for facts, count in ((change.unsaid, -1), (change.said, 1)):
            for fact in facts:
                self._count(before, key_of(fact), fact, count)
                known = told[fact] if fact in told else self.derived.get(fact, 0)
                told[fact] = known + count
        unsaid = [fact for fact, left in told.items() if not left and fact in self.derived]
        said = {fact: left for fact, left in told.items() if left}
        self.derived = patched(self.derived, unsaid, said)
        self._forbid(before, +bans)
        return self._turned(before)

    def _turned(self, before: Mapping[Key, Fact | None]) -> Turned:
        gone: list[Fact] = []
        new: list[Fact] = []
        for key, known in before.items():
            fact = self._stated(key)
            if fact != known:
                gone += () if known is None else (known,)
                new += () if fact is None else (fact,)
        return Turned(gone=tuple(gone), new=tuple(new))

    def _forbid(self, before: dict[Key, Fact | None], bans: Counter[Triple]) -> None:
        if bans.keys() != self._bans.keys():
            for key in self._said:
                if not key[3]:
                    before.setdefault(key, self._stated(key))
        self._bans = bans

    def _count(self, before: dict[Key, Fact | None], key: Key, fact: Fact, count: int) -> None:
        held = self._said.get(key)
        if key not in before:
            before[key] = None if held is None else self._stated(key)
        if held is None:
            self._said[key] = fact
            return
        if isinstance(held, Fact):
            if count < 0:
                del self._said[key]
                return
            held = self._said[key] = Counter((held,))
        held[fact] += count
        if not held[fact]:
            del held[fact]
        if not held:
            del self._said[key]

    def _stated(self, key: Key) -> Fact | None:
        """Give the fact that counts; None if nobody says it, or it is forbidden."""
        held = self._said.get(key)
        if held is None:
            return None
        fact = held if isinstance(held, Fact) else reduce(stronger, held)
        free = fact.declared or not self._bans or self._bans.keys().isdisjoint(triples(fact))
        return fact if free else None

    def _watch(self, content: Content, kept: Kept, *, watch: bool) -> None:
        labels = {*kept.looked_up, *own(content[0])}
        for name in {folded(label) for label in labels}:
            if watch:
                self._watched[name].add(content)
            else:
                self._watched[name].discard(content)
                if not self._watched[name]:
                    del self._watched[name]


def merged(kept: Iterable[Kept], derived: Iterable[Fact]) -> tuple[Fact, ...]:
    """Give what *kept* and *derived* say together, each fact once, in their order."""
    found: dict[Key, Fact] = {}
    bans: set[Triple] = set()
    for each in kept:
        bans.update(each.bans)
        twice = found.keys() & each.facts.keys()
        firm = [(key, stronger(found[key], each.facts[key])) for key in twice]
        # A key that is there already keeps its place.
        found.update(each.facts)
        found.update(firm)
    for fact in derived:
        add(found, fact)
    if not bans:
        return tuple(found.values())
    return tuple(fact for fact in found.values() if fact.declared or bans.isdisjoint(triples(fact)))


def lines(document: Document) -> tuple[int, ...]:
    """Give the lines of a document, which its equality passes over."""
    parts = (
        document.authors, document.about, document.hints, document.groups, document.related,
        document.next_steps, document.requires, document.consumes, document.produces,
        document.entities, document.edges, document.texts, document.sections,
    )  # fmt: skip
    return tuple(part.line for each in parts for part in each)


def add(found: dict[Key, Fact], fact: Fact) -> None:
    """Put *fact* to those that are *found*."""
    key = key_of(fact)
    known = found.setdefault(key, fact)
    if known is not fact:
        found[key] = stronger(known, fact)


def key_of(fact: Fact) -> Key:
    """Give what makes two facts equal."""
    return fact.subject, fact.predicate, fact.object, fact.literal, fact.language, fact.datatype


def stronger(known: Fact, new: Fact) -> Fact:
    """Give what stays of two equal facts."""
    if known.declared != new.declared:
        return known if known.declared else new
    first, other = sorted((known, new), key=_place)
    return first if first.weight >= other.weight else replace(first, weight=other.weight)


def _place(fact: Fact) -> tuple[str, str, int]:
    return fact.origin, fact.path, fact.line


def triples(fact: Fact) -> Iterator[Triple]:
    """Give the forms in which a ban may name *fact*."""
    if fact.literal:
        return
    row = PREDICATES.get(fact.predicate)
    ends = [(fact.subject, fact.object)]
    if row and row.both_ways:
        ends.append((fact.object, fact.subject))
    for subject, target in ends:
        yield subject, fact.predicate, target
        yield subject, "", target
