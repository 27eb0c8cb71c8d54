"""Facts, which are the statements of a graph, and rules for merging them.

* Of equal facts, the declared one is used with its own weight. Otherwise the first by rule, file
  and line is used, with the greatest weight. The order of the documents does not matter.
* Facts that the host forbids are left out, unless the host declares them itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from graphs.facts.vocabulary import PREDICATES


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One statement of the graph, with its provenance."""

    subject: str
    """Node id."""
    predicate: str
    """Name in the vocabulary, or an absolute IRI."""
    object: str
    """Node id, or a text if `literal`."""
    literal: bool
    """True if the object is a text."""
    weight: float = 1.0
    """Certainty of the statement, in (0, 1]; multiplied by the weight of the predicate."""
    language: str = ""
    """BCP 47 language of a text; empty if unknown."""
    datatype: str = ""
    """Datatype IRI of a text; empty for plain text."""
    path: str = ""
    """Path of the file; empty if the fact does not come from a file."""
    line: int = 0
    """Line number in the file, from 1; 0 if unknown."""
    origin: str = ""
    """Rule that derived the fact; empty if a document states it."""
    declared: bool
    """True if the host declares the fact."""


Triple: TypeAlias = tuple[str, str, str]
"""Subject, predicate and object. In a ban, an empty predicate means every predicate."""
_Key: TypeAlias = tuple[str, str, str, bool, str, str]


def merge_facts(
    statements: Iterable[Iterable[Fact]], bans: Collection[Triple] = ()
) -> tuple[Fact, ...]:
    """Merge *statements* in order, without duplicates and without facts that *bans* forbid."""
    merged: dict[_Key, Fact] = {}
    for facts in statements:
        for fact in facts:
            key = (
                fact.subject, fact.predicate, fact.object, fact.literal, fact.language,
                fact.datatype,
            )  # fmt: skip
            earlier = merged.setdefault(key, fact)
            if earlier is not fact:
                merged[key] = stronger(earlier, fact)
    if not bans:
        return tuple(merged.values())
    return tuple(fact for fact in merged.values() if not is_banned(fact, bans))


def stronger(earlier: Fact, new: Fact) -> Fact:
    """Merge two equal facts into one."""
    if earlier.declared != new.declared:
        return earlier if earlier.declared else new
    first, other = sorted((earlier, new), key=lambda fact: (fact.origin, fact.path, fact.line))
    return first if first.weight >= other.weight else replace(first, weight=other.weight)


def is_banned(fact: Fact, bans: Collection[Triple]) -> bool:
    """Return whether the host forbids *fact*. Declared facts are never forbidden."""
    return not fact.declared and any(form in bans for form in _ban_triples(fact))


def _ban_triples(fact: Fact) -> Iterator[Triple]:
    """Yield the triples with which a ban may forbid *fact*."""
    if fact.literal:
        return
    row = PREDICATES.get(fact.predicate)
    ends = [(fact.subject, fact.object)]
    if row and row.both_ways:
        ends.append((fact.object, fact.subject))
    for subject, target in ends:
        yield subject, fact.predicate, target
        yield subject, "", target
