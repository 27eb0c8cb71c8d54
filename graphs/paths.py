"""Paths and orders along given edges, by networkx.

Prerequisites that wait for each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice, pairwise

import networkx as nx
from networkx import DiGraph, strongly_connected_components

from graphs.facts.fact import Fact
from graphs.graph import EDGE_PREDICATES, GraphIndex


def shortest_paths(
    edges: Iterable[Fact], start: str, end: str, *, cost: Callable[[Fact], float], limit: int
) -> list[list[Fact]]:
    """Return the cheapest paths between two nodes, along edges of any direction.

    Args:
        edges: Of two nodes with several edges the cheapest counts, else the first.
        start: A node.
        end: Another one; there is no path from a node to itself.
        cost: What an edge costs, > 0.
        limit: Paths at most.
    """
    network: nx.Graph[str] = nx.Graph()
    network.add_nodes_from((start, end))
    for edge in sorted(edges, key=cost, reverse=True):
        network.add_edge(edge.subject, edge.object, cost=cost(edge), edge=edge)
    paths = nx.shortest_simple_paths(network, start, end, weight="cost")
    try:
        found = [pairwise(path) for path in islice(paths, limit)] if start != end else []
    except nx.NetworkXNoPath:
        return []
    return [[network.edges[pair]["edge"] for pair in path] for path in found]


def topological_groups(needs: Iterable[tuple[str, str]]) -> list[list[str]]:
    """Return nodes in an order in which each comes behind all that it needs.

    Args:
        needs: Pairs of a node and one that it needs.

    Returns:
        A group for each node; nodes that need each other are one group, sorted.
    """
    groups = nx.condensation(nx.DiGraph(sorted((needed, node) for node, needed in needs)))
    return [sorted(groups.nodes[group]["members"]) for group in nx.topological_sort(groups)]


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
