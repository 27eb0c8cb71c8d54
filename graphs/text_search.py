"""Search for nodes by a query: in their texts, in their statements, or in both.

* ``words``: the text index, which also finds similar spellings.
* ``schema``: statements of names, descriptions, keywords and topics.
* ``hybrid``: both, merged by reciprocal ranks.
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
    """A document that matches a query."""

    node: str
    """Id of the document."""
    score: float
    """BM25F score of the document, > 0; comparable within one search only."""
    coverage: float
    """Share of the query's words that the document matches, weighted by idf, in [0, 1]."""
    words: tuple[str, ...]
    """Words of the query that the document matches, as the query spells them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextEvidence:
    """A statement about a node that contains words of the query."""

    predicate: str
    text: str
    words: tuple[str, ...]
    """Stems of the query that the statement contains."""
    score: float
    """Score of the statement for the query, in (0, 1]."""
    path: str
    line: int
    """Line number of the statement in *path*; 0 if it does not come from a file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundNode:
    """A node found by `find`, with the evidence for it."""

    node: str
    label: str
    score: float
    """Score of the node, > 0; comparable within one search only."""
    path: str
    line: int
    """Line number in *path* of the node's name; 0 if it does not come from a file."""
    words: tuple[str, ...] = ()
    """Words of the query that the text index matched, as the query spells them."""
    evidence: tuple[TextEvidence, ...] = ()
    """Matching statements about the node, best first; empty if statements were not searched."""


def search_text(
    index: GraphIndex, text: str, *, limit: int, allowed: Callable[[str], bool] | None = None
) -> tuple[TextMatch, ...]:
    """Find the documents whose texts match *text*, best first. An empty text finds nothing.

    Equal scores are in the order of `GraphIndex.documents`. *allowed* returns whether the document
    with an id may be found. It is called with the best documents in turn, until there are enough.

    Example:
        >>> from graphs import compile_facts, extract_facts, parse
        >>> index = compile_facts(extract_facts([parse("# Book a flight"), parse("# Rent a car")]))
        >>> [match.node for match in search_text(index, "flights", limit=3)]
        ['urn:tool-gateway:doc:book-a-flight']
    """
    hits = index.texts.match(text)
    (matching_rows,) = hits.scores.nonzero()
    ranked: list[int] = matching_rows[(-hits.scores[matching_rows]).argsort(kind="stable")].tolist()
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
    """Find the nodes that match the query *text*, best first, equal scores by label and id.

    Args:
        index: The graph.
        text: Query in any language. A query without words finds nothing.
        mode: Search in texts (``words``), in statements (``schema``), or in both (``hybrid``).
        limit: Maximum number of nodes.
        weights: Score of a statement whose text equals the query, keyed by predicate, in (0, 1].
            The text of an edge is the name of its object.
        allowed: Returns whether the node with an id may be found. None allows all.
    """
    pool = FIND_POOL * limit if mode == "hybrid" else limit
    lists = []
    name_lines = _name_lines(index)

    def may_be_found(node: str) -> bool:
        # In an excerpt of the graph, excluded nodes have no kind, but still a row of texts.
        return node in index.kinds and (allowed is None or allowed(node))

    def node_of(node: str, score: float) -> FoundNode:
        path, line = name_lines.get(node, ("", 0))
        return FoundNode(node=node, label=index.label(node), score=score, path=path, line=line)

    if mode != "schema":
        hits = search_text(index, text, limit=pool, allowed=may_be_found)
        lists.append([replace(node_of(hit.node, hit.score), words=hit.words) for hit in hits])
    if mode != "words":
        evidence_by_node = _by_schema(index, text, weights)
        nodes = [
            replace(
                node_of(node, 1 - prod(1 - statement.score for statement in evidence)),
                evidence=tuple(
                    sorted(evidence, key=lambda statement: (-statement.score, statement.predicate))
                ),
            )
            for node, evidence in evidence_by_node.items()
            if may_be_found(node)
        ]
        lists.append(sorted(nodes, key=_order)[:pool])
    merged = lists[0] if len(lists) == 1 else _merge(*lists)
    return tuple(sorted(merged, key=_order)[: max(limit, 0)])


def _name_lines(index: GraphIndex) -> Mapping[str, tuple[str, int]]:
    named = (fact for fact in index.facts if fact.predicate == "name")
    return {
        fact.subject: (fact.path, _line(fact))
        for fact in sorted(named, key=lambda fact: bool(fact.path))
    }


def _order(node: FoundNode) -> tuple[float, str, str]:
    return -node.score, node.label, node.node


def _merge(by_words: list[FoundNode], by_schema: list[FoundNode]) -> list[FoundNode]:
    ranked = [(node, 1 / (FIND_RRF_K + rank)) for rank, node in enumerate(by_words, 1)]
    merged = {node.node: replace(node, score=score) for node, score in ranked}
    for rank, node in enumerate(by_schema, 1):
        entry = merged.get(node.node, replace(node, score=0.0))
        score = entry.score + 1 / (FIND_RRF_K + rank)
        merged[node.node] = replace(entry, evidence=node.evidence, score=score)
    return [*merged.values()]


def _by_schema(
    index: GraphIndex, text: str, weights: Mapping[str, float]
) -> Mapping[str, list[TextEvidence]]:
    terms = stems(text)
    evidence_by_node: defaultdict[str, list[TextEvidence]] = defaultdict(list)
    for fact in index.facts:
        weight = weights.get(fact.predicate, 0.0)
        if not weight or fact.subject not in index.rows:
            continue
        value = fact.object if fact.literal else index.label(fact.object)
        value_stems = stems(value)
        common = tuple(word for word in terms if word in value_stems)
        if common:
            is_whole = len(common) == len(terms) == len(value_stems)
            share = 1.0 if is_whole else SCHEMA_PARTLY * len(common) / len(terms)
            evidence = TextEvidence(
                predicate=fact.predicate,
                text=value,
                words=common,
                score=weight * share,
                path=fact.path,
                line=_line(fact),
            )
            evidence_by_node[fact.subject].append(evidence)
    return evidence_by_node


def _line(fact: Fact) -> int:
    """Return the line of *fact*; 1 for front matter, 0 without a file."""
    return fact.line or int(bool(fact.path))
