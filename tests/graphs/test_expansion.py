from __future__ import annotations

import pytest

from graphs.expansion import Expansion, Role, expand
from graphs.facts import Fact, extract_facts
from graphs.graph_builder import compile_facts
from graphs.markdown import Document, Edge, Link
from graphs.parameters import MAX_GROUP_SIZE


def links(text: str) -> tuple[Link, ...]:
    return tuple(Link(target=target, line=line) for line, target in enumerate(text.split(), 1))


def tool(name: str, *, declared: bool = True, **fields: str) -> Document:
    link_fields = {key: links(value) for key, value in fields.items()}
    return Document(id=name, title=name, path=f"{name}.md", declared=declared, **link_fields)  # type: ignore[arg-type]  # keys name link fields


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
def test_prerequisites_are_sorted_nearest_first(hops: int, expected: str) -> None:
    assert expected == nodes(around(CHAIN, "pay", "prerequisite", hops=hops))


def test_prerequisites_of_the_first_seed_come_first() -> None:
    """With a small limit, the best match is served."""
    assert "rates login" == nodes(around(CHAIN, "invoice customer", "prerequisite"))


def test_expansion_passes_through_seeds_without_returning_them() -> None:
    """A seed's prerequisites may be missing from the result."""
    assert "login wallet customer rates" == nodes(
        around(CHAIN, "pay invoice", "prerequisite", hops=2)
    )


def test_expansion_of_a_cycle_ends() -> None:
    circle = [tool("a", requires="b"), tool("b", requires="a c"), tool("c", requires="c")]

    assert "b c" == nodes(around(circle, "a", "prerequisite", hops=9))


def test_next_steps_follow_edges_and_data_forwards_only() -> None:
    documents = [
        tool("find", next_steps="read", produces="id"),
        tool("read", consumes="id"),
        tool("delete", consumes="id"),
        tool("other"),
    ]

    assert "read delete" == nodes(around(documents, "find", "next_step"))
    assert "" == nodes(around(documents, "delete", "next_step"))
    assert "find" == nodes(around(documents, "delete", "prerequisite"))


def test_relations_have_both_directions_and_shared_groups_count_less() -> None:
    documents = [
        tool("a", related="b", groups="g"),
        tool("b"),
        tool("c", groups="g"),
        tool("d", groups="g h"),
        tool("e", groups="h", related="d"),
    ]

    expansion = around(documents, "a", "related")
    assert [("b", 0.9), ("c", 0.467), ("d", 0.467)] == [
        (neighbour.node, round(neighbour.score, 3)) for neighbour in expansion.neighbours
    ]
    assert "a" == nodes(around(documents, "b", "related"))
    assert "b c d e" == nodes(around(documents, "a", "related", hops=2))


def test_two_shared_groups_count_more_than_one() -> None:
    """Members of shared groups never count as much as a stated relation."""
    documents = [
        tool("a", groups="g h"),
        tool("b", groups="g h"),
        tool("c", groups="g"),
        tool("d", groups="h"),
    ]

    expansion = around(documents, "a", "related")

    assert "b c d" == nodes(expansion)
    assert 0.7 >= expansion.neighbours[0].score > expansion.neighbours[1].score
    assert 2 == len(expansion.neighbours[0].path)


def test_large_group_does_not_relate_its_members() -> None:
    crowd = [tool(f"t{number}", groups="all") for number in range(MAX_GROUP_SIZE + 1)]

    expansion = around(crowd, "t0 t1", "related")

    assert ((), 0) == (expansion.neighbours, expansion.visited)


def test_expansion_reads_only_edges_near_the_seeds() -> None:
    strangers = [tool(f"t{n}", requires=f"t{n + 1}", groups=f"g{n // 5}") for n in range(1000)]

    visited = around([*CHAIN, *strangers], "pay", "prerequisite", hops=3).visited

    assert visited == around(CHAIN, "pay", "prerequisite", hops=3).visited
    assert 9 >= visited


def test_neighbour_has_its_path_with_files_and_lines() -> None:
    (neighbour,) = around(CHAIN, "customer", "prerequisite").neighbours

    expected = Fact(
        subject="customer",
        predicate="requires",
        object="login",
        literal=False,
        path="customer.md",
        line=1,
        declared=True,
    )
    assert (expected,) == neighbour.path
    assert ("prerequisite", 0.9) == (neighbour.role, neighbour.score)


def test_declared_only_uses_statements_of_the_host() -> None:
    """A statement of an upstream about itself is not trusted as a prerequisite."""
    documents = [
        tool("a", requires="b", declared=False),
        tool("a", requires="c"),
        tool("a", consumes="x"),
        tool("d", produces="x", declared=False),
    ]
    index = compile_facts(extract_facts([*documents, tool("b"), tool("c")]))

    expansion = expand(index, ["a"], role="prerequisite", declared_only=True, limit=9)

    assert "c" == nodes(expansion)


def test_excluded_node_is_neither_returned_nor_passed_through() -> None:
    """A path must not reveal hidden nodes. Another path is used instead."""
    documents = [*CHAIN, tool("pay", requires="rates"), tool("rates", requires="customer")]
    index = compile_facts(extract_facts(documents))

    def paths_without(*names: str) -> dict[str, list[str]]:
        expansion = expand(
            index, ["pay"], role="prerequisite", excluded=names.__contains__, hops=3, limit=9
        )
        return {
            neighbour.node: [step.object for step in neighbour.path]
            for neighbour in expansion.neighbours
        }

    assert ["invoice", "customer"] == paths_without()["customer"]
    assert ["rates", "customer"] == paths_without("invoice")["customer"]
    assert {"rates", "login", "wallet"} == paths_without("invoice", "customer").keys()


def test_excluded_concept_does_not_connect_nodes() -> None:
    """The path would reveal its name."""
    documents = [tool("a", groups="g", consumes="x"), tool("b", groups="g"), tool("c", groups="h")]
    index = compile_facts(extract_facts([*documents, tool("a", groups="h")]))
    excluded = "urn:tool-gateway:concept:g".__eq__

    expansion = expand(index, ["a"], role="related", excluded=excluded, limit=9)

    assert "c" == nodes(expansion)


def test_concept_is_never_a_neighbour() -> None:
    """Concepts cannot be called."""
    documents = [tool("a", requires="some-unknown-thing", related="topic", groups="g")]

    assert ["", ""] == [nodes(around(documents, "a", role)) for role in ("prerequisite", "related")]


def test_node_without_a_document_is_a_neighbour() -> None:
    plan = Document(id="p", title="p", edges=(Edge(subject="x", predicate="requires", object="y"),))
    index = compile_facts(extract_facts([plan], names={"x": "tool:x", "y": "tool:y"}))

    assert "tool:y" == nodes(expand(index, ["tool:x"], role="prerequisite", limit=1))


@pytest.mark.parametrize(("seeds", "limit"), [("", 9), ("nobody", 9), ("pay", 0)])
def test_no_seeds_or_a_limit_of_0_gives_no_neighbours(seeds: str, limit: int) -> None:
    assert () == around(CHAIN, seeds, "prerequisite", limit=limit).neighbours


def test_neighbour_of_two_seeds_has_its_best_score() -> None:
    documents = [
        tool("a", produces="x"),
        tool("b", next_steps="c"),
        tool("c", consumes="x"),
        tool("d", consumes="x"),
    ]

    expansion = around(documents, "a b a", "next_step")

    assert [("c", 0.8), ("d", 0.533)] == [(n.node, round(n.score, 3)) for n in expansion.neighbours]


def test_derived_edge_names_its_rule() -> None:
    """A host that wants to forbid the edge must know the rule."""
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

    (neighbour,) = expand(index, ["a"], role="next_step", limit=5).neighbours

    assert (0.4, "data-flow", False) == (
        neighbour.score,
        neighbour.path[0].origin,
        neighbour.path[0].declared,
    )
