"""Prerequisites that no order of calls can meet."""

from __future__ import annotations

import pytest

from graphs.facts import Fact
from graphs.graph_builder import compile_facts
from graphs.paths import prerequisite_cycles


def edge(pair: str, predicate: str = "requires") -> Fact:
    """An edge between two nodes that are named by a letter each."""
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
def test_each_circle_is_named_once(pairs: list[str], expected: tuple[tuple[str, ...], ...]) -> None:
    """What only leads into a circle is no part of it."""
    assert expected == prerequisite_cycles(compile_facts(map(edge, pairs)))


def test_next_steps_may_go_in_a_circle() -> None:
    """They are advice, not a condition."""
    facts = [edge("ab", "nextStep"), edge("ba", "nextStep"), edge("ab")]

    assert () == prerequisite_cycles(compile_facts(facts))
