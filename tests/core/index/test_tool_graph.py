"""The compiled graph of tools."""

from __future__ import annotations

import networkx as nx

from graphs.markdown import Document, Edge
from tests.fakes import compile_graph, entity, tool


def test_to_networkx_returns_a_copy_of_the_graph() -> None:
    """Hosts can then use the algorithms of networkx for closure, order and cycles."""
    entities = [entity(tool(name, f"{name} things"), server="s") for name in ("ask", "pay", "sign")]
    plan = Document(
        id="plan",
        title="plan",
        edges=(
            Edge(subject="s/pay", predicate="requires", object="s/sign"),
            Edge(subject="s/sign", predicate="requires", object="s/ask"),
        ),
    )
    graph = compile_graph(entities, [plan])

    network = graph.to_networkx()

    needs = network.edge_subgraph(
        (*edge, key)
        for *edge, key, data in network.edges(keys=True, data=True)
        if data["role"] == "prerequisite" and data["declared"]
    )
    assert {"s/sign", "s/ask"} == nx.descendants(needs, "s/pay")
    assert ["s/pay", "s/sign", "s/ask"] == list(nx.topological_sort(needs))
    assert [] == list(nx.simple_cycles(needs))
