"""One question, three ways to answer it: by words, by schema, or by both.

A node that both ways find comes before one that one of them finds; see `find`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from graphs.facts.vocabulary import role
from graphs.graph import GraphIndex
from graphs.neighbour import Step
from graphs.rdf.answer import Ask
from graphs.rdf.profile import DEFAULT, Profile
from graphs.rdf.schema_search import SchemaMatch, SchemaResult, search
from graphs.text_search import Ranked, focused

Mode = Literal["focused", "schema", "hybrid"]
_K = 60
"""After Cormack, Clarke and Buettcher, *Reciprocal rank fusion* (2009)."""
_POOL = 4
"""How many times the limit each way brings to the fusion."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A node, and what each way says of it."""

    node: str
    label: str
    score: float
    """Comparable within one search only, > 0."""
    by_words: Ranked | None = None
    """What focused search says; None if it did not find the node."""
    by_schema: SchemaMatch | None = None
    """What the profile says; None if it did not find the node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What was found, and how."""

    mode: Mode
    matches: tuple[Found, ...]
    """Best first, ties by label and id."""
    schema: SchemaResult | None = None
    """The queries, and what belongs to the matches; None if the schema was not asked."""


def find(
    index: GraphIndex,
    text: str,
    *,
    mode: Mode = "focused",
    ask: Ask | None = None,
    profile: Profile = DEFAULT,
    limit: int = 5,
) -> Finding:
    """Find what answers *text*.

    Args:
        index: The graph.
        text: A question in any language; an empty one finds nothing.
        mode: ``focused``: words, near spellings and groups; no SPARQL. ``schema``: the profile.
            ``hybrid``: both, fused by rank.
        ask: Answers SPARQL over the same graph, such as `graphs.Sparql`; needed by ``schema``
            and ``hybrid``.
        profile: What ``schema`` and ``hybrid`` look at.
        limit: How many matches at most.

    Raises:
        ValueError: *mode* needs *ask*, and there is none.
        QueryError: The query of the profile cannot be answered.
    """
    if mode == "focused":
        hits = focused(index, text, limit=limit)
        return Finding(mode=mode, matches=tuple(_of_words(index, hit) for hit in hits))
    if ask is None:
        raise ValueError(f"the mode {mode!r} needs `ask`: pass a graphs.Sparql of the facts")
    pool = limit if mode == "schema" else limit * _POOL
    result = _cited(search(ask, text, profile=profile, limit=pool), index)
    found = {
        match.node: Found(node=match.node, label=match.label, score=match.score, by_schema=match)
        for match in result.matches
    }
    if mode == "hybrid":
        found = _fused(index, found, focused(index, text, limit=pool))
    ranked = sorted(found.values(), key=lambda each: (-each.score, each.label, each.node))
    return Finding(mode=mode, matches=tuple(ranked[: max(limit, 0)]), schema=result)


def _of_words(index: GraphIndex, hit: Ranked) -> Found:
    return Found(node=hit.node, label=index.label(hit.node), score=hit.score, by_words=hit)


def _fused(
    index: GraphIndex, by_schema: dict[str, Found], hits: tuple[Ranked, ...]
) -> dict[str, Found]:
    found = {
        node: replace(each, score=1 / (_K + at))
        for at, (node, each) in enumerate(by_schema.items(), 1)
    }
    for at, hit in enumerate(hits, 1):
        known = found.get(hit.node, replace(_of_words(index, hit), score=0.0))
        found[hit.node] = replace(known, by_words=hit, score=known.score + 1 / (_K + at))
    return found


def _cited(result: SchemaResult, index: GraphIndex) -> SchemaResult:
    """Put file and line to the statements, which RDF does not keep."""
    matches = tuple(
        replace(
            match,
            evidence=tuple(
                replace(each, path=tuple(_source(step, index) for step in each.path))
                for each in match.evidence
            ),
        )
        for match in result.matches
    )
    followed = tuple(
        replace(each, path=tuple(_source(step, index) for step in each.path))
        for each in result.followed
    )
    return replace(result, matches=matches, followed=followed)


def _source(step: Step, index: GraphIndex) -> Step:
    for fact in index.forward.get((step.subject, role(step.predicate)), ()):
        if (fact.predicate, fact.object) == (step.predicate, step.object):
            return replace(
                step,
                path=fact.path,
                line=fact.line,
                declared=fact.declared,
                origin=fact.origin,
            )
    return step
