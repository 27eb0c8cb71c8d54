"""Shortest paths, topological order and cycles of edges, computed by networkx."""

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
    """Return the cheapest paths between two nodes, at most *limit*, along edges of any direction.

    Between two nodes, only the cheapest edge is used, or else the first. Costs are > 0. Empty if
    *start* equals *end* or no path exists.
    """
    network: nx.Graph[str] = nx.Graph()
    network.add_nodes_from((start, end))
    for edge in sorted(edges, key=cost, reverse=True):
        network.add_edge(edge.subject, edge.object, cost=cost(edge), edge=edge)
    paths = nx.shortest_simple_paths(network, start, end, weight="cost")
    try:
        node_paths = [pairwise(path) for path in islice(paths, limit)] if start != end else []
    except nx.NetworkXNoPath:
        return []
    return [[network.edges[pair]["edge"] for pair in path] for path in node_paths]


def topological_groups(needs: Iterable[tuple[str, str]]) -> list[list[str]]:
    """Return nodes in an order in which each follows all nodes that it needs.

    *needs* are pairs of a node and a node that it needs. Nodes that need each other form one sorted
    group.
    """
    groups = nx.condensation(nx.DiGraph(sorted((needed, node) for node, needed in needs)))
    return [sorted(groups.nodes[group]["members"]) for group in nx.topological_sort(groups)]


def prerequisite_cycles(index: GraphIndex) -> tuple[tuple[str, ...], ...]:
    """Return sorted groups of nodes that require each other, so that none can be used first.

    A node that requires itself is a group. Empty without cycles.
    """
    needs = DiGraph(
        (edge.subject, edge.object)
        for edge in index.edges
        if EDGE_PREDICATES[edge.predicate] == "prerequisite"
    )
    groups = map(sorted, strongly_connected_components(needs))
    cycles = [group for group in groups if len(group) > 1 or needs.has_edge(group[0], group[0])]
    return tuple(sorted(map(tuple, cycles)))
