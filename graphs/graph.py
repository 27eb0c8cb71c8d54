"""The graph: typed edges as arrays, with an index of its texts.

* Nodes are known by their ids. A node's kind is ``document``, ``group`` (a concept or thing that
  the host declares members of), ``concept`` or ``other``.
* An edge's data has ``role``, ``weight``, ``declared``, ``rule`` (empty if a document states it),
  ``path`` and ``line``.
* A group, topic or kind of data is a node; its members are not linked to each other.
* A host gets a `networkx.MultiDiGraph` of all this, made when it asks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from graphs.facts.fact import Fact
from graphs.facts.provenance import Triple, merge_facts
from graphs.facts.vocabulary import CONCEPT_BASE, PREDICATES
from graphs.lexical.bm25_index import BM25Index
from graphs.parameters import MAX_GROUP_SIZE

if TYPE_CHECKING:
    # networkx takes longer to import than all other parts of a start.
    import networkx as nx

EdgeRole = Literal["related", "next_step", "prerequisite", "member", "consumes", "produces"]
EDGE_PREDICATES: Mapping[str, EdgeRole] = {
    row.name: row.role
    for row in PREDICATES.values()
    if row.role != "text" and row.role != "fact"  # noqa: PLR1714  (mypy narrows by these)
}
"""The role of each predicate that makes an edge."""
EdgeData: TypeAlias = Mapping[str, Any]
Network: TypeAlias = "nx.MultiDiGraph[str]"
NetworkEdge: TypeAlias = tuple[str, str, str, EdgeData]
"""Subject, object, predicate and data."""


@dataclass(frozen=True, kw_only=True, eq=False)
class GraphIndex:
    """A compiled graph; immutable. `graphs.graph_builder.GraphBuilder` makes it."""

    nodes: Sequence[str]
    """Ids; first those that have a row in `texts`, in its order."""
    labels: Sequence[str]
    """Their names; the id of a node that has none."""
    kinds: Sequence[str]
    """Their kinds; empty for a row of `texts` that is no node of the graph."""
    edges: np.ndarray
    """Subject, object and attributes of each edge, by subject, int32, shape (edges, 3)."""
    attributes: Sequence[tuple[str, EdgeData]]
    """Predicate and data."""
    texts: BM25Index
    """The texts that nodes are found by."""
    statements: Callable[[], Iterable[Iterable[Fact]]] = tuple
    """Returns the facts that the graph was compiled from, by their source."""
    forbidden: frozenset[Triple] = frozenset()
    """What the host forbids to derive: subject, predicate, empty for any, and object."""
    _members: dict[tuple[str, str], tuple[NetworkEdge, ...]] = field(
        default_factory=dict, repr=False
    )

    @cached_property
    def facts(self) -> tuple[Fact, ...]:
        """Every fact once, in the order of its first source."""
        return merge_facts(self.statements(), self.forbidden)

    @cached_property
    def documents(self) -> Sequence[str]:
        """The nodes that have a row in `texts`, in its order."""
        return self.nodes[: self.texts.size]

    @cached_property
    def rows(self) -> Mapping[str, int]:
        """The position of each node in `nodes`; for a document its row in `texts`."""
        return dict(zip(self.nodes, range(len(self.nodes)), strict=True))

    @cached_property
    def _outgoing(self) -> np.ndarray:
        """Where the edges of each node begin in `edges`."""
        return _starts(self.edges[:, 0], len(self.nodes))

    @cached_property
    def _incoming(self) -> tuple[np.ndarray, np.ndarray]:
        """The edges by object, and where those of each node begin."""
        order = np.argsort(self.edges[:, 1], kind="stable")
        return self.edges[order], _starts(self.edges[order, 1], len(self.nodes))

    @property
    def node_count(self) -> int:
        """How many nodes there are."""
        return sum(map(bool, self.kinds))

    @property
    def network(self) -> Network:
        """A new `networkx.MultiDiGraph` of the nodes and edges, with the predicates as keys."""
        return self.renamed({})

    def renamed(self, names: Mapping[str, str]) -> Network:
        """Return the same, with nodes renamed by *names*; the others keep their ids."""
        import networkx as nx  # noqa: PLC0415  (heavy; a start need not pay for it)

        network: Network = nx.MultiDiGraph()
        nodes = [names.get(node, node) for node in self.nodes]
        for node, label, kind in zip(nodes, self.labels, self.kinds, strict=True):
            if kind:
                network.add_node(node, label=label, kind=kind)
        for start, end, number in self.edges.tolist():
            predicate, data = self.attributes[number]
            network.add_edge(nodes[start], nodes[end], key=predicate, **data)
        return network

    def label(self, node: str) -> str:
        """Return the name of *node*; the id itself where it has none or is unknown."""
        row = self.rows.get(node)
        return node if row is None else self.labels[row]

    def is_concept(self, node: str) -> bool:
        """Return whether *node* is a group, a topic or a kind of data: nothing one can use."""
        if not node.startswith(CONCEPT_BASE):
            return False
        row = self.rows.get(node)
        return row is None or self.kinds[row] != "document"

    def edges_from(self, node: str, role: EdgeRole | None = None) -> list[NetworkEdge]:
        """Return the edges that start at *node*, by their ends; of one *role*, or all."""
        return self._edges(node, role, self.edges, self._outgoing)

    def edges_to(self, node: str, role: EdgeRole | None = None) -> list[NetworkEdge]:
        """Return the edges that end at *node*, by their starts; of one *role*, or all."""
        return self._edges(node, role, *self._incoming)

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

    def _edges(
        self, node: str, role: EdgeRole | None, edges: np.ndarray, starts: np.ndarray
    ) -> list[NetworkEdge]:
        row = self.rows.get(node)
        if row is None:
            return []
        found: list[NetworkEdge] = []
        for start, end, number in edges[starts[row] : starts[row + 1]].tolist():
            predicate, data = self.attributes[number]
            if role is None or data["role"] == role:
                found.append((self.nodes[start], self.nodes[end], predicate, data))
        found.sort(key=_ends)
        return found


_ends = itemgetter(0, 1, 2)


def _starts(ascending: np.ndarray, count: int) -> np.ndarray:
    return ascending.searchsorted(np.arange(count + 1))
