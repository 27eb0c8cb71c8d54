"""Compiler of a graph from documents and derived facts, which reuses results of earlier builds.

Existing graphs never change. A later build gives the same result as a first build.
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
    "example": "text",
}
"""Predicates whose texts are searched, each with the index field of its texts."""
_LabelOrder: TypeAlias = tuple[bool, bool, str, int, str, str]
"""Sort key of a node's names, best name first. The fifth item is the name itself."""
_FieldText: TypeAlias = tuple[str, Phrase]
"""Name of an index field, and a text for that field."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Source:
    """Facts of one document or one derived part, with edges, names and texts."""

    facts: Iterable[Fact]
    edges: Sequence[Fact]
    documents: Sequence[str]
    """Ids of the nodes that the facts declare to be documents."""
    labels: Mapping[str, _LabelOrder]
    """Sort key of the best name of each node, if `declared`; otherwise empty."""
    derived_labels: Mapping[str, str]
    """Best name of each node, if not `declared`; otherwise empty."""
    texts: Mapping[str, list[_FieldText]]
    """Texts of each node, keyed by node id; empty if texts are not read."""
    declared: bool
    """True if the host declares any of the facts."""

    @classmethod
    def of(cls, facts: Iterable[Fact], *, whole: bool) -> _Source:
        """Read *facts*. Texts are read only if *whole* is true or the host declares a fact."""
        edges: list[Fact] = []
        documents: list[str] = []
        texts: defaultdict[str, list[_FieldText]] = defaultdict(list)
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
    """Compiles immutable graphs from changing documents. Not thread-safe.

    Args:
        weights: Weight of each text field, as in `FIELD_WEIGHTS`.
        fields: Returns the text fields of a row passed to `build`.
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
        """Cached sources, keyed by `id()` of their facts. A value keeps its facts alive, so that
        the key stays unique."""
        self._edges: tuple[object, Network] = None, nx.MultiDiGraph()
        """Edges and forbidden edges of the last build, and the network built from them."""
        self._used_count = 0
        """Number of terms in the last graph's text index; decides when the vocabulary is
        cleared."""
        self._forget()

    def _forget(self) -> None:
        self._vocabulary = Vocabulary(self._weights)
        self._tokens: dict[str, tuple[object, Sequence[_FieldText], DocumentTokens]] = {}
        """Cached tokens, keyed by node id: the row of the node, the texts added to it, and the
        tokens of both."""

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
        """Compile *documents*, and *derived* facts that the documents of the host do not forbid.

        An unchanged document, part of *derived* or row must be the same object as before.

        Args:
            documents: All documents.
            names: The host's names, as in `extract_facts`.
            others: Ids and titles of further nodes that labels may name.
            derived: Facts of the host's own rules, in parts that can be iterated repeatedly.
            rows: Arguments of ``fields``, keyed by searchable node. Texts declared by the host are
                added. None makes all documents searchable, with all stated texts.
            texts: Result of `index` for *rows*, used if no texts are added.
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
            added = _added_texts(sources, labels, rows)
        else:
            added = _added_texts([source for source in sources if source.declared], labels, rows)
        if texts is None or added:
            texts = self._index(rows, added)
        self._used_count = len(texts.names)
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
        edges = [source.edges for source in sources]
        if self._edges[0] != (edges, bans):
            self._edges = (edges, bans), network_of(merge_facts(edges, bans))
        return self._edges[1]

    def index(self, rows: Mapping[str, object]) -> BM25Index:
        """Index the texts that ``fields`` returns for *rows*, which are keyed by node id.

        A row object of the last build is tokenized again only if its added texts changed or the
        vocabulary was cleared.
        """
        self._forget_unused()
        return self._index(rows, {})

    def _index(
        self, rows: Mapping[str, object], added: Mapping[str, Sequence[_FieldText]]
    ) -> BM25Index:
        before, self._tokens = self._tokens, {}
        for node, row in rows.items():
            more = added.get(node, ())
            cached = before.get(node)
            if cached is None or cached[0] is not row or cached[1] != more:
                cached = (
                    row,
                    more,
                    self._vocabulary.tokenize(_with_phrases(self._fields(row), more)),
                )
            self._tokens[node] = cached
        tokens = [cached[2] for cached in self._tokens.values()]
        return BM25Index.compile(tokens, self._vocabulary)

    def _forget_unused(self) -> None:
        """Clear the vocabulary if most of its terms no longer occur in the graph."""
        if len(self._vocabulary.terms) > 2 * self._used_count + MAX_UNUSED:
            self._forget()


def compile_facts(facts: Iterable[Fact]) -> GraphIndex:
    """Compile *facts* once. Without facts, the graph is empty.

    Example:
        >>> from graphs import extract_facts, parse
        >>> facts = extract_facts([parse("# Book a flight"), parse("# Rent a car")])
        >>> compile_facts(facts).documents
        ['urn:tool-gateway:doc:book-a-flight', 'urn:tool-gateway:doc:rent-a-car']
    """
    return GraphBuilder().build(derived=[tuple(facts)])


def _added_texts(
    sources: Iterable[_Source], labels: Mapping[str, str], rows: Container[str]
) -> dict[str, list[_FieldText]]:
    added: defaultdict[str, list[_FieldText]] = defaultdict(list)
    for source in sources:
        for node, texts in source.texts.items():
            if node in rows:
                added[node] += texts
        for edge in filter(_is_group_edge, source.edges):
            if edge.object in labels and edge.subject in rows:
                added[edge.subject].append(("group", (labels[edge.object], "")))
    return added


def _is_group_edge(edge: Fact) -> bool:
    return edge.declared and EDGE_PREDICATES[edge.predicate] == "member"


def _kinds(network: Network, documents: Iterable[str]) -> dict[str, str]:
    groups = {edge.object for edge in edges_of(network) if _is_group_edge(edge)}
    kinds = {node: "concept" if node.startswith(CONCEPT_BASE) else "other" for node in network}
    return kinds | dict.fromkeys(groups, "group") | dict.fromkeys(documents, "document")


def _labels(sources: Sequence[_Source]) -> dict[str, str]:
    """Return each node's best declared name, or else its first derived name, keyed by node id."""
    names: dict[str, str] = {}
    for source in reversed(sources):
        names |= source.derived_labels
    best: dict[str, _LabelOrder] = {}
    for source in sources:
        for node, order in source.labels.items():
            best[node] = min(order, best.get(node, order))
    return names | {node: order[4] for node, order in best.items()}


def _label_order(fact: Fact) -> _LabelOrder:
    other = fact.predicate != "name"
    return not fact.declared, other, fact.path, fact.line, fact.object, fact.language


def _with_phrases(fields: Fields, added: Sequence[_FieldText]) -> Fields:
    if not added:
        return fields
    phrases: dict[str, dict[Phrase, None]] = {}
    for name, value in fields.items():
        phrases[name] = dict.fromkeys([(value, "")] if isinstance(value, str) else value)
    for name, phrase in sorted(added):
        phrases.setdefault(name, {})[phrase] = None
    return {name: tuple(values) for name, values in phrases.items()}
