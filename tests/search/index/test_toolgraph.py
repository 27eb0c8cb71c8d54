"""The compiled graph as a search sees it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gateway.search.index.toolgraph import ToolGraph
from graphs.facts.build import extract_facts
from graphs.graph import GraphIndex
from graphs.markdown.document import Document
from graphs.markdown.parts import Edge

SAID = Document(id="p", title="p", edges=(Edge(subject="x", predicate="requires", object="y"),))


def test_an_entity_without_a_document_stands_where_its_node_does() -> None:
    """A graph file may speak of it; who is in no statement stands nowhere."""
    graph = replace(
        ToolGraph.empty(),
        index=GraphIndex.compile(extract_facts([SAID], names={"x": "tool:x", "y": "tool:y"})),
        nodes=("tool:x", "p", "tool:nobody"),
        places=np.array([-1, 0, -1]),
    )

    assert ["tool:x", "p"] == [graph.index.nodes[at] for at in graph.at((0, 1, 2))]
