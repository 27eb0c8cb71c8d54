"""Next steps that calls have shown, as edges beside those of the graph. Pure.

They are laid over the graph at each search: nothing is compiled, and what is forgotten is gone at
once. What the host declared wins, and what it forbids is never suggested.
"""

from __future__ import annotations

from collections.abc import Iterator

from gateway.index.tool_graph import ToolGraph, node_of
from gateway.search.rank.parameters import POPULARITY_SHARE
from gateway.types import PathStep
from gateway.usage.transitions import LearnedSteps, Transition
from graphs.facts.vocabulary import PREDICATES

LEARNED = "learned"
"""How the source of a learned edge begins; "n of m" tasks follow."""
PREDICATE = "nextStep"


def learned_steps_after(
    graph: ToolGraph, learned: LearnedSteps, position: int
) -> Iterator[tuple[int, Transition]]:
    """Yield what followed the entity at *position* in past tasks, the surest first.

    Each edge comes with the position of its end. Tools that are gone, and what a document of the
    host forbids, are left out.
    """
    node = graph.nodes[position]
    for edge in learned.edges.get(graph.entity_id(node), ()):
        target = node_of(edge.after)
        end = graph.entity(target)
        if end is not None and (node, target) not in graph.forbidden:
            yield end, edge


def confidences(graph: ToolGraph, learned: LearnedSteps, position: int) -> dict[int, float]:
    """Return how likely each tool is to follow the entity at *position*, 0 to 1, by position.

    The learned edges say it. The share that they leave open is distributed by how many other tools
    each tool has followed.
    """
    if not learned:
        return {}
    node = graph.nodes[position]
    left = POPULARITY_SHARE * learned.open.get(graph.entity_id(node), 1.0)
    shares: dict[int, float] = {}
    for tool, share in learned.often.items():
        target = node_of(tool)
        end = graph.entity(target)
        if end is not None and (node, target) not in graph.forbidden:
            shares[end] = left * share
    for end, edge in learned_steps_after(graph, learned, position):
        shares[end] = shares.get(end, 0.0) + edge.confidence
    return shares


def path_of(edge: Transition) -> tuple[PathStep, ...]:
    """Return a learned edge as a path of one step; its counts are the source."""
    return (
        PathStep(
            subject=edge.before,
            predicate=PREDICATE,
            object=edge.after,
            source=f"{LEARNED}, {edge.count} of {edge.of}",
        ),
    )


def strength(edge: Transition) -> float:
    """Return the strength of a learned edge on the scale of the graph's edges, in (0, 1)."""
    return PREDICATES[PREDICATE].weight * edge.confidence
