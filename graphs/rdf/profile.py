"""What a schema-aware search looks at: predicates, types and how words are compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from graphs.errors import QueryError
from graphs.facts.vocabulary import DOCUMENT_TYPE, is_iri, resolve

TermMode = Literal["any", "all", "phrase"]
Direction = Literal["out", "in"]
FollowRole = Literal["related", "next_step", "prerequisite"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TextRule:
    """A predicate whose texts are searched."""

    predicate: str
    """A name of the vocabulary, or an IRI."""
    weight: float
    """What a text that is the whole question earns, > 0; a part of it earns less."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """A predicate whose other end is searched for its texts."""

    predicate: str
    """A name of the vocabulary, or an IRI."""
    weight: float
    """What such a text earns, > 0."""
    direction: Direction = "out"
    """Whether the found node is the statement's subject (``out``) or its object (``in``)."""
    texts: tuple[str, ...] = ("prefLabel", "name")
    """The predicates of the other end's texts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Follow:
    """A predicate that leads from a match to what belongs to it."""

    predicate: str
    """A name of the vocabulary, or an IRI."""
    role: FollowRole
    """What the other end is to the match."""
    score: float
    """How near it is, in (0, 1]."""
    direction: Direction = "out"
    """Whether the match is the statement's subject (``out``) or its object (``in``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What is searched, and what is shown with it."""

    texts: tuple[TextRule, ...] = (
        TextRule(predicate="name", weight=1.2),
        TextRule(predicate="altLabel", weight=1.1),
        TextRule(predicate="description", weight=1.1),
        TextRule(predicate="keywords", weight=0.95),
        TextRule(predicate="prefLabel", weight=0.75),
    )
    relations: tuple[Relation, ...] = (
        Relation(predicate="about", weight=0.9),
        Relation(predicate="memberOf", weight=0.8),
        Relation(predicate="mentions", weight=0.7),
    )
    follows: tuple[Follow, ...] = (
        Follow(predicate="requires", role="prerequisite", score=0.9),
        Follow(predicate="nextStep", role="next_step", score=0.9),
        Follow(predicate="relatedTo", role="related", score=0.75),
        Follow(predicate="relatedTo", role="related", score=0.75, direction="in"),
        Follow(predicate="mentions", role="related", score=0.35),
        Follow(predicate="hasPart", role="related", score=0.25),
    )
    types: tuple[str, ...] = (DOCUMENT_TYPE,)
    """IRIs of the types that may be found; empty for every type."""
    terms: TermMode = "any"
    """Whether any word of the question is enough, all must meet, or they must stand together."""

    def __post_init__(self) -> None:
        """Refuse a profile that no query can be made of."""
        if not (self.texts or self.relations):
            raise QueryError("the profile searches nothing: give it texts or relations")
        rules: tuple[TextRule | Relation | Follow, ...] = (
            *self.texts,
            *self.relations,
            *self.follows,
        )
        words = [rule.predicate for rule in rules] + [t for r in self.relations for t in r.texts]
        if unknown := [word for word in words if resolve(word) is None]:
            raise QueryError(f"the profile's predicate {unknown[0]!r} is unknown: use an IRI")
        if wrong := [kind for kind in self.types if not is_iri(kind)]:
            raise QueryError(f"the profile's type {wrong[0]!r} is no IRI")


DEFAULT = Profile()
"""The words of the dialect."""
