"""Neighbours of given nodes."""

from __future__ import annotations

import pytest

from graphs.expansion import Expansion, Role, expand
from graphs.facts import Fact, extract_facts
from graphs.graph_builder import compile_facts
from graphs.markdown import Document, Edge, Link
from graphs.parameters import MAX_GROUP_SIZE


def links(text: str) -> tuple[Link, ...]:
    return tuple(Link(target=target, line=at) for at, target in enumerate(text.split(), 1))


def tool(name: str, *, declared: bool = True, **fields: str) -> Document:
    given = {key: links(value) for key, value in fields.items()}
    return Document(id=name, title=name, path=f"{name}.md", declared=declared, **given)  # type: ignore[arg-type]  # keys name link fields


def around(
    documents: list[Document], seeds: str, role: Role, *, hops: int = 1, limit: int = 9
) -> Expansion:
    index = compile_facts(extract_facts(documents))
    return expand(index, seeds.split(), role=role, hops=hops, limit=limit)


def nodes(found: Expansion) -> str:
    return " ".join(neighbour.node for neighbour in found.neighbours)


CHAIN = [
    tool("pay", requires="invoice login", consumes="card"),
    tool("invoice", requires="customer", consumes="rate"),
    tool("customer", requires="login"),
    tool("login"),
    tool("rates", produces="rate"),
    tool("wallet", produces="card"),
]


@pytest.mark.parametrize(
    ("hops", "expected"), [(1, "invoice login wallet"), (2, "invoice login wallet customer rates")]
)
def test_prerequisites_come_nearest_first(hops: int, expected: str) -> None:
    """What is needed at once is told before what that needs."""
    assert expected == nodes(around(CHAIN, "pay", "prerequisite", hops=hops))


def test_the_first_seed_is_served_first() -> None:
    """The budget belongs to the best match."""
    assert "rates login" == nodes(around(CHAIN, "invoice customer", "prerequisite"))


def test_a_walk_goes_through_a_seed_but_never_returns_one() -> None:
    """A seed is in the result already; what it needs may not be."""
    assert "login wallet customer rates" == nodes(
        around(CHAIN, "pay invoice", "prerequisite", hops=2)
    )


def test_a_circle_ends() -> None:
    """People write circles."""
    circle = [tool("a", requires="b"), tool("b", requires="a c"), tool("c", requires="c")]

    assert "b c" == nodes(around(circle, "a", "prerequisite", hops=9))


def test_next_steps_follow_edges_and_data_forwards_only() -> None:
    """After comes after."""
    documents = [
        tool("find", next_steps="read", produces="id"),
        tool("read", consumes="id"),
        tool("delete", consumes="id"),
        tool("other"),
    ]

    assert "read delete" == nodes(around(documents, "find", "next_step"))
    assert "" == nodes(around(documents, "delete", "next_step"))
    assert "find" == nodes(around(documents, "delete", "prerequisite"))


def test_relations_go_both_ways_and_a_rare_group_counts_less() -> None:
    """A stated relation is surer than a shared label."""
    documents = [
        tool("a", related="b", groups="g"),
        tool("b"),
        tool("c", groups="g"),
        tool("d", groups="g h"),
        tool("e", groups="h", related="d"),
    ]

    found = around(documents, "a", "related")
    assert [("b", 0.9), ("c", 0.467), ("d", 0.467)] == [
        (each.node, round(each.score, 3)) for each in found.neighbours
    ]
    assert "a" == nodes(around(documents, "b", "related"))
    assert "b c d e" == nodes(around(documents, "a", "related", hops=2))


def test_two_shared_groups_are_nearer_than_one_and_each_fellow_comes_once() -> None:
    """But never as near as a stated relation."""
    documents = [
        tool("a", groups="g h"),
        tool("b", groups="g h"),
        tool("c", groups="g"),
        tool("d", groups="h"),
    ]

    found = around(documents, "a", "related")

    assert "b c d" == nodes(found)
    assert 0.7 >= found.neighbours[0].score > found.neighbours[1].score
    assert 2 == len(found.neighbours[0].path)


def test_a_crowd_relates_nobody() -> None:
    """A group of everybody says nothing, and must cost nothing."""
    crowd = [tool(f"t{number}", groups="all") for number in range(MAX_GROUP_SIZE + 1)]

    found = around(crowd, "t0 t1", "related")

    assert ((), 0) == (found.neighbours, found.visited)


def test_the_work_depends_on_the_surroundings_not_on_the_graph() -> None:
    """A thousand strangers cost nothing."""
    strangers = [tool(f"t{n}", requires=f"t{n + 1}", groups=f"g{n // 5}") for n in range(1000)]

    visited = around([*CHAIN, *strangers], "pay", "prerequisite", hops=3).visited

    assert visited == around(CHAIN, "pay", "prerequisite", hops=3).visited
    assert 9 >= visited


def test_the_way_is_the_evidence() -> None:
    """Down to the file and line that it came from."""
    (found,) = around(CHAIN, "customer", "prerequisite").neighbours

    expected = Fact(
        subject="customer",
        predicate="requires",
        object="login",
        literal=False,
        path="customer.md",
        line=1,
        declared=True,
    )
    assert (expected,) == found.path
    assert ("prerequisite", 0.9) == (found.role, found.score)


def test_only_the_hosts_statements_count_where_that_is_asked() -> None:
    """What an upstream says of itself is never a declared prerequisite."""
    documents = [
        tool("a", requires="b", declared=False),
        tool("a", requires="c"),
        tool("a", consumes="x"),
        tool("d", produces="x", declared=False),
    ]
    index = compile_facts(extract_facts([*documents, tool("b"), tool("c")]))

    found = expand(index, ["a"], role="prerequisite", declared_only=True, limit=9)

    assert "c" == nodes(found)


def test_an_excluded_node_is_neither_found_nor_walked_through() -> None:
    """What may not be found stands in no way that is shown either; another way is taken."""
    documents = [*CHAIN, tool("pay", requires="rates"), tool("rates", requires="customer")]
    index = compile_facts(extract_facts(documents))

    def ways(*names: str) -> dict[str, list[str]]:
        found = expand(
            index, ["pay"], role="prerequisite", excluded=names.__contains__, hops=3, limit=9
        )
        return {each.node: [step.object for step in each.path] for each in found.neighbours}

    assert ["invoice", "customer"] == ways()["customer"]
    assert ["rates", "customer"] == ways("invoice")["customer"]
    assert {"rates", "login", "wallet"} == ways("invoice", "customer").keys()


def test_what_two_nodes_share_leads_nowhere_if_it_is_excluded() -> None:
    """Its name would be told as the way."""
    documents = [tool("a", groups="g", consumes="x"), tool("b", groups="g"), tool("c", groups="h")]
    index = compile_facts(extract_facts([*documents, tool("a", groups="h")]))
    excluded = "urn:tool-gateway:concept:g".__eq__

    found = expand(index, ["a"], role="related", excluded=excluded, limit=9)

    assert "c" == nodes(found)


def test_a_concept_is_never_a_neighbour() -> None:
    """Nobody can call a label."""
    documents = [tool("a", requires="some-unknown-thing", related="topic", groups="g")]

    assert ["", ""] == [nodes(around(documents, "a", role)) for role in ("prerequisite", "related")]


def test_a_node_without_a_document_is_a_neighbour() -> None:
    """A graph file may speak of tools that nobody described."""
    plan = Document(id="p", title="p", edges=(Edge(subject="x", predicate="requires", object="y"),))
    index = compile_facts(extract_facts([plan], names={"x": "tool:x", "y": "tool:y"}))

    assert "tool:y" == nodes(expand(index, ["tool:x"], role="prerequisite", limit=1))


@pytest.mark.parametrize(("seeds", "limit"), [("", 9), ("nobody", 9), ("pay", 0)])
def test_no_seeds_or_no_room_is_no_neighbours(seeds: str, limit: int) -> None:
    """And no error."""
    assert () == around(CHAIN, seeds, "prerequisite", limit=limit).neighbours


def test_a_neighbour_of_two_seeds_keeps_its_best_score() -> None:
    """It comes once."""
    documents = [
        tool("a", produces="x"),
        tool("b", next_steps="c"),
        tool("c", consumes="x"),
        tool("d", consumes="x"),
    ]

    found = around(documents, "a b a", "next_step")

    assert [("c", 0.8), ("d", 0.533)] == [(n.node, round(n.score, 3)) for n in found.neighbours]


def test_a_derived_edge_names_the_rule_that_made_it() -> None:
    """A host that wants to forbid it must know where it comes from."""
    guess = Fact(
        subject="a",
        predicate="nextStep",
        object="b",
        literal=False,
        weight=0.5,
        origin="data-flow",
        declared=False,
    )
    index = compile_facts(extract_facts([tool("a"), tool("b")], derived=[guess]))

    (found,) = expand(index, ["a"], role="next_step", limit=5).neighbours

    assert (0.4, "data-flow", False) == (found.score, found.path[0].origin, found.path[0].declared)
