"""Mermaid and DOT diagrams of a whole graph or the surroundings of one node."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter

from networkx import ego_graph

from graphs.facts.fact import Fact
from graphs.graph import GraphIndex, edges_of


def to_mermaid(index: GraphIndex, *, centre: str | None = None, hops: int = 1) -> str:
    """Draw the graph as a Mermaid flow chart.

    With *centre*, only edges within *hops* edges of this node are drawn, in any direction.
    """
    edges = _excerpt(index, centre, hops)
    names = _names(edges, centre)
    lines = [f'  {name}["{_mermaid_text(index.label(node))}"]' for node, name in names.items()]
    lines += [
        f"  {names[edge.subject]} -->|{edge.predicate}| {names[edge.object]}" for edge in edges
    ]
    return "\n".join(["graph LR", *lines]) + "\n"


def to_dot(index: GraphIndex, *, centre: str | None = None, hops: int = 1) -> str:
    """Draw the graph in the DOT language, with the arguments of `to_mermaid`."""
    edges = _excerpt(index, centre, hops)
    names = _names(edges, centre)
    lines = [f"  {name} [label={_dot_text(index.label(node))}];" for node, name in names.items()]
    lines += [
        f"  {names[edge.subject]} -> {names[edge.object]} [label={_dot_text(edge.predicate)}];"
        for edge in edges
    ]
    return "\n".join(["digraph {", "  rankdir=LR;", *lines, "}"]) + "\n"


def _excerpt(index: GraphIndex, centre: str | None, hops: int) -> list[Fact]:
    network = index.network
    if centre is not None:
        if centre not in network:
            return []
        network = ego_graph(network, centre, radius=hops, undirected=True)
    return sorted(edges_of(network), key=attrgetter("subject", "predicate", "object"))


def _names(edges: Iterable[Fact], centre: str | None) -> dict[str, str]:
    nodes = dict.fromkeys([] if centre is None else [centre])
    for edge in edges:
        nodes |= dict.fromkeys((edge.subject, edge.object))
    return {node: f"n{number}" for number, node in enumerate(nodes)}


def _mermaid_text(text: str) -> str:
    plain = " ".join(text.split()).replace("&", "&amp;").replace('"', "&quot;")
    return plain.replace("<", "&lt;").replace(">", "&gt;").replace("#", "&#35;")


def _dot_text(text: str) -> str:
    plain = " ".join(text.split()).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{plain}"'
