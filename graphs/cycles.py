"""Prerequisites that wait for each other."""

from __future__ import annotations

from networkx import DiGraph, strongly_connected_components

from graphs.graph import EDGE_PREDICATES, GraphIndex


def prerequisite_cycles(index: GraphIndex) -> tuple[tuple[str, ...], ...]:
    """Return the groups of nodes each of which needs all the others, or itself, first.

    Returns:
        The ids of each group, sorted; empty if every prerequisite can come before what needs it.
    """
    needs = DiGraph(
        (edge.subject, edge.object)
        for edge in index.edges
        if EDGE_PREDICATES[edge.predicate] == "prerequisite"
    )
    groups = map(sorted, strongly_connected_components(needs))
    cycles = [group for group in groups if len(group) > 1 or needs.has_edge(group[0], group[0])]
    return tuple(sorted(map(tuple, cycles)))
