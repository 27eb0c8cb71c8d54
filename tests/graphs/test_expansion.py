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
def test_expand_returns_the_nearest_prerequisites_first(hops: int, expected: str) -> None:
    assert expected == nodes(around(CHAIN, "pay", "prerequisite", hops=hops))


def test_expand_returns_prerequisites_of_the_first_seed_first() -> None:
    """The first seed is the best match of a search, so a small limit must not omit its
    prerequisites.
    """
    assert "rates login" == nodes(around(CHAIN, "invoice customer", "prerequisite"))


def test_expand_passes_through_seeds_without_returning_them() -> None:
    """A prerequisite of a seed may be reached only through another seed."""
    assert "login wallet customer rates" == nodes(
        around(CHAIN, "pay invoice", "prerequisite", hops=2)
    )


def test_expand_ends_in_a_cycle_of_prerequisites() -> None:
    circle = [tool("a", requires="b"), tool("b", requires="a c"), tool("c", requires="c")]

    assert "b c" == nodes(around(circle, "a", "prerequisite", hops=9))


def test_expand_follows_next_steps_and_data_only_forwards() -> None:
    documents = [
        tool("find", next_steps="read", produces="id"),
        tool("read", consumes="id"),
        tool("delete", consumes="id"),
        tool("other"),
    ]

    assert "read delete" == nodes(around(documents, "find", "next_step"))
    assert "" == nodes(around(documents, "delete", "next_step"))
    assert "find" == nodes(around(documents, "delete", "prerequisite"))


def test_expand_follows_relations_in_both_directions_and_shared_groups() -> None:
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


def test_neighbour_that_shares_two_groups_scores_higher_than_with_one() -> None:
    """Even many shared groups never score more than a stated relation."""
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


def test_expand_does_not_relate_the_members_of_a_large_group() -> None:
    crowd = [tool(f"t{number}", groups="all") for number in range(MAX_GROUP_SIZE + 1)]

    expansion = around(crowd, "t0 t1", "related")

    assert ((), 0) == (expansion.neighbours, expansion.visited)


def test_expand_reads_only_edges_near_the_seeds() -> None:
    strangers = [tool(f"t{n}", requires=f"t{n + 1}", groups=f"g{n // 5}") for n in range(1000)]

    visited = around([*CHAIN, *strangers], "pay", "prerequisite", hops=3).visited

    assert visited == around(CHAIN, "pay", "prerequisite", hops=3).visited
    assert 9 >= visited


def test_neighbour_has_the_statements_of_its_path_with_files_and_lines() -> None:
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


def test_expand_with_declared_only_uses_only_statements_of_the_host() -> None:
    """Prerequisites that an upstream states about itself are not trusted."""
    documents = [
        tool("a", requires="b", declared=False),
        tool("a", requires="c"),
        tool("a", consumes="x"),
        tool("d", produces="x", declared=False),
    ]
    index = compile_facts(extract_facts([*documents, tool("b"), tool("c")]))

    expansion = expand(index, ["a"], role="prerequisite", declared_only=True, limit=9)

    assert "c" == nodes(expansion)


def test_expand_neither_returns_nor_passes_through_an_excluded_node() -> None:
    """A path must not reveal an excluded node. Another path is used if there is one."""
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


def test_expand_does_not_connect_nodes_through_an_excluded_concept() -> None:
    """The path would reveal the name of the concept."""
    documents = [tool("a", groups="g", consumes="x"), tool("b", groups="g"), tool("c", groups="h")]
    index = compile_facts(extract_facts([*documents, tool("a", groups="h")]))
    excluded = "urn:tool-gateway:concept:g".__eq__

    expansion = expand(index, ["a"], role="related", excluded=excluded, limit=9)

    assert "c" == nodes(expansion)


def test_expand_never_returns_a_concept() -> None:
    """A concept is not a tool, so it cannot be called."""
    documents = [tool("a", requires="some-unknown-thing", related="topic", groups="g")]

    assert ["", ""] == [nodes(around(documents, "a", role)) for role in ("prerequisite", "related")]


def test_expand_returns_nodes_without_a_document() -> None:
    plan = Document(id="p", title="p", edges=(Edge(subject="x", predicate="requires", object="y"),))
    index = compile_facts(extract_facts([plan], names={"x": "tool:x", "y": "tool:y"}))

    assert "tool:y" == nodes(expand(index, ["tool:x"], role="prerequisite", limit=1))


@pytest.mark.parametrize(("seeds", "limit"), [("", 9), ("nobody", 9), ("pay", 0)])
def test_expand_without_seeds_or_with_limit_0_returns_no_neighbours(seeds: str, limit: int) -> None:
    assert () == around(CHAIN, seeds, "prerequisite", limit=limit).neighbours


def test_neighbour_of_two_seeds_has_the_better_of_both_scores() -> None:
    documents = [
        tool("a", produces="x"),
        tool("b", next_steps="c"),
        tool("c", consumes="x"),
        tool("d", consumes="x"),
    ]

    expansion = around(documents, "a b a", "next_step")

    assert [("c", 0.8), ("d", 0.533)] == [(n.node, round(n.score, 3)) for n in expansion.neighbours]


def test_path_with_a_derived_edge_names_the_rule_of_the_edge() -> None:
    """To stop such edges, the host must know the rule that derives them."""
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
