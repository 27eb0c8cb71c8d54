"""The compiled graph as searches read it: a node is an entity again.

How it is made is told in `gateway.search.index.toolgraphs`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from urllib.parse import quote, unquote

import numpy as np
from numpy.typing import NDArray

from gateway.search.eligible import Mask, everybody
from gateway.types import PathStep
from gateway.values import dataclass
from graphs.fact import Fact
from graphs.index import GraphIndex
from graphs.neighbour import Step

NODE_BASE = "urn:tool-gateway:tool:"
DERIVED = "derived/"
"""Where derived edges come from, as their source says it: this, and the name of the rule."""
SURE = frozenset({"suppliers", "calendar", "checks", "sign_in", "connection"})
"""The rules whose prerequisites may come from outside the window: seldom wrong where the truth is
known. What a description says is not among them: an upstream would promote what it likes."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ToolGraph:
    """The compiled graph, and the way between its nodes and the catalog."""

    index: GraphIndex
    nodes: tuple[str, ...]
    """The node of each entity, by position."""
    positions: Mapping[str, int]
    """The entity of each node that is one."""
    owners: NDArray[np.intp]
    """The entity of each of the graph's documents, by its place; -1 if it has none."""
    places: NDArray[np.intp]
    """The same the other way: the place of each entity's document; -1 if it has none."""
    conditioned: frozenset[str]
    """The nodes of which the host declares what must come before them, or what they consume."""
    guessed: frozenset[str]
    """The nodes of which a rule derives what must come before them."""
    owned: bool
    """Whether every document is some entity's."""
    forbidden: frozenset[tuple[str, str]] = frozenset()
    """After which node the host forbids to suggest which: what use shows is held to it too."""

    @classmethod
    def empty(cls) -> ToolGraph:
        """Give the graph of no catalog."""
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
        """Every statement; put together when it is asked for."""
        return self.index.facts

    def at(self, spots: Sequence[int]) -> list[int]:
        """Give where in the index the nodes of entities stand, of those that have one."""
        pairs = zip(self.places[list(spots)].tolist(), spots, strict=True)
        known = (
            at if at >= 0 else self.index.positions.get(self.nodes[spot]) for at, spot in pairs
        )
        return [at for at in known if at is not None]

    def steps(self, path: Iterable[Step]) -> tuple[PathStep, ...]:
        """Say the graph's evidence in the gateway's words: entities by their ids."""
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
        return unquote(node.removeprefix(NODE_BASE)) if node in self.positions else node

    def barred(self, mask: Mask) -> Callable[[str], bool] | None:
        """Say of each node whether it is an entity that does not pass *mask*; None if all do."""
        if everybody(mask):
            return None
        positions = self.positions
        return lambda node: node in positions and not mask[positions[node]]

    def allowed(self, mask: Mask) -> Mask | None:
        """Say of each document of the graph whether its entity passes *mask*; None if all do."""
        if self.owned and everybody(mask):
            return None
        # The last place, -1, stands for documents of no entity, which nobody may find.
        return np.append(mask, np.False_)[self.owners]


def placed(owners: NDArray[np.intp], entities: int) -> NDArray[np.intp]:
    """Give the place of the document of each of so many entities; see `ToolGraph`."""
    places = np.full(entities, -1, dtype=np.intp)
    (known,) = (owners >= 0).nonzero()
    places[owners[known]] = known
    return places


def _source(step: Step) -> str:
    if step.origin:
        return DERIVED + step.origin
    return f"{step.path}:{step.line}" if step.line else step.path


def node_of(entity_id: str) -> str:
    """Give the graph's node of an entity."""
    return NODE_BASE + quote(entity_id, safe="/")
