from __future__ import annotations

import pytest

from graphs.facts import Fact
from graphs.graph_builder import compile_facts
from graphs.paths import prerequisite_cycles


def edge(pair: str, predicate: str = "requires") -> Fact:
    """Return an edge between two nodes whose ids are single letters."""
    return Fact(subject=pair[0], predicate=predicate, object=pair[1], literal=False, declared=True)


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        ([], ()),
        (["ab", "bc", "ac"], ()),
        (["ab", "ba"], (("a", "b"),)),
        (["ca", "bc", "ab", "xa", "zz"], (("a", "b", "c"), ("z",))),
    ],
    ids=["empty", "a chain", "two", "three, and one that needs itself"],
)
def test_each_cycle_is_returned_once(
    pairs: list[str], expected: tuple[tuple[str, ...], ...]
) -> None:
    """Nodes that only lead into a cycle are not part of it."""
    assert expected == prerequisite_cycles(compile_facts(map(edge, pairs)))


def test_cycles_of_next_steps_are_not_reported() -> None:
    """Next steps are advice, not conditions."""
    facts = [edge("ab", "nextStep"), edge("ba", "nextStep"), edge("ab")]

    assert () == prerequisite_cycles(compile_facts(facts))
