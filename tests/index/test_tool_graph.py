"""The compiled graph as a search sees it."""

from __future__ import annotations

import networkx as nx
import numpy as np

from gateway.index.tool_graph import ToolGraph
from gateway.index.tool_graph_builder import ToolGraphBuilder
from gateway.options import GraphOptions
from graphs.expansion import expand
from graphs.facts.extraction import extract_facts
from graphs.graph_builder import compile_facts
from graphs.markdown.document import Document, Edge
from tests.fakes import entity, tool

PLAN = Document(
    id="p",
    title="p",
    edges=(
        Edge(subject="x", predicate="requires", object="y"),
        Edge(subject="y", predicate="requires", object="z"),
    ),
)
NODES = ("tool:x", "tool:y", "tool:z")


def test_an_entity_without_a_document_is_reached_by_its_node() -> None:
    """A graph file may speak of it; only documents have a row in the text index."""
    facts = extract_facts([PLAN], names={node.rpartition(":")[2]: node for node in NODES})
    graph = ToolGraph.of(compile_facts(facts), NODES)

    found = expand(graph.index, [NODES[0]], role="prerequisite", hops=2, limit=9).neighbours

    assert [1, 2] == [graph.entity(neighbour.node) for neighbour in found]
    assert [-1] == graph.row_positions.tolist()
    assert [False] == graph.allowed(np.ones(3, dtype=np.bool_)).tolist()


def test_a_host_gets_a_networkx_graph_of_its_own() -> None:
    """Closure, order and cycles are then networkx's; the index does not change with it."""
    entities = [entity(tool(name, f"{name} things"), server="s") for name in ("ask", "pay", "sign")]
    plan = Document(
        id="plan",
        title="plan",
        edges=(
            Edge(subject="s/pay", predicate="requires", object="s/sign"),
            Edge(subject="s/sign", predicate="requires", object="s/ask"),
        ),
    )
    graph = ToolGraphBuilder(GraphOptions()).build(entities, [plan])

    network = graph.to_networkx()

    needs = network.edge_subgraph(
        (*edge, key)
        for *edge, key, data in network.edges(keys=True, data=True)
        if data["role"] == "prerequisite" and data["declared"]
    )
    assert {"s/sign", "s/ask"} == nx.descendants(needs, "s/pay")
    assert ["s/pay", "s/sign", "s/ask"] == list(nx.topological_sort(needs))
    assert [] == list(nx.simple_cycles(needs))
    size = len(graph.index.network)
    network.clear()
    assert size == len(graph.index.network) > 3
