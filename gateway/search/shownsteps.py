"""Next steps that use has shown, as edges beside those of the graph. Pure.

They are laid over the graph when somebody asks: nothing is compiled, and what is forgotten is gone
at once. What the host wrote wins, and what it forbids is never suggested.
"""

from __future__ import annotations

from collections.abc import Iterator

from gateway.search.index.toolgraph import ToolGraph, node_of
from gateway.search.usage.sequences import Followed, Learned
from gateway.types import PathStep
from graphs.facts.vocabulary import PREDICATES

LEARNED = "learned"
"""How the source of a shown edge begins; "n of m" tasks follow."""
PREDICATE = "nextStep"
OPEN = 0.5
"""What it counts that a tool follows many others, beside an edge that says it follows this one."""


def shown_after(
    graph: ToolGraph, learned: Learned, position: int
) -> Iterator[tuple[int, Followed]]:
    """Give what use has shown to follow the entity at *position*, the surest first.

    Each comes with its own position.

    Tools that are gone, and what a document of the host forbids, are left out.
    """
    node = graph.nodes[position]
    for each in learned.edges.get(graph.said(node), ()):
        target = node_of(each.after)
        spot = graph.entity(target)
        if spot is not None and (node, target) not in graph.forbidden:
            yield spot, each


def confidences(graph: ToolGraph, learned: Learned, position: int) -> dict[int, float]:
    """Say how likely each tool is to follow the entity at *position*, 0 to 1, by position.

    The edges that use has shown tell it. The share that they leave open is given out by how many
    other tools each tool has followed.
    """
    if not learned:
        return {}
    node = graph.nodes[position]
    left = OPEN * learned.open.get(graph.said(node), 1.0)
    found = {}
    for tool, often in learned.often.items():
        target = node_of(tool)
        spot = graph.entity(target)
        if spot is not None and (node, target) not in graph.forbidden:
            found[spot] = left * often
    for spot, each in shown_after(graph, learned, position):
        found[spot] = found.get(spot, 0.0) + each.confidence
    return found


def path_of(edge: Followed) -> tuple[PathStep, ...]:
    """Write a shown edge as a path of one step; its counts are the source."""
    return (
        PathStep(
            subject=edge.before,
            predicate=PREDICATE,
            object=edge.after,
            source=f"{LEARNED}, {edge.count} of {edge.of}",
        ),
    )


def strength(edge: Followed) -> float:
    """Give the strength of a shown edge on the scale of the graph's edges, in (0, 1)."""
    return PREDICATES[PREDICATE].weight * edge.confidence
