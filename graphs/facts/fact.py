"""One statement of the graph.

The facts of all documents together, each with the source that counts.

* Of equal facts the declared one stays, with its own weight; else the first by rule, file and line,
  with the greatest weight. The order of the documents does not matter.
* What the host forbids is not derived: an undeclared fact that a document of the host bans is left
  out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from graphs.facts.vocabulary import PREDICATES


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One statement of the graph, and where it comes from."""

    subject: str
    """A node id."""
    predicate: str
    """A name of the vocabulary, or an absolute IRI."""
    object: str
    """A node id, or a text if `literal`."""
    literal: bool
    """Whether the object is a text."""
    weight: float = 1.0
    """How sure the statement is, in (0, 1]; the predicate's own weight comes on top."""
    language: str = ""
    """The BCP 47 language of a text; empty if unknown."""
    datatype: str = ""
    """The datatype's IRI of a text; empty for plain text."""
    path: str = ""
    """The file it was read from; empty if from none."""
    line: int = 0
    """The line of the file, counted from 1; 0 if unknown."""
    origin: str = ""
    """Which rule derived it; empty if a document says it."""
    declared: bool
    """Whether the host declares it."""


Triple: TypeAlias = tuple[str, str, str]
"""Subject, predicate and object; the predicate is empty in a ban of every predicate."""
_Key: TypeAlias = tuple[str, str, str, bool, str, str]


def merge_facts(
    statements: Iterable[Iterable[Fact]], bans: Collection[Triple] = ()
) -> tuple[Fact, ...]:
    """Return all *statements* together, each fact once, in their order, without *bans*."""
    found: dict[_Key, Fact] = {}
    for facts in statements:
        for fact in facts:
            key = (
                fact.subject, fact.predicate, fact.object, fact.literal, fact.language,
                fact.datatype,
            )  # fmt: skip
            earlier = found.setdefault(key, fact)
            if earlier is not fact:
                found[key] = stronger(earlier, fact)
    if not bans:
        return tuple(found.values())
    return tuple(fact for fact in found.values() if not is_banned(fact, bans))


def stronger(earlier: Fact, new: Fact) -> Fact:
    """Return what stays of two equal facts."""
    if earlier.declared != new.declared:
        return earlier if earlier.declared else new
    first, other = sorted((earlier, new), key=lambda fact: (fact.origin, fact.path, fact.line))
    return first if first.weight >= other.weight else replace(first, weight=other.weight)


def is_banned(fact: Fact, bans: Collection[Triple]) -> bool:
    """Return whether the host forbids to derive *fact*; what the host declares stands."""
    return not fact.declared and any(form in bans for form in _banned_forms(fact))


def _banned_forms(fact: Fact) -> Iterator[Triple]:
    """Yield the forms in which a ban may name *fact*."""
    if fact.literal:
        return
    row = PREDICATES.get(fact.predicate)
    ends = [(fact.subject, fact.object)]
    if row and row.both_ways:
        ends.append((fact.object, fact.subject))
    for subject, target in ends:
        yield subject, fact.predicate, target
        yield subject, "", target
