"""The compiled graph as searches read it, with the way from nodes to entities and back.

`gateway.index.tool_graph_builder` makes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias
from urllib.parse import quote, unquote

import numpy as np

from gateway.index.eligibility import Mask, passes_all
from gateway.runtime.vectors import NDArray
from gateway.types import PathStep
from graphs.expansion import Step
from graphs.facts.fact import Fact
from graphs.graph import EdgeRole, GraphIndex, Network

ToolNetwork: TypeAlias = Network
"""A `networkx.MultiDiGraph` whose entities are called by their ids."""
NODE_BASE = "urn:tool-gateway:tool:"
DERIVED = "derived/"
"""How the source of a derived edge begins; the name of the rule follows."""
RELIABLE_RULES = frozenset({"suppliers", "calendar", "checks", "sign_in", "connection"})
"""The rules whose prerequisites may come from outside the window: they are seldom wrong where the
truth is known. No rule that reads descriptions is among them, or servers could promote what they
like."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ToolGraph:
    """The compiled graph, and the way between its nodes and the catalog."""

    index: GraphIndex
    nodes: Sequence[str]
    """The node of each entity, by position."""
    positions: Mapping[str, int]
    """The position of each node that is an entity."""
    row_positions: NDArray[np.intp]
    """The position of the entity of each document of the index; -1 if it has none."""
    forbidden: frozenset[tuple[str, str]] = frozenset()
    """Pairs of nodes of which the host forbids to suggest the second after the first. It holds for
    learned next steps as well."""

    @classmethod
    def of(
        cls,
        index: GraphIndex,
        nodes: Sequence[str],
        forbidden: frozenset[tuple[str, str]] = frozenset(),
    ) -> ToolGraph:
        """Join *index* with the catalog.

        Args:
            index: The compiled graph.
            nodes: The node of each entity, by position.
            forbidden: Pairs that the host forbids.
        """
        positions = {node: position for position, node in enumerate(nodes)}
        documents = index.documents
        rows = (positions.get(node, -1) for node in documents)
        return cls(
            index=index,
            nodes=nodes,
            positions=positions,
            row_positions=np.fromiter(rows, dtype=np.intp, count=len(documents)),
            forbidden=forbidden,
        )

    @property
    def facts(self) -> Sequence[Fact]:
        """Every statement."""
        return self.index.facts

    def steps(self, path: Iterable[Step]) -> tuple[PathStep, ...]:
        """Return the steps of *path* with ids of entities in place of their nodes."""
        return tuple(
            PathStep(
                subject=self.entity_id(step.subject),
                predicate=step.predicate,
                object=self.entity_id(step.object),
                source=_source(step),
                declared=step.declared,
            )
            for step in path
        )

    def entity_id(self, node: str) -> str:
        """Return the id of the entity that *node* is; another node stays what it is."""
        return unquote(node.removeprefix(NODE_BASE)) if node in self.positions else node

    def entity(self, node: str) -> int | None:
        """Return the position of the entity that *node* is; None if it is none."""
        return self.positions.get(node)

    def has_prerequisites(self, node: str, *, declared: bool) -> bool:
        """Return whether *node* has conditions that the host declares, or that rules derive."""
        roles: tuple[EdgeRole, ...] = (
            ("prerequisite", "consumes") if declared else ("prerequisite",)
        )
        edges = (edge for role in roles for edge in self.index.edges_from(node, role))
        return any(edge[3]["declared"] == declared for edge in edges)

    def excluded(self, mask: Mask) -> Callable[[str], bool] | None:
        """Return what says of a node whether it is an entity that does not pass *mask*.

        None if all entities pass.
        """
        if passes_all(mask):
            return None

        def is_excluded(node: str) -> bool:
            position = self.positions.get(node)
            return position is not None and not mask[position]

        return is_excluded

    def allowed(self, mask: Mask) -> Mask:
        """Return whether the entity of each document of the index passes *mask*."""
        # Position -1, the last, stands for documents without an entity: they may not be found.
        return np.append(mask, np.False_)[self.row_positions]

    def to_networkx(self) -> ToolNetwork:
        """Return a copy whose entities are called by their ids; see `Gateway.graph`."""
        return self.index.renamed({node: self.entity_id(node) for node in self.nodes})


def _source(step: Step) -> str:
    if step.origin:
        return DERIVED + step.origin
    return f"{step.path}:{step.line}" if step.line else step.path


def node_of(entity_id: str) -> str:
    """Return the node that an entity has in the graph."""
    return NODE_BASE + quote(entity_id, safe="/")
