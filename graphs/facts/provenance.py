"""The facts of all documents together, each with the source that counts.

* Of equal facts the declared one stays, with its own weight; else the first by rule, file and line,
  with the greatest weight. The order of the documents does not matter.
* What the host forbids is not derived: an undeclared fact that a document of the host bans is left
  out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from typing import TypeAlias

from graphs.facts.fact import Fact
from graphs.facts.vocabulary import PREDICATES

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
