"""The graph: a `networkx.MultiDiGraph` of typed edges, with an index of the texts of its documents.

* The kind of a node is ``document``, ``group`` (a node with members declared by the host),
  ``concept`` or ``other``.
* The network contains only nodes with an edge.
* The key of an edge is its predicate. Its data contain ``fact``, the statement of the edge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter
from typing import Literal, TypeAlias

import networkx as nx

from graphs.facts.fact import Fact, Triple, merge_facts
from graphs.facts.vocabulary import CONCEPT_BASE, PREDICATES
from graphs.lexical.bm25_index import BM25Index
from graphs.parameters import MAX_GROUP_SIZE

EdgeRole = Literal["related", "next_step", "prerequisite", "member", "consumes", "produces"]
EDGE_PREDICATES: Mapping[str, EdgeRole] = {
    row.name: row.role
    for row in PREDICATES.values()
    if row.role != "text" and row.role != "fact"  # noqa: PLR1714  (mypy narrows by these)
}
"""Roles of the predicates that make edges, keyed by predicate."""
Network: TypeAlias = "nx.MultiDiGraph[str]"


@dataclass(frozen=True, kw_only=True, eq=False)
class GraphIndex:
    """A compiled graph, which is immutable. `graphs.graph_builder.GraphBuilder` compiles it."""

    network: Network
    """The edges, and the nodes that have an edge."""
    documents: Sequence[str]
    """Ids of the nodes that have a row in `texts`, in the order of the rows."""
    labels: Mapping[str, str]
    """Names of nodes, keyed by id; a node without a name is absent."""
    kinds: Mapping[str, str]
    """Kinds of all nodes, keyed by id. A node that has only a row in `texts` is absent."""
    texts: BM25Index
    """Index of the searched texts of the nodes in `documents`."""
    statements: Callable[[], Iterable[Iterable[Fact]]] = tuple
    """Returns the facts of all sources, grouped by source, with duplicates and forbidden facts."""
    forbidden: frozenset[Triple] = frozenset()
    """Edges that the host forbids: subject, predicate (empty for every predicate) and object."""
    _members: dict[tuple[str, str], tuple[Fact, ...]] = field(default_factory=dict, repr=False)

    @cached_property
    def facts(self) -> tuple[Fact, ...]:
        """All facts without duplicates, in the order of their first source."""
        return merge_facts(self.statements(), self.forbidden)

    @cached_property
    def rows(self) -> Mapping[str, int]:
        """Row of each document in `texts`, keyed by node id."""
        return {node: row for row, node in enumerate(self.documents)}

    @property
    def edges(self) -> Iterator[Fact]:
        """All edges, without duplicates."""
        return edges_of(self.network)

    def renamed(self, names: Mapping[str, str]) -> Network:
        """Return a copy of the network with new ids and plain values, and with all nodes.

        A node has ``label`` and ``kind``. An edge has ``role``, ``rule`` (empty if a document
        states it), ``weight``, ``declared``, ``path`` and ``line``. Nodes that *names* lacks keep
        their ids.
        """
        network: Network = nx.MultiDiGraph()
        for node, kind in self.kinds.items():
            network.add_node(names.get(node, node), label=self.label(node), kind=kind)
        for fact in self.edges:
            network.add_edge(
                names.get(fact.subject, fact.subject),
                names.get(fact.object, fact.object),
                key=fact.predicate,
                role=EDGE_PREDICATES[fact.predicate],
                rule=fact.origin,
                weight=fact.weight,
                declared=fact.declared,
                path=fact.path,
                line=fact.line,
            )
        return network

    def label(self, node: str) -> str:
        """Return the name of *node*, or its id if it has no name or is unknown."""
        return self.labels.get(node, node)

    def is_concept(self, node: str) -> bool:
        """Return whether *node* is a group, a topic or a kind of data, and thus not a neighbour."""
        return node.startswith(CONCEPT_BASE) and self.kinds.get(node) != "document"

    def edges_from(self, node: str, role: EdgeRole | None = None) -> list[Fact]:
        """Return the edges from *node*, sorted by target. With *role*, only edges of that role."""
        if node not in self.network:
            return []
        return _select_sorted(self.network.out_edges(node, data="fact"), role)

    def edges_to(self, node: str, role: EdgeRole | None = None) -> list[Fact]:
        """Return the edges to *node*, sorted by source. With *role*, only edges of that role."""
        if node not in self.network:
            return []
        return _select_sorted(self.network.in_edges(node, data="fact"), role)

    def members(self, concept: str, role: EdgeRole) -> tuple[Fact, ...]:
        """Return the edges of *role* to *concept*; empty if more than `MAX_GROUP_SIZE`."""
        cached = self._members.get((concept, role))
        if cached is None:
            edges = self.edges_to(concept, role)
            cached = tuple(edges) if len(edges) <= MAX_GROUP_SIZE else ()
            self._members[concept, role] = cached
        return cached


def network_of(edges: Iterable[Fact]) -> Network:
    """Build a network of *edges*, which must not contain duplicates."""
    network: Network = nx.MultiDiGraph()
    for fact in edges:
        network.add_edge(fact.subject, fact.object, key=fact.predicate, fact=fact)
    return network


def edges_of(network: Network) -> Iterator[Fact]:
    """Yield the edges of a network that `network_of` made."""
    edges: Iterable[tuple[str, str, Fact]] = network.edges(data="fact")
    return (fact for _, _, fact in edges)


def _select_sorted(edges: Iterable[tuple[str, str, Fact]], role: EdgeRole | None) -> list[Fact]:
    facts = (fact for _, _, fact in edges)
    selected = [fact for fact in facts if role in {None, EDGE_PREDICATES[fact.predicate]}]
    return sorted(selected, key=attrgetter("subject", "object", "predicate"))
