"""Documents become facts; what did not change is not worked out again.

* Of equal facts the declared one stays, with its own weight; else the first, with the greatest.
* What the host forbids is not derived: a fact that nobody declared is dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TypeAlias

from graphs.document import Document
from graphs.fact import Fact
from graphs.names import Names
from graphs.said import Said
from graphs.vocabulary import PREDICATES

NO_NAMES: Mapping[str, str] = MappingProxyType({})
_Triple: TypeAlias = tuple[str, str, str]
_Key: TypeAlias = tuple[str, str, str, bool, str, str]
_Name: TypeAlias = tuple[str, str, str]
_Content: TypeAlias = tuple[Document, tuple[int, ...]]


def facts(
    documents: Iterable[Document],
    *,
    names: Mapping[str, str] = NO_NAMES,
    derived: Iterable[Fact] = (),
) -> tuple[Fact, ...]:
    """Turn *documents* into facts; see `Builder.facts`."""
    return Builder().facts(documents, names=names, derived=derived)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    """What one document said, for as long as its labels mean the same."""

    subject: str
    facts: Mapping[_Key, Fact]
    bans: tuple[_Triple, ...]
    looked_up: Mapping[str, str]

    def holds(self, document: Document, names: Names) -> bool:
        if names.exact.get(document.id, document.id) != self.subject:
            return False
        return all(names.find(label) == node for label, node in self.looked_up.items())


class Builder:
    """Documents -> facts, again and again. Not for two threads at once."""

    def __init__(self) -> None:
        self._kept: dict[_Content, _Kept] = {}
        self._same: dict[int, tuple[Document, _Content]] = {}
        self._named: tuple[list[_Name], dict[str, str]] = ([], {})
        self._names = Names.of((), {})
        self.read = 0
        """How many documents the last build worked out, the others being as they were."""

    def facts(
        self,
        documents: Iterable[Document],
        *,
        names: Mapping[str, str] = NO_NAMES,
        derived: Iterable[Fact] = (),
    ) -> tuple[Fact, ...]:
        """Turn *documents* into facts.

        Args:
            documents: In any order; of equal facts the declared one stays, else the first.
            names: Node ids by the names a text may use for them. Compared exactly first, then
                without regard to case, spaces, ``_`` and ``-``. A document with such an id,
                title or file name speaks about that node.
            derived: What nobody wrote: facts of the host's own rules, with their ``origin``.

        Returns:
            Each fact once, in the order of the documents, then the derived ones; without those
            that a declared document forbids. Empty without documents.
        """
        given = tuple(documents)
        named = [(each.id, each.title, each.path) for each in given], dict(names)
        same = named == self._named
        names_of = self._names if same else Names.of(given, names)
        kept: dict[_Content, _Kept] = {}
        self.read = 0
        contents = [self._content(document) for document in given]
        for content in contents:
            document = content[0]
            known = self._kept.get(content)
            if known is None or not (same or known.holds(document, names_of)):
                known = _keep(document, names_of)
                self.read += 1
            kept[content] = known
        self._kept, self._names, self._named = kept, names_of, named
        self._same = {id(each): (each, c) for each, c in zip(given, contents, strict=True)}
        return _merged(tuple(kept.values()), derived)

    def _content(self, document: Document) -> _Content:
        """Give what the document's facts are kept by; the same object needs no second look."""
        known = self._same.get(id(document))
        if known is not None and known[0] is document:
            return known[1]
        return document, _lines(document)


def _keep(document: Document, names: Names) -> _Kept:
    said = Said(document=document, names=names, looked_up={})
    found: dict[_Key, Fact] = {}
    for fact in said.facts():
        _add(found, fact)
    bans = document.forbidden if document.declared else ()
    return _Kept(
        subject=names.exact.get(document.id, document.id),
        facts=found,
        bans=tuple(said.ban(edge) for edge in bans),
        looked_up=said.looked_up,
    )


def _lines(document: Document) -> tuple[int, ...]:
    """Give the lines of a document, which its equality passes over."""
    parts = (
        document.authors, document.about, document.hints, document.groups, document.related,
        document.next_steps, document.requires, document.consumes, document.produces,
        document.entities, document.edges, document.texts, document.sections,
    )  # fmt: skip
    return tuple(part.line for each in parts for part in each)


def _merged(kept: Sequence[_Kept], derived: Iterable[Fact]) -> tuple[Fact, ...]:
    found: dict[_Key, Fact] = {}
    for each in kept:
        twice = found.keys() & each.facts.keys()
        stronger = [(key, _stronger(found[key], each.facts[key])) for key in twice]
        # A key that is there already keeps its place.
        found.update(each.facts)
        found.update(stronger)
    for fact in derived:
        _add(found, fact)
    bans = frozenset(ban for each in kept for ban in each.bans)
    if not bans:
        return tuple(found.values())
    return tuple(
        fact for fact in found.values() if fact.declared or bans.isdisjoint(_triples(fact))
    )


def _add(found: dict[_Key, Fact], fact: Fact) -> None:
    key = (
        fact.subject, fact.predicate, fact.object, fact.literal, fact.language, fact.datatype
    )  # fmt: skip
    known = found.setdefault(key, fact)
    if known is not fact:
        found[key] = _stronger(known, fact)


def _stronger(known: Fact, new: Fact) -> Fact:
    if known.declared != new.declared:
        return known if known.declared else new
    return known if known.weight >= new.weight else replace(known, weight=new.weight)


def _triples(fact: Fact) -> Iterator[_Triple]:
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
