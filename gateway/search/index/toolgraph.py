"""The compiled graph as searches read it, with the way from nodes to entities and back.

`gateway.search.index.toolgraphs` makes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote, unquote

import numpy as np

from gateway.index.eligibility import Mask, passes_all
from gateway.runtime.vectors import NDArray
from gateway.types import PathStep
from graphs.facts.fact import Fact
from graphs.graph import GraphIndex
from graphs.neighbour import Step

NODE_BASE = "urn:tool-gateway:tool:"
DERIVED = "derived/"
"""How the source of a derived edge begins; the name of the rule follows."""
SURE = frozenset({"suppliers", "calendar", "checks", "sign_in", "connection"})
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
    owners: NDArray[np.intp]
    """The position of the entity of each of the graph's documents; -1 if it has none."""
    places: NDArray[np.intp]
    """The other way: the place of each entity's document, by position; -1 if it has none."""
    conditioned: frozenset[str]
    """The nodes for which the host declares what must come before them, or what they consume."""
    guessed: frozenset[str]
    """The nodes for which a rule derives what must come before them."""
    owned: bool
    """Whether every document has an entity."""
    forbidden: frozenset[tuple[str, str]] = frozenset()
    """Pairs of nodes of which the host forbids to suggest the second after the first. It holds for
    what use has shown as well."""

    @classmethod
    def empty(cls) -> ToolGraph:
        """Give the graph of an empty catalog."""
        return cls(
            index=GraphIndex.compile(()),
            nodes=(),
            positions={},
            owners=np.zeros(0, dtype=np.intp),
            places=np.zeros(0, dtype=np.intp),
            conditioned=frozenset(),
            guessed=frozenset(),
            owned=True,
        )

    @property
    def facts(self) -> Sequence[Fact]:
        """Every statement, made when it is asked for."""
        return self.index.facts

    def at(self, spots: Sequence[int]) -> list[int]:
        """Give where in the index the nodes of entities stand, of those that have one."""
        pairs = zip(self.places[list(spots)].tolist(), spots, strict=True)
        known = (at if at >= 0 else self.index.position(self.nodes[spot]) for at, spot in pairs)
        return [at for at in known if at is not None]

    def steps(self, path: Iterable[Step]) -> tuple[PathStep, ...]:
        """Give the steps of *path* with ids of entities in place of their nodes."""
        return tuple(
            PathStep(
                subject=self.said(step.subject),
                predicate=step.predicate,
                object=self.said(step.object),
                source=_source(step),
                declared=step.declared,
            )
            for step in path
        )

    def said(self, node: str) -> str:
        """Give the id of the entity that *node* is; another node stays what it is."""
        return node if self.entity(node) is None else unquote(node.removeprefix(NODE_BASE))

    def entity(self, node: str) -> int | None:
        """Give the position of the entity that *node* is; None if it is none."""
        place = self.index.position(node)
        return self.positions.get(node) if place is None else self._owner(place)

    def _owner(self, place: int) -> int | None:
        """Give the position of the entity of the node at *place*; None if it is none."""
        if place >= len(self.owners):
            node = self.index.nodes[place]
            return self.positions.get(node) if node.startswith(NODE_BASE) else None
        owner = int(self.owners[place])
        return owner if owner >= 0 else None

    def barred(self, mask: Mask) -> Callable[[int], bool] | None:
        """Say of a node, by its place, whether it is an entity that does not pass *mask*.

        None if all do.
        """
        if passes_all(mask):
            return None

        def hidden(place: int) -> bool:
            position = self._owner(place)
            return position is not None and not mask[position]

        return hidden

    def allowed(self, mask: Mask) -> Mask | None:
        """Say of each document of the graph whether its entity passes *mask*; None if all do."""
        if self.owned and passes_all(mask):
            return None
        # Place -1, the last, stands for documents without an entity: those may not be found.
        return np.append(mask, np.False_)[self.owners]


def placed(owners: NDArray[np.intp], entities: int) -> NDArray[np.intp]:
    """Give `ToolGraph.places` for so many *entities*."""
    places = np.full(entities, -1, dtype=np.intp)
    (known,) = (owners >= 0).nonzero()
    places[owners[known]] = known
    return places


def _source(step: Step) -> str:
    if step.origin:
        return DERIVED + step.origin
    return f"{step.path}:{step.line}" if step.line else step.path


def node_of(entity_id: str) -> str:
    """Give the node that an entity has in the graph."""
    return NODE_BASE + quote(entity_id, safe="/")
