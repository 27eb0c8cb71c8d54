from __future__ import annotations

from graphs import shortest_paths, topological_groups
from graphs.facts import Fact


def edge(start: str, end: str, predicate: str, weight: float = 1.0) -> Fact:
    return Fact(
        subject=start, predicate=predicate, object=end, literal=False, weight=weight, declared=True
    )


def test_shortest_paths_returns_cheapest_paths_along_edges_of_any_direction() -> None:
    edges = [
        edge("b", "a", "x", 3), edge("a", "b", "y", 1), edge("b", "c", "x", 1),
        edge("c", "a", "z", 5), edge("e", "f", "x"),
    ]  # fmt: skip

    def paths_to(end: str, limit: int = 9) -> list[str]:
        paths = shortest_paths(edges, "a", end, cost=lambda edge: edge.weight, limit=limit)
        return ["".join(edge.predicate for edge in path) for path in paths]

    assert ["yx", "z"] == paths_to("c")
    assert ["yx"] == paths_to("c", limit=1)
    assert [] == paths_to("f") == paths_to("a") == paths_to("unknown")


def test_topological_groups_returns_needed_nodes_first_and_cycles_as_groups() -> None:
    needs = [("d", "c"), ("c", "b"), ("b", "c"), ("d", "a"), ("e", "e")]

    order = topological_groups(needs)

    assert {("a",), ("b", "c"), ("d",), ("e",)} == {*map(tuple, order)}
    assert max(order.index(["a"]), order.index(["b", "c"])) < order.index(["d"])
    assert [] == topological_groups([])
