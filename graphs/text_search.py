"""Find nodes by a question: by words, by what the schema says of them, or by both.

* ``words``: the index of texts; near spellings and groups count.
* ``schema``: the statements of names, descriptions, keywords and topics; each one that holds a word
  of the question is evidence, with its file and line.
* ``hybrid``: both, merged by reciprocal ranks. A node is listed once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from math import prod
from typing import Literal

from graphs.facts.fact import Fact
from graphs.graph import GraphIndex
from graphs.lexical.analysis import stems
from graphs.parameters import FIND_POOL, FIND_RRF_K, SCHEMA_PARTLY, SCHEMA_WEIGHTS

FindMode = Literal["words", "schema", "hybrid"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TextMatch:
    """A document, and how well it answers."""

    node: str
    """The document's id."""
    score: float
    """BM25F score, > 0; comparable within one search only."""
    coverage: float
    """Share of the text's words that the document matches, by idf, in [0, 1]."""
    words: tuple[str, ...]
    """The matched words, as the query spells them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextEvidence:
    """One statement that speaks for a node."""

    predicate: str
    text: str
    words: tuple[str, ...]
    """The stems of the question that stand in it."""
    score: float
    """In (0, 1]."""
    path: str
    line: int
    """Where it is stated; empty and 0 if in no file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundNode:
    """A node, and why it was found."""

    node: str
    label: str
    score: float
    """Comparable within one search, > 0."""
    path: str
    line: int
    """Where its name is stated; empty and 0 if in no file."""
    words: tuple[str, ...] = ()
    """What the index of texts matched, as the question spells it; empty if it found nothing."""
    evidence: tuple[TextEvidence, ...] = ()
    """What the schema says, the strongest first; empty if it was not searched or says nothing."""


def search_text(
    index: GraphIndex, text: str, *, limit: int, allowed: Callable[[str], bool] | None = None
) -> tuple[TextMatch, ...]:
    """Find the documents that answer *text*.

    Args:
        index: The graph.
        text: A question in any language; an empty one finds nothing.
        limit: How many documents at most.
        allowed: Called with the best documents, one by one, until enough may be found; None
            allows all.

    Returns:
        Best first, equal scores by label and id.
    """
    hits = index.texts.match(text)
    (found,) = hits.scores.nonzero()
    ranked: list[int] = found[(-hits.scores[found]).argsort(kind="stable")].tolist()
    may_be_found = (row for row in ranked if allowed is None or allowed(index.documents[row]))
    rows = list(islice(may_be_found, max(limit, 0)))
    matches = index.texts.document_matches(hits, rows)
    columns = zip(rows, matches.scores, matches.coverage, matches.words, strict=True)
    return tuple(
        TextMatch(node=index.documents[row], score=score, coverage=coverage, words=words)
        for row, score, coverage, words in columns
    )


def find(
    index: GraphIndex,
    text: str,
    *,
    mode: FindMode = "hybrid",
    limit: int,
    weights: Mapping[str, float] = SCHEMA_WEIGHTS,
    allowed: Callable[[str], bool] | None = None,
) -> tuple[FoundNode, ...]:
    """Find the documents that answer *text*.

    Args:
        index: The graph.
        text: A question in any language; one without words finds nothing.
        mode: What is looked at.
        limit: How many at most.
        weights: What a text of each predicate counts in the schema, in (0, 1]; of an edge, the name
            of the node at its end is the text.
        allowed: Returns whether a node may be found; None allows all.

    Returns:
        Best first, ties by label and id.
    """
    pool = FIND_POOL * limit if mode == "hybrid" else limit
    lists = []
    places = _places(index)

    def may_be_found(node: str) -> bool:
        # What an excerpt of the graph leaves out has no kind, but still a row of texts.
        return node in index.kinds and (allowed is None or allowed(node))

    def node_of(node: str, score: float) -> FoundNode:
        path, line = places.get(node, ("", 0))
        return FoundNode(node=node, label=index.label(node), score=score, path=path, line=line)

    if mode != "schema":
        hits = search_text(index, text, limit=pool, allowed=may_be_found)
        lists.append([replace(node_of(hit.node, hit.score), words=hit.words) for hit in hits])
    if mode != "words":
        found = _by_schema(index, text, weights)
        nodes = [
            replace(
                node_of(node, 1 - prod(1 - each.score for each in evidence)),
                evidence=tuple(sorted(evidence, key=lambda each: (-each.score, each.predicate))),
            )
            for node, evidence in found.items()
            if may_be_found(node)
        ]
        lists.append(sorted(nodes, key=_order)[:pool])
    merged = lists[0] if len(lists) == 1 else _merge(*lists)
    return tuple(sorted(merged, key=_order)[: max(limit, 0)])


def _places(index: GraphIndex) -> Mapping[str, tuple[str, int]]:
    """Return where the name of each node is stated."""
    named = (fact for fact in index.facts if fact.predicate == "name")
    return {
        fact.subject: (fact.path, _line(fact))
        for fact in sorted(named, key=lambda fact: bool(fact.path))
    }


def _order(node: FoundNode) -> tuple[float, str, str]:
    return -node.score, node.label, node.node


def _merge(by_words: list[FoundNode], by_schema: list[FoundNode]) -> list[FoundNode]:
    """Join two lists by reciprocal ranks."""
    ranked = [(each, 1 / (FIND_RRF_K + rank)) for rank, each in enumerate(by_words, 1)]
    merged = {each.node: replace(each, score=score) for each, score in ranked}
    for rank, each in enumerate(by_schema, 1):
        entry = merged.get(each.node, replace(each, score=0.0))
        score = entry.score + 1 / (FIND_RRF_K + rank)
        merged[each.node] = replace(entry, evidence=each.evidence, score=score)
    return [*merged.values()]


def _by_schema(
    index: GraphIndex, text: str, weights: Mapping[str, float]
) -> Mapping[str, list[TextEvidence]]:
    """Return the statements that hold words of *text*, by the document that they are about."""
    terms = stems(text)
    found: defaultdict[str, list[TextEvidence]] = defaultdict(list)
    for fact in index.facts:
        weight = weights.get(fact.predicate, 0.0)
        if not weight or fact.subject not in index.rows:
            continue
        value = fact.object if fact.literal else index.label(fact.object)
        held = stems(value)
        met = tuple(word for word in terms if word in held)
        if met:
            whole = len(met) == len(terms) == len(held)
            share = 1.0 if whole else SCHEMA_PARTLY * len(met) / len(terms)
            evidence = TextEvidence(
                predicate=fact.predicate,
                text=value,
                words=met,
                score=weight * share,
                path=fact.path,
                line=_line(fact),
            )
            found[fact.subject].append(evidence)
    return found


def _line(fact: Fact) -> int:
    """Return the line of a statement; texts of the front matter are taken to stand in its first."""
    return fact.line or int(bool(fact.path))
