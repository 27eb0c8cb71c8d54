"""The seam of usage: edges that calls have shown."""

from __future__ import annotations

from dataclasses import replace

from gateway.config import GraphOptions
from gateway.search.edges import around
from gateway.search.index.toolgraph import ToolGraph, node_of
from gateway.search.index.toolgraphs import build
from gateway.types import Entity
from graphs import Document, Fact, Link, parse
from graphs.expansion import expand
from tests.fakes import tool

NO_RULES = GraphOptions(phases=False, groups=False, mentions=False)
TOOLS = [
    Entity(id=f"srv/{name}", exposed_name=name, server="srv", definition=tool(name))
    for name in ("find_room", "book_room", "send_mail")
]
SHOWN = Fact(
    subject=node_of("srv/find_room"),
    predicate="nextStep",
    object=node_of("srv/book_room"),
    literal=False,
    weight=0.25,
    declared=True,
)


def steps(graph: ToolGraph) -> list[tuple[str, float, str, bool]]:
    """What comes after finding a room: id, score, source and whether the host said it."""
    found = expand(graph.index, [node_of("srv/find_room")], role="next_step", limit=9)
    return [
        (graph.said(each.node), each.score, step.source, step.declared)
        for each in found.neighbours
        for step in graph.steps(each.path)
    ]


def test_a_learned_edge_is_derived_and_weighs_what_use_says() -> None:
    """Also where it claims to be declared."""
    graph = build(TOOLS, options=NO_RULES, learned=[SHOWN])

    assert [("srv/book_room", 0.2, "derived/usage", False)] == steps(graph)
    (edge,) = (e for e in around(graph, SHOWN.subject) if e.predicate == "nextStep")
    assert ("usage", "", False) == (edge.rule, edge.source, edge.declared)


def test_a_written_edge_keeps_its_weight_and_its_line() -> None:
    """Use confirms it and changes nothing."""
    text = "---\ntitle: plan\n---\n- find_room --next--> book_room\n"
    written = replace(parse(text, path="plan.md"))
    strong = replace(SHOWN, weight=1.0)

    graph = build(TOOLS, [written], options=NO_RULES, learned=[strong])

    assert [("srv/book_room", 0.8, "plan.md:4", True)] == steps(graph)


def test_a_forbidden_edge_stays_away() -> None:
    """Whatever calls have shown."""
    ban = parse("---\nid: find_room\ntitle: find\ngraph_forbid: [{object: book_room}]\n---\n")

    assert [] == steps(build(TOOLS, [ban], options=NO_RULES, learned=[SHOWN]))


def test_a_rule_and_use_that_agree_are_one_edge() -> None:
    """It counts as the rule's, by the greater weight."""
    graph = build(TOOLS, learned=[SHOWN])

    (found,) = (each for each in steps(graph) if each[0] == "srv/book_room")
    assert ("srv/book_room", 0.8, "derived/phases", False) == found


def test_what_is_gone_or_no_edge_between_tools_is_left_out() -> None:
    """Histories outlive catalogs."""
    odd = [
        replace(SHOWN, object=node_of("srv/gone")),
        replace(SHOWN, subject="urn:x"),
        replace(SHOWN, predicate="name", literal=True),
        replace(SHOWN, predicate="memberOf"),
    ]
    own = Document(id="other", title="other", related=(Link(target="find_room"),))

    assert steps(build(TOOLS, [own], options=NO_RULES)) == steps(
        build(TOOLS, [own], options=NO_RULES, learned=odd)
    )
