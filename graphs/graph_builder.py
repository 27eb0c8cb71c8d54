"""Documents and derived facts -> a compiled graph, again and again.

What is dear is kept for each source of facts: its edges and its labels; and for each node its
tokens. The network is made anew only if an edge changed, so readers never see a change. Every build
gives what a first build gives.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeAlias

import networkx as nx

from graphs.facts.extraction import DocumentReader
from graphs.facts.fact import Fact, Triple, merge_facts
from graphs.facts.vocabulary import CONCEPT_BASE, DOCUMENT_TYPE, NO_NAMES
from graphs.graph import EDGE_PREDICATES, GraphIndex, Network, edges_of, network_of
from graphs.lexical.analysis import DocumentTokens, Fields, Phrase, Vocabulary
from graphs.lexical.bm25_index import BM25Index
from graphs.markdown.document import Document
from graphs.parameters import FIELD_WEIGHTS, MAX_UNUSED

FIELDS: Mapping[str, str] = {
    "name": "name",
    "prefLabel": "name",
    "altLabel": "hints",
    "keywords": "hints",
    "description": "description",
    "text": "text",
}
"""The field of each predicate whose text is searched."""
_LabelOrder: TypeAlias = tuple[bool, bool, str, int, str, str]
"""As names are ordered, the best first; the fifth part is the name."""
_Added: TypeAlias = tuple[str, Phrase]
"""The field of a text, and the text."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Source:
    """What one source states."""

    facts: Iterable[Fact]
    edges: Sequence[Fact]
    documents: Sequence[str]
    """The nodes that are documents."""
    labels: Mapping[str, _LabelOrder]
    """The best name of each node, if the host states any of it."""
    derived_labels: Mapping[str, str]
    """Else the best name of each node."""
    texts: Mapping[str, list[_Added]]
    """The texts of each node, if they are needed."""
    declared: bool
    """Whether the host states any of it."""

    @classmethod
    def of(cls, facts: Iterable[Fact], *, whole: bool) -> _Source:
        """Read what a source states; its texts only if it is *whole*, or the host states them."""
        edges: list[Fact] = []
        documents: list[str] = []
        texts: defaultdict[str, list[_Added]] = defaultdict(list)
        labels: dict[str, _LabelOrder] = {}
        declared = False
        for fact in facts:
            declared |= fact.declared
            if fact.predicate == "type" and fact.object == DOCUMENT_TYPE:
                documents.append(fact.subject)
            elif fact.literal and fact.predicate in FIELDS:
                field = FIELDS[fact.predicate]
                texts[fact.subject].append((field, (fact.object, fact.language)))
                if field == "name":
                    order = _label_order(fact)
                    labels[fact.subject] = min(order, labels.get(fact.subject, order))
            elif fact.predicate in EDGE_PREDICATES and not fact.literal:
                edges.append(fact)
        derived = {} if declared else labels
        return cls(
            facts=facts,
            edges=edges,
            documents=documents,
            labels=labels if declared else {},
            derived_labels={node: sys.intern(order[4]) for node, order in derived.items()},
            texts=texts if declared or whole else {},
            declared=declared,
        )


class GraphBuilder:
    """Compiles a graph that changes. Not for two threads at once; its graphs are immutable.

    Args:
        weights: Weight of each text field; see `graphs.parameters.FIELD_WEIGHTS`.
        fields: Returns the texts of one of the rows that `build` gets.
    """

    def __init__(
        self,
        *,
        weights: Mapping[str, float] = FIELD_WEIGHTS,
        fields: Callable[[Any], Fields] = dict,
    ) -> None:
        self._weights = weights
        self._fields = fields
        self._reader = DocumentReader()
        self._sources: dict[int, _Source] = {}
        """By the id of their facts, which they hold."""
        self._edges: tuple[object, Network] = None, nx.MultiDiGraph()
        """All edges that were stated last, with what may not be derived; and their network."""
        self._used = 0
        """How many terms the last graph has."""
        self._forget()

    def _forget(self) -> None:
        self._vocabulary = Vocabulary(self._weights)
        self._tokens: dict[str, tuple[object, Sequence[_Added], DocumentTokens]] = {}
        """The row of each node, the texts that are added to it, and the tokens of both."""

    def build(
        self,
        documents: Iterable[Document] = (),
        *,
        names: Mapping[str, str] = NO_NAMES,
        others: Iterable[tuple[str, str]] = (),
        derived: Iterable[Iterable[Fact]] = (),
        rows: Mapping[str, object] | None = None,
        texts: BM25Index | None = None,
    ) -> GraphIndex:
        """Compile *documents* and *derived* facts, but those that the host's documents forbid.

        Args:
            documents: All that are read. One that did not change is to be the same object as
                before.
            names: The host's names; see `graphs.facts.extraction.extract_facts`.
            others: Further nodes that labels may mean, with their titles.
            derived: Facts of the host's own rules, in parts that can be read again. A part that
                did not change is to be the same object as before.
            rows: The nodes that texts find, in their order, with what ``fields`` makes their texts
                of: the same object as before where they did not change. What the host declares of
                them is added. None finds all documents, by all that is stated.
            texts: What `index` just made of *rows*: it serves if nothing is to be added.
        """
        if texts is None:
            self._forget_unused()
        read, bans = self._reader.read(documents, names, others)
        statements: list[Iterable[Fact]] = [*read, *derived]
        self._sources = {
            id(facts): self._sources.get(id(facts)) or _Source.of(facts, whole=rows is None)
            for facts in statements
        }
        sources = list(self._sources.values())
        labels = _labels(sources)
        described = dict.fromkeys(chain.from_iterable(source.documents for source in sources))
        if rows is None:
            ordered = sorted(described, key=lambda node: (labels.get(node, node), node))
            rows = dict.fromkeys(ordered, ())
            added = _added(sources, labels, rows)
        else:
            added = _added([source for source in sources if source.declared], labels, rows)
        if texts is None or added:
            texts = self._index(rows, added)
        self._used = len(texts.names)
        network = self._network(sources, bans)
        return GraphIndex(
            network=network,
            documents=list(rows),
            labels=labels,
            kinds=_kinds(network, described),
            texts=texts,
            statements=lambda: statements,
            forbidden=bans,
        )

    def _network(self, sources: Iterable[_Source], bans: frozenset[Triple]) -> Network:
        """Return the network of all edges; the same one as before if no edge changed."""
        edges = [source.edges for source in sources]
        if self._edges[0] != (edges, bans):
            self._edges = (edges, bans), network_of(merge_facts(edges, bans))
        return self._edges[1]

    def index(self, rows: Mapping[str, object]) -> BM25Index:
        """Index the texts of *rows*; those that are the same object are not tokenized again.

        Args:
            rows: Each node, with what ``fields`` makes its texts of.
        """
        self._forget_unused()
        return self._index(rows, {})

    def _index(
        self, rows: Mapping[str, object], added: Mapping[str, Sequence[_Added]]
    ) -> BM25Index:
        before, self._tokens = self._tokens, {}
        for node, row in rows.items():
            more = added.get(node, ())
            cached = before.get(node)
            if cached is None or cached[0] is not row or cached[1] != more:
                cached = row, more, self._vocabulary.tokenize(_merged(self._fields(row), more))
            self._tokens[node] = cached
        tokens = [cached[2] for cached in self._tokens.values()]
        return BM25Index.compile(tokens, self._vocabulary)

    def _forget_unused(self) -> None:
        """Begin anew if most of the terms that are numbered are of the past."""
        if len(self._vocabulary.terms) > 2 * self._used + MAX_UNUSED:
            self._forget()


def compile_facts(facts: Iterable[Fact]) -> GraphIndex:
    """Compile *facts* once; without facts the graph is empty and finds nothing."""
    return GraphBuilder().build(derived=[tuple(facts)])


def _added(
    sources: Iterable[_Source], labels: Mapping[str, str], rows: Container[str]
) -> dict[str, list[_Added]]:
    """Return what *sources* add to the texts of *rows*, but for rows without any."""
    added: defaultdict[str, list[_Added]] = defaultdict(list)
    for source in sources:
        for node, texts in source.texts.items():
            if node in rows:
                added[node] += texts
        for edge in filter(_is_group_edge, source.edges):
            if edge.object in labels and edge.subject in rows:
                added[edge.subject].append(("group", (labels[edge.object], "")))
    return added


def _is_group_edge(edge: Fact) -> bool:
    """Return whether the host declares that the edge's subject is a member of its object."""
    return edge.declared and EDGE_PREDICATES[edge.predicate] == "member"


def _kinds(network: Network, documents: Iterable[str]) -> dict[str, str]:
    """Return the kinds of the nodes of *network* and of *documents*."""
    groups = {edge.object for edge in edges_of(network) if _is_group_edge(edge)}
    kinds = {node: "concept" if node.startswith(CONCEPT_BASE) else "other" for node in network}
    return kinds | dict.fromkeys(groups, "group") | dict.fromkeys(documents, "document")


def _labels(sources: Sequence[_Source]) -> dict[str, str]:
    """Return the best name of each node that the host declares, or else the first."""
    found: dict[str, str] = {}
    for source in reversed(sources):
        found |= source.derived_labels
    best: dict[str, _LabelOrder] = {}
    for source in sources:
        for node, order in source.labels.items():
            best[node] = min(order, best.get(node, order))
    return found | {node: order[4] for node, order in best.items()}


def _label_order(fact: Fact) -> _LabelOrder:
    other = fact.predicate != "name"
    return not fact.declared, other, fact.path, fact.line, fact.object, fact.language


def _merged(fields: Fields, added: Sequence[_Added]) -> Fields:
    """Return *fields* with the phrases that were *added*, each once."""
    if not added:
        return fields
    phrases: dict[str, dict[Phrase, None]] = {}
    for name, value in fields.items():
        phrases[name] = dict.fromkeys([(value, "")] if isinstance(value, str) else value)
    for name, phrase in sorted(added):
        phrases.setdefault(name, {})[phrase] = None
    return {name: tuple(found) for name, found in phrases.items()}
