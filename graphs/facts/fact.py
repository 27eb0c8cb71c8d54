"""Facts, which are the statements of a graph, and rules for merging equal facts.

* Of two equal facts, the one with more authority is used with its own weight: facts of the host,
  then other declared facts, then derived ones. At equal authority, the first by origin, file and
  line is used, with the greater weight. The order of the documents does not matter.
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
    """Predicate: a name in the vocabulary, or an absolute IRI."""
    object: str
    """Node id, or a text if `literal`."""
    literal: bool
    """True if `object` is a text, False if it is a node id."""
    weight: float = 1.0
    """Certainty of the statement, in (0, 1]. The strength of an edge is this certainty times the
    weight of its predicate."""
    language: str = ""
    """BCP 47 language of a text; empty if unknown."""
    datatype: str = ""
    """Datatype of a text: an IRI, or the document's own word if it is not a known name; empty for
    plain text."""
    path: str = ""
    """Path of the file with the statement; empty if it does not come from a file."""
    line: int = 0
    """Line number in the file, from 1; 0 if unknown."""
    origin: str = ""
    """Name of the rule that derived the fact, or of the plugin that declares it; empty if a
    document of the host or of an upstream states it."""
    declared: bool
    """True if the host or a plugin declares the fact, False if it is derived or stated by an
    upstream."""

    @property
    def is_of_host(self) -> bool:
        """True if a document of the host declares the fact."""
        return self.declared and not self.origin


Triple: TypeAlias = tuple[str, str, str]
"""Subject, predicate and object. In a forbidden edge, an empty predicate means every predicate."""
_Key: TypeAlias = tuple[str, str, str, bool, str, str]


def merge_facts(
    statements: Iterable[Iterable[Fact]], bans: Collection[Triple] = ()
) -> tuple[Fact, ...]:
    """Return the facts of all *statements* in order. Equal facts are merged with `stronger`.

    Facts that *bans* forbid are left out, unless the host declares them.
    """
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
    """Return one fact for two equal facts: the one with more authority, or else the first by
    origin, file and line with the greater weight.
    """
    ranks = [(fact.is_of_host, fact.declared) for fact in (earlier, new)]
    if ranks[0] != ranks[1]:
        return earlier if ranks[0] > ranks[1] else new
    first, other = sorted((earlier, new), key=lambda fact: (fact.origin, fact.path, fact.line))
    return first if first.weight >= other.weight else replace(first, weight=other.weight)


def is_banned(fact: Fact, bans: Collection[Triple]) -> bool:
    """Return whether *bans* forbid *fact*. Facts that the host declares are never forbidden."""
    return not fact.is_of_host and any(form in bans for form in _ban_triples(fact))


def _ban_triples(fact: Fact) -> Iterator[Triple]:
    if fact.literal:
        return
    row = PREDICATES.get(fact.predicate)
    ends = [(fact.subject, fact.object)]
    if row and row.both_ways:
        ends.append((fact.object, fact.subject))
    for subject, target in ends:
        yield subject, fact.predicate, target
        yield subject, "", target
