"""Views of the graph for people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gateway import Gateway
from gateway.errors import InvalidRequestError, UnknownToolError
from gateway.index import load_proposals
from gateway.options import GraphOptions
from gateway.plugins.graph_tools import MAX_PATH_EDGES, GraphEdge, GraphView
from gateway.plugins.usage import TransitionCounts
from gateway.types import Caller
from graphs.markdown import Document, Edge
from graphs.parameters import MAX_GROUP_SIZE
from tests.fakes import compile_snapshot, entity, tool

NAMES = ("ask", "buy", "cook", "dine", "eat", "fry")
PLAIN = GraphOptions(groups=False, phases=False)


def plan(*lines: str, path: str = "plan.md") -> Document:
    """Return a document that declares edges, each given as ``a requires b``."""
    words = [line.split() for line in lines]
    edges = [Edge(subject=f"s/{start}", predicate=predicate, object=f"s/{end}", line=at)
             for at, (start, predicate, end) in enumerate(words, 1)]  # fmt: skip
    return Document(id=path, path=path, title=path, edges=tuple(edges))


def view(
    *lines: str, names: Sequence[str] = NAMES, options: GraphOptions = PLAIN, **more: Any
) -> GraphView:
    """Return the graph of some tools of one server. *lines* are declared edges."""
    entities = [entity(tool(name), server="s") for name in names]
    entities = [replace(item, scopes=frozenset({"s"} if item.name == "fry" else ())) for item in entities]  # fmt: skip  # noqa: E501
    snapshot = compile_snapshot(entities, documents=[plan(*lines)], options=options)
    return GraphView(snapshot=snapshot, **more)


def edge_texts(edges: Sequence[GraphEdge]) -> list[str]:
    return [f"{edge.subject} {edge.predicate} {edge.object}".replace("s/", "") for edge in edges]


def around(graph: GraphView, name: str = "s/ask", **bounds: int) -> list[str]:
    return [node.id.removeprefix("s/") for node in graph.around(name, **bounds).nodes]


def test_each_edge_has_its_origin_and_source() -> None:
    """Declared edges are listed first."""
    counts = TransitionCounts.of([["s/ask", "s/dine"], ["s/ask", "s/dine"], ["s/ask", "s/buy"]])
    graph = view(
        "buy requires ask",
        "ask nextStep buy",
        names=("ask", "buy", "dine", "eat", "get_ask"),
        options=GraphOptions(groups=False),
        learned=counts.learned_steps(),
        proposals=[plan("eat requires ask", "buy requires ask", path="proposed/s.md")],
    )

    neighbourhood = graph.around("ask")

    sources = [(*edge_texts([edge]), edge.origin, edge.source) for edge in neighbourhood.edges]
    assert [
        ("buy requires ask", "declared", "plan.md:1"),
        ("ask nextStep buy", "declared", "plan.md:2"),
        ("eat requires ask", "proposed", "proposed/s.md:1"),
        ("get_ask nextStep ask", "derived", "phases"),
        ("ask nextStep dine", "learned", "2 of 3"),
    ] == sources
    assert "s/ask" == neighbourhood.nodes[0].id
    assert {1} == {node.distance for node in neighbourhood.nodes[1:]}


def test_find_returns_graph_nodes_by_id_and_by_words() -> None:
    """Without words, the node with the most edges comes first. Nodes hidden from the caller are not
    found.
    """
    lines = ("ask requires buy", "cook requires buy", "fry requires ask", "fry requires buy")
    proposals = [plan("ask requires ask", "dine requires buy", "dine requires fry")]
    graph = view(*lines, caller=Caller(), proposals=proposals)

    assert ["s/buy"] == [node.id for node in graph.find("", limit=1)]
    assert ["s/cook"] == [node.id for node in graph.find("cook")]
    assert "s/dine" == graph.find("s/dine")[0].id
    assert "s/fry" not in {node.id for text in ("fry", "s/fry") for node in graph.find(text)}
    assert ["dine requires buy"] == edge_texts(graph.proposed())


def test_neighbourhood_has_a_maximum_size_and_counts_omitted_nodes() -> None:
    graph = view(
        "ask relatedTo buy", "buy relatedTo cook", "cook relatedTo dine", "cook requires ask"
    )

    assert ["ask", "buy", "cook"] == around(graph)
    assert ["ask", "buy", "cook", "dine"] == around(graph, hops=2)
    assert ["ask", "buy"] == around(graph, hops=2, limit=2)
    assert 1 == graph.around("s/ask", hops=2, limit=2).omitted
    assert ["ask relatedTo buy"] == edge_texts(graph.around("s/ask", hops=2, limit=2).edges)


def test_neighbourhood_shows_a_large_group_but_not_its_other_members() -> None:
    names = [f"tool{number}" for number in range(MAX_GROUP_SIZE + 1)]
    lines = [f"{name} memberOf all" for name in names]
    graph, group = view(*lines, names=names), "urn:tool-gateway:concept:s-all"

    assert [group] == around(graph, "s/tool1", hops=3)[1:]
    assert {*names} == {*around(graph, group, limit=100)[1:]}
    assert () == graph.paths("tool1", "tool2")
    assert ["memberOf"] * 2 == [
        edge.predicate for edge in view(*lines[:5], names=names).paths("tool1", "tool2")[0]
    ]


def test_caller_sees_only_its_own_tools_and_the_edges_between_them() -> None:
    """A tool that the caller may not see is unknown, and paths do not lead through it."""
    lines = ("ask requires fry", "fry requires buy", "fry nextStep cook")
    counts = TransitionCounts.of([["s/ask", "s/fry"], ["s/ask", "s/fry"]])
    proposals = [plan("fry relatedTo ask")]
    graph = view(*lines, caller=Caller(), learned=counts.learned_steps(), proposals=proposals)
    whole = replace(graph, caller=Caller(scopes=frozenset({"s"})))

    assert (["ask"], ["ask", "fry"]) == (around(graph), around(whole))
    assert ((), 2) == (graph.paths("ask", "buy"), len(whole.paths("ask", "buy")[0]))
    assert ["s/ask"] == [node.id for node in graph.order("ask").nodes]
    for use in (graph.around, graph.order):
        with pytest.raises(UnknownToolError, match="fry"):
            use("s/fry")
    with pytest.raises(UnknownToolError, match="fry"):
        graph.plan_edit("reject", "ask", "requires", "s/fry", folder=Path())


def test_paths_are_sorted_by_length() -> None:
    """Edges are followed in both directions. Proposed edges are ignored."""
    graph = view(
        "ask requires buy", "cook nextStep buy", "ask relatedTo dine", "dine relatedTo eat",
        "eat relatedTo cook", proposals=[plan("ask requires cook")],
    )  # fmt: skip

    paths = graph.paths("ask", "cook")

    assert [
        ["ask requires buy", "cook nextStep buy"],
        ["ask relatedTo dine", "dine relatedTo eat", "eat relatedTo cook"],
    ] == [edge_texts(path) for path in paths]
    assert [edge_texts(paths[0])] == [
        edge_texts(path) for path in graph.paths("ask", "cook", limit=1)
    ]
    assert ((), ()) == (graph.paths("ask", "fry"), graph.paths("ask", "ask"))


def test_paths_longer_than_the_maximum_are_not_found() -> None:
    names = [f"t{number}" for number in range(MAX_PATH_EDGES + 2)]
    graph = view(
        *(f"t{number} nextStep t{number + 1}" for number in range(len(names) - 1)), names=names
    )

    assert MAX_PATH_EDGES == len(graph.paths("t0", f"t{MAX_PATH_EDGES}")[0])
    assert () == graph.paths("t0", f"t{MAX_PATH_EDGES + 1}")


def test_order_lists_prerequisites_before_the_tools_that_need_them() -> None:
    """Tools that require each other are next to each other, and reported as a cycle."""
    graph = view(
        "ask requires buy", "ask requires cook", "buy requires dine", "cook requires dine",
        "dine requires eat", "eat requires dine", "fry requires ask",
    )  # fmt: skip

    order = graph.order("ask")

    assert ["dine", "eat", "buy", "cook", "ask"] == [node.name for node in order.nodes]
    assert [2, 3, 1, 1, 0] == [node.distance for node in order.nodes]
    assert (("s/dine", "s/eat"),) == order.cycles
    assert 6 == len(order.edges)
    assert (["s/dine", "s/eat"], (("s/dine", "s/eat"),)) == (
        [node.id for node in graph.order("eat").nodes], graph.order("eat").cycles,
    )  # fmt: skip


def test_edit_of_an_edge_that_a_document_declares_is_refused(tmp_path: Path) -> None:
    """The host has to edit the declaring document itself."""
    graph = view("ask requires buy")

    with pytest.raises(InvalidRequestError, match=r"already declares this edge: see plan\.md:1"):
        graph.plan_edit("reject", "ask", "requires", "buy", folder=tmp_path)
    with pytest.raises(InvalidRequestError, match="unknown predicate 'flies'"):
        graph.plan_edit("accept", "ask", "flies", "buy", folder=tmp_path)
    assert (
        '"nextStep"' in graph.plan_edit("accept", "ask", "next_step", "buy", folder=tmp_path).diff
    )


async def test_next_search_uses_an_accepted_edge(tmp_path: Path) -> None:
    """The servers do not list their tools again."""
    (tmp_path / "proposed").mkdir()
    arrows = (
        "# Local\n\n- close_deal --requires--> open_deal\n- open_deal --requires--> list_deals\n"
    )
    (tmp_path / "proposed" / "local.md").write_text(arrows, "utf-8")
    async with Gateway(strategy="graph", graph=tmp_path) as gateway:
        for name in ("list_deals", "open_deal", "close_deal"):
            gateway.add_tool(lambda: "", name=name, description=f"{name} of the shop")

        async def decide(verdict: Any, *edge: str) -> None:
            before = GraphView(snapshot=await gateway.snapshot())
            before.plan_edit(verdict, *edge, folder=tmp_path).write()
            gateway.reread_graph()

        await decide("accept", "close_deal", "requires", "open_deal")
        await decide("reject", "open_deal", "requires", "list_deals")
        await decide("reject", "list_deals", "memberOf", "urn:tool-gateway:concept:local-deal")
        result = await gateway.search("close deal", limit=1)
        now = GraphView(snapshot=await gateway.snapshot(), proposals=load_proposals(tmp_path))

    (needed,) = result.prerequisites
    assert ("local/open_deal", True) == (needed.id, needed.evidence.path[0].declared)
    assert "reviewed/local.md:5" == needed.evidence.path[0].source
    edges = now.around("open_deal", hops=2).edges
    assert [] == [edge for edge in edges if edge.origin == "proposed"]
    members = {edge.subject for edge in edges if edge.predicate == "memberOf"}
    assert members == {"local/open_deal", "local/close_deal"}
