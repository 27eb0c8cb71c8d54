"""The graph: a `networkx.MultiDiGraph` of typed edges, with an index of the texts of its documents.

* Nodes are known by their ids. A node's kind is ``document``, ``group`` (a concept or thing that
  the host declares members of), ``concept`` or ``other``.
* Only nodes with an edge are in the network. Documents without an edge are nodes of the graph too.
* The key of an edge is its predicate. Its data is ``fact``: the statement that the edge was read
  from.
* A group, topic or kind of data is a node; its members are not linked to each other.
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
"""The role of each predicate that makes an edge."""
Network: TypeAlias = "nx.MultiDiGraph[str]"


@dataclass(frozen=True, kw_only=True, eq=False)
class GraphIndex:
    """A compiled graph; immutable. `graphs.graph_builder.GraphBuilder` makes it."""

    network: Network
    """The nodes that have an edge, and the edges."""
    documents: Sequence[str]
    """The nodes that have a row in `texts`, in its order."""
    labels: Mapping[str, str]
    """Names of nodes, keyed by id; a node without a name is absent."""
    kinds: Mapping[str, str]
    """Kinds of all nodes, keyed by id. A row of `texts` that is not a node is absent."""
    texts: BM25Index
    """The texts that nodes are found by."""
    statements: Callable[[], Iterable[Iterable[Fact]]] = tuple
    """Returns the facts that the graph was compiled from, by their source."""
    forbidden: frozenset[Triple] = frozenset()
    """What the host forbids to derive: subject, predicate, empty for any, and object."""
    _members: dict[tuple[str, str], tuple[Fact, ...]] = field(default_factory=dict, repr=False)

    @cached_property
    def facts(self) -> tuple[Fact, ...]:
        """Every fact once, in the order of its first source."""
        return merge_facts(self.statements(), self.forbidden)

    @cached_property
    def rows(self) -> Mapping[str, int]:
        """The row of each document in `texts`."""
        return {node: row for row, node in enumerate(self.documents)}

    @property
    def edges(self) -> Iterator[Fact]:
        """Every edge once."""
        return edges_of(self.network)

    def renamed(self, names: Mapping[str, str]) -> Network:
        """Return a new network of all nodes, in which data are plain values.

        The data of a node are ``label`` and ``kind``; of an edge ``role``, ``rule`` (empty if
        a document states it), ``weight``, ``declared``, ``path`` and ``line``.

        Args:
            names: New ids, keyed by id; the other nodes keep theirs.
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
        """Return the name of *node*; the id itself where it has none or is unknown."""
        return self.labels.get(node, node)

    def is_concept(self, node: str) -> bool:
        """Return whether *node* is a group, a topic or a kind of data: nothing one can use."""
        return node.startswith(CONCEPT_BASE) and self.kinds.get(node) != "document"

    def edges_from(self, node: str, role: EdgeRole | None = None) -> list[Fact]:
        """Return the edges that start at *node*, by their ends; of one *role*, or all."""
        if node not in self.network:
            return []
        return _ordered(self.network.out_edges(node, data="fact"), role)

    def edges_to(self, node: str, role: EdgeRole | None = None) -> list[Fact]:
        """Return the edges that end at *node*, by their starts; of one *role*, or all."""
        if node not in self.network:
            return []
        return _ordered(self.network.in_edges(node, data="fact"), role)

    def members(self, concept: str, role: EdgeRole) -> tuple[Fact, ...]:
        """Return the edges of a role that end at *concept*; none if there are too many.

        They are remembered: a concept stands next to many nodes.
        """
        cached = self._members.get((concept, role))
        if cached is None:
            edges = self.edges_to(concept, role)
            cached = tuple(edges) if len(edges) <= MAX_GROUP_SIZE else ()
            self._members[concept, role] = cached
        return cached


def network_of(edges: Iterable[Fact]) -> Network:
    """Return the network of *edges*, each of which is given once."""
    network: Network = nx.MultiDiGraph()
    for fact in edges:
        network.add_edge(fact.subject, fact.object, key=fact.predicate, fact=fact)
    return network


def edges_of(network: Network) -> Iterator[Fact]:
    """Yield the edges of a network that `network_of` made."""
    edges: Iterable[tuple[str, str, Fact]] = network.edges(data="fact")
    return (fact for _, _, fact in edges)


def _ordered(edges: Iterable[tuple[str, str, Fact]], role: EdgeRole | None) -> list[Fact]:
    facts = (fact for _, _, fact in edges)
    found = [fact for fact in facts if role in {None, EDGE_PREDICATES[fact.predicate]}]
    return sorted(found, key=attrgetter("subject", "object", "predicate"))
