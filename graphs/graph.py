"""Facts, compiled into what search and expansion read; immutable.

Documents stand first among the nodes, so that a mask over documents is a prefix.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType

import numpy as np

from graphs.adjacency import NUMBERS, Adjacency
from graphs.arrays import Moves
from graphs.facts.fact import Fact
from graphs.facts.vocabulary import CONCEPT_BASE
from graphs.grown import EDGE_PREDICATES, EDGE_ROLES, EdgeRole, Grown
from graphs.lexical.bm25_index import Postings
from graphs.lexical.lexicon import Lexicon
from graphs.neighbour import Remembered

__all__ = ["EDGE_PREDICATES", "EDGE_ROLES", "WEIGHTS", "EdgeRole", "GraphIndex", "Stated"]
WEIGHTS: Mapping[str, float] = MappingProxyType(
    {"name": 3.0, "alias": 2.5, "keywords": 1.5, "description": 1.0, "text": 0.5}
)
"""Weight of each field of a node's text."""


class Stated:
    """Facts that are put together when somebody asks for all of them."""

    def __init__(self, gather: Callable[[], Sequence[Fact]]) -> None:
        self._gather = gather

    @cached_property
    def facts(self) -> Sequence[Fact]:
        """All of them, in order."""
        return self._gather()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GraphIndex:
    """A graph, ready to be asked."""

    nodes: Sequence[str]
    """Ids of all nodes: documents, groups that somebody declared, all others; each part in the
    order of the ids."""
    positions: Mapping[str, int]
    """Where each id stands in `nodes`."""
    labels: Sequence[str]
    """What to call each node, in the order of `nodes`."""
    ranks: np.ndarray
    """Where each node would stand if all were sorted by label and id, int32: what ties fall by."""
    document_count: int
    """How many of the nodes, counted from the first, are documents."""
    postings: Postings
    """The texts of the documents and of declared groups, in the order of `nodes`."""
    edge_count: int
    """How many facts are edges with a role in search."""
    adjacency: Adjacency
    """The edges, as an expansion reads them."""
    evidence: Sequence[Fact]
    """The facts of the edges, by their numbers; others may be among them."""
    stated: Stated
    """What the index was compiled from."""
    moves: Moves | None = None
    """How the nodes moved since the index before, if there was one."""
    remembered: Remembered = field(default_factory=Remembered, init=False)
    """What expansions have worked out; it changes no answer."""

    @classmethod
    def compile(
        cls,
        facts: Iterable[Fact],
        *,
        weights: Mapping[str, float] = WEIGHTS,
        lexicon: Lexicon | None = None,
    ) -> GraphIndex:
        """Compile *facts*.

        Args:
            facts: Without facts the index is empty and finds nothing.
            weights: Weight of each text field: name, alias, keywords, description, text.
            lexicon: Remembers the texts that were read, for the next time.
        """
        from graphs.growing import Growing  # noqa: PLC0415  (who reads a compiled index needs none of it)

        given = tuple(facts)
        grown = Growing(weights, lexicon=lexicon).change((), given)
        return cls.of(grown, Stated(lambda: given))

    @classmethod
    def of(cls, grown: Grown, stated: Stated) -> GraphIndex:
        """Make an index of its parts."""
        return cls(
            nodes=grown.nodes,
            positions=grown.positions,
            labels=grown.labels,
            ranks=grown.ranks,
            document_count=grown.document_count,
            postings=grown.postings,
            edge_count=grown.edge_count,
            adjacency=grown.adjacency,
            evidence=grown.evidence,
            stated=stated,
            moves=grown.moves,
        )

    @property
    def facts(self) -> Sequence[Fact]:
        """What the index was compiled from."""
        return self.stated.facts

    @property
    def documents(self) -> frozenset[str]:
        """Ids of the nodes that are documents."""
        return frozenset(self.nodes[: self.document_count])

    @property
    def forward(self) -> Edges:
        """Edge facts by subject and role."""
        return Edges(self, "out")

    @property
    def backward(self) -> Edges:
        """Edge facts by object and role."""
        return Edges(self, "in")

    @property
    def node_count(self) -> int:
        """How many nodes there are, concepts included."""
        return len(self.nodes)

    def position(self, node: str) -> int | None:
        """Give the position of *node* in `nodes`; None if the graph does not know it."""
        return self.positions.get(node)

    def label(self, node: str) -> str:
        """Give the name of *node*; the id itself where it has none or is unknown."""
        at = self.positions.get(node)
        return node if at is None else self.labels[at]

    def is_concept(self, node: str) -> bool:
        """Tell whether *node* is a group, a topic or a kind of data: nothing one can use."""
        at = self.positions.get(node, self.document_count)
        return at >= self.document_count and node.startswith(CONCEPT_BASE)

    def members(self, group: int) -> np.ndarray:
        """Give the positions of the documents in the group at *group*, ascending, each once."""
        ends = np.unique(self.adjacency.ends(group, "member", "in"))
        return ends[: ends.searchsorted(self.document_count)]

    def outgoing(self, node: str, kind: EdgeRole) -> tuple[Fact, ...]:
        """Give the edges of a role that start at *node*; empty if there are none."""
        return self.forward.get((node, kind), ())

    def incoming(self, node: str, kind: EdgeRole) -> tuple[Fact, ...]:
        """Give the edges of a role that end at *node*; empty if there are none."""
        return self.backward.get((node, kind), ())


class Edges(Mapping[tuple[str, str], tuple[Fact, ...]]):
    """The edges of a graph by one of their ends and their role, made when they are asked for."""

    def __init__(self, index: GraphIndex, way: str) -> None:
        self._index = index
        self._way = way

    def __getitem__(self, key: tuple[str, str]) -> tuple[Fact, ...]:
        """Give the edges of a node in a role, in the order of their other ends."""
        node, role = key
        index = self._index
        rows = index.adjacency.rows(index.positions[node], role, self._way)
        if not rows:
            raise KeyError(key)
        return tuple(index.evidence[row] for row in rows)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        """Give the keys, by role and node."""
        kinds = {number: role for (role, way), number in NUMBERS.items() if way == self._way}
        for number, node in self._index.adjacency.starts():
            if number in kinds:
                yield self._index.nodes[node], kinds[number]

    def __len__(self) -> int:
        """Count the keys."""
        return sum(1 for _ in self)
