from __future__ import annotations

import pytest

from graphs.facts import Fact
from graphs.graph_builder import compile_facts
from graphs.paths import prerequisite_cycles


def edge(pair: str, predicate: str = "requires") -> Fact:
    """Return an edge between two nodes; *pair* has their ids, which are single letters."""
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
def test_prerequisite_cycles_returns_each_cycle_once(
    pairs: list[str], expected: tuple[tuple[str, ...], ...]
) -> None:
    """Nodes that only lead into a cycle are not part of it."""
    assert expected == prerequisite_cycles(compile_facts(map(edge, pairs)))


def test_prerequisite_cycles_ignores_next_steps() -> None:
    """Next steps are suggestions, so a cycle of them is not a mistake."""
    facts = [edge("ab", "nextStep"), edge("ba", "nextStep"), edge("ab")]

    assert () == prerequisite_cycles(compile_facts(facts))
