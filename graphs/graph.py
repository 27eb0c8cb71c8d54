"""The graph: a `networkx.MultiDiGraph` of typed edges, with an index of its texts.

* Nodes are known by their ids. A node's data has a ``label`` and a ``kind``: ``document``,
  ``group`` (a concept or thing that the host declares members of), ``concept`` or ``other``.
* Edges have their predicate as key. An edge's data has ``role``, ``weight``, ``declared``,
  ``rule`` (empty if a document states it), ``path`` and ``line``.
* A group, topic or kind of data is a node; its members are not linked to each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import itemgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from graphs.facts.fact import Fact
from graphs.facts.provenance import Triple, merge_facts
from graphs.facts.vocabulary import CONCEPT_BASE, PREDICATES
from graphs.lexical.bm25_index import BM25Index

if TYPE_CHECKING:
    # networkx takes longer to import than all other parts of a start: the builder imports it.
    import networkx as nx

EdgeRole = Literal["related", "next_step", "prerequisite", "member", "consumes", "produces"]
EDGE_PREDICATES: Mapping[str, EdgeRole] = MappingProxyType(
    {
        row.name: row.role
        for row in PREDICATES.values()
        if row.role != "text" and row.role != "fact"  # noqa: PLR1714  (mypy narrows by these)
    }
)
"""The role of each predicate that makes an edge."""
MAX_GROUP_SIZE = 64
"""More edges of one role than this at one concept, and it relates nothing."""
EdgeData: TypeAlias = Mapping[str, Any]
Network: TypeAlias = "nx.MultiDiGraph[str]"
NetworkTables: TypeAlias = tuple[dict[str, Any], dict[str, Any], dict[str, Any]]
NetworkEdge: TypeAlias = tuple[str, str, str, EdgeData]
"""Subject, object, predicate and data."""


@dataclass(frozen=True, kw_only=True, eq=False)
class GraphIndex:
    """A compiled graph; immutable. `graphs.graph_builder.GraphBuilder` makes it."""

    network: Network
    """Documents, concepts and what else an edge joins. Shared: copy it before changing it."""
    documents: Sequence[str]
    """Ids of the documents by label and id; their places are the first rows of `texts`."""
    groups: Sequence[str]
    """Ids of the declared groups by label and id; the further rows of `texts`."""
    texts: BM25Index
    """The texts of documents and declared groups."""
    statements: Sequence[Sequence[Fact]] = ()
    """The facts that the graph was compiled from, by their source."""
    forbidden: frozenset[Triple] = frozenset()
    """What the host forbids to derive: subject, predicate, empty for any, and object."""
    _members: dict[tuple[str, str], tuple[NetworkEdge, ...]] = field(
        default_factory=dict, repr=False
    )

    @cached_property
    def facts(self) -> tuple[Fact, ...]:
        """Every fact once, in the order of its first source."""
        return merge_facts(self.statements, self.forbidden)

    @cached_property
    def rows(self) -> Mapping[str, int]:
        """The row of each document and group in `texts`."""
        return {node: row for row, node in enumerate((*self.documents, *self.groups))}

    @cached_property
    def _tables(self) -> NetworkTables:
        return tables_of(self.network)

    @cached_property
    def edge_count(self) -> int:
        """How many edges there are; networkx's own count walks through its views."""
        _, successors, _ = self._tables
        return sum(len(keys) for row in successors.values() for keys in row.values())

    def label(self, node: str) -> str:
        """Return the name of *node*; the id itself where it has none or is unknown."""
        data = self._tables[0].get(node)
        return node if data is None else str(data["label"])

    def is_concept(self, node: str) -> bool:
        """Return whether *node* is a group, a topic or a kind of data: nothing one can use."""
        if not node.startswith(CONCEPT_BASE):
            return False
        data = self._tables[0].get(node)
        return data is None or data["kind"] != "document"

    def renamed(self, names: Mapping[str, str]) -> Network:
        """Return a copy of the network, its nodes renamed by *names*; the others keep their ids."""
        import networkx as nx  # noqa: PLC0415  (heavy; a start need not pay for it)

        network: Network = nx.relabel_nodes(self.network, dict(names))
        return network

    def edges_from(self, node: str, role: EdgeRole) -> list[NetworkEdge]:
        """Return the edges of a role that start at *node*, in the order of their ends."""
        return self._edges(node, role, incoming=False)

    def edges_to(self, node: str, role: EdgeRole) -> list[NetworkEdge]:
        """Return the edges of a role that end at *node*, in the order of their starts."""
        return self._edges(node, role, incoming=True)

    def members(self, concept: str, role: EdgeRole) -> tuple[NetworkEdge, ...]:
        """Return the edges of a role that end at *concept*; none if there are too many.

        They are remembered: a concept stands next to many nodes.
        """
        cached = self._members.get((concept, role))
        if cached is None:
            edges = self.edges_to(concept, role)
            cached = tuple(edges) if len(edges) <= MAX_GROUP_SIZE else ()
            self._members[concept, role] = cached
        return cached

    def _edges(self, node: str, role: EdgeRole, *, incoming: bool) -> list[NetworkEdge]:
        _, successors, predecessors = self._tables
        table = (predecessors if incoming else successors).get(node, {})
        found: list[NetworkEdge] = [
            (other, node, predicate, data) if incoming else (node, other, predicate, data)
            for other, keys in table.items()
            for predicate, data in keys.items()
            if data["role"] == role
        ]
        if len(found) > 1:
            found.sort(key=_ends)
        return found


_ends = itemgetter(0, 1, 2)


def new_network() -> Network:
    """Return an empty network."""
    import networkx as nx  # noqa: PLC0415  (a start that builds no graph need not pay for it)

    return nx.MultiDiGraph()


def tables_of(network: Network) -> NetworkTables:
    """Return the tables of nodes, successors and predecessors behind *network*.

    networkx names them for subclasses. Its views cost ten times as much, and its copies as much as
    a new build.
    """
    private: Any = network
    return private._node, private._succ, private._pred  # noqa: SLF001


def fact_of(edge: NetworkEdge) -> Fact:
    """Return the fact that an edge stands for."""
    subject, target, predicate, data = edge
    return Fact(
        subject=subject,
        predicate=predicate,
        object=target,
        literal=False,
        weight=data["weight"],
        path=data["path"],
        line=data["line"],
        origin=data["rule"],
        declared=data["declared"],
    )


def edges_of(network: Network) -> Iterable[NetworkEdge]:
    """Return all edges, by subject, predicate and object."""
    return sorted(network.edges(keys=True, data=True), key=lambda edge: (edge[0], edge[2], edge[1]))
