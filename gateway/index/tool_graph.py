"""The compiled graph as searches read it, with the way from nodes to entities and back.

`gateway.index.compiler` makes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias
from urllib.parse import quote, unquote

from gateway.index.eligibility import Mask, passes_all
from gateway.types import PathStep
from graphs.expansion import Step
from graphs.facts.fact import Fact
from graphs.graph import EdgeRole, GraphIndex, Network

ToolNetwork: TypeAlias = Network
"""A `networkx.MultiDiGraph` whose entities are called by their ids."""
NODE_BASE = "urn:tool-gateway:tool:"
STEP_PREDICATE = "nextStep"
DERIVED = "derived/"
"""How the source of a derived edge begins; the name of the rule follows."""
RELIABLE_RULES = frozenset({"suppliers", "calendar", "checks", "sign_in", "connection"})
"""The rules whose prerequisites may come from outside the window: they are seldom wrong where the
truth is known. No rule that reads descriptions is among them, or servers could promote what they
like."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ToolGraph:
    """The compiled graph, whose first nodes are the entities of the catalog, by position."""

    index: GraphIndex
    forbidden: frozenset[tuple[str, str]] = frozenset()
    """Pairs of nodes of which the host forbids to suggest the second after the first. It holds for
    learned next steps as well."""

    @classmethod
    def of(cls, index: GraphIndex) -> ToolGraph:
        """Read from *index* what the host forbids."""
        steps = {"", STEP_PREDICATE}
        pairs = ((start, end) for start, predicate, end in index.forbidden if predicate in steps)
        return cls(index=index, forbidden=frozenset(pairs))

    @property
    def nodes(self) -> Sequence[str]:
        """The node of each entity, by position."""
        return self.index.documents

    @property
    def edge_count(self) -> int:
        """How many edges there are."""
        return len(self.index.edges)

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
        return node if self.entity(node) is None else unquote(node.removeprefix(NODE_BASE))

    def entity(self, node: str) -> int | None:
        """Return the position of the entity that *node* is; None if it is none."""
        row = self.index.rows.get(node)
        return row if row is not None and row < self.index.texts.size else None

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
            position = self.entity(node)
            return position is not None and not mask[position]

        return is_excluded

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
