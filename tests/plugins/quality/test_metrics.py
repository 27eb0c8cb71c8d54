"""The figures, worked out by hand, and the laws that hold for every ranking."""

from __future__ import annotations

from math import log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.plugins.quality import RECALL_AT, score

TOOLS = "abcdefghijklmnop"
tools = st.sampled_from(TOOLS)
rankings = st.lists(tools, unique=True, max_size=14)
golds = st.lists(st.frozensets(tools, min_size=1, max_size=3), min_size=1, max_size=12)


def singles(names: str) -> tuple[frozenset[str], ...]:
    return tuple(frozenset(name) for name in names)


def test_a_ranking_is_judged_as_by_hand() -> None:
    """Two of three gold tools, at the second and the fourth place."""
    found = score("xaybz", singles("abc"))

    gain = 1 / log2(3) + 1 / log2(5)
    ideal = 1 + 1 / log2(3) + 1 / log2(4)
    assert found == pytest.approx(
        {
            "hit@1": 0,
            "recall@1": 0,
            "recall@3": 1 / 3,
            "recall@5": 2 / 3,
            "recall@10": 2 / 3,
            "ndcg@10": gain / ideal,
            "mrr": 1 / 2,
            "comp@10": 0,
            "map@10": (1 / 2 + 2 / 4) / 3,
        }
    )


def test_a_second_tool_of_one_group_gains_nothing() -> None:
    """A group is a choice: having both is no better than having one."""
    gold = (frozenset("ab"), frozenset("c"))

    found = score("abc", gold)

    assert (2 / 2, (1 + 2 / 3) / 2) == pytest.approx((found["recall@3"], found["map@10"]))


def test_two_groups_may_share_a_tool_that_serves_one_at_a_time() -> None:
    """Recall asks which groups are met; gains are counted once a place."""
    found = score("a", (frozenset("ab"), frozenset("ac")))

    assert (1.0, 0.5) == (found["recall@1"], found["map@10"])


def test_the_first_relevant_tool_may_stand_beyond_the_tenth_place() -> None:
    """Reciprocal rank reads the whole ranking, the rest only its top."""
    found = score("bcdefghijkla", singles("a"))

    assert (1 / 12, 0.0, 0.0) == (found["mrr"], found["recall@10"], found["ndcg@10"])


@given(ranked=rankings, gold=golds)
def test_every_figure_is_a_share(ranked: list[str], gold: list[frozenset[str]]) -> None:
    """Between 0 and 1, whatever is ranked."""
    found = score(ranked, gold)

    assert 9 == len(found)
    assert all(0 <= value <= 1 + 1e-12 for value in found.values())


@given(ranked=rankings, gold=golds)
def test_recall_grows_with_depth(ranked: list[str], gold: list[frozenset[str]]) -> None:
    """A longer list holds the shorter one."""
    found = score(ranked, gold)
    recalls = [found[f"recall@{depth}"] for depth in RECALL_AT]

    assert sorted(recalls) == recalls
    assert found["comp@10"] == (recalls[-1] == 1)


@given(names=st.lists(tools, unique=True, min_size=1, max_size=10))
def test_the_perfect_ranking_has_every_figure_full(names: list[str]) -> None:
    """Up to ten gold tools fit into the ten places."""
    found = score(names, singles("".join(names)))

    assert [1.0] * 4 == pytest.approx(
        [found[name] for name in ("recall@10", "ndcg@10", "map@10", "comp@10")]
    )


@given(ranked=rankings, gold=golds)
def test_a_tool_of_no_use_in_front_never_helps(
    ranked: list[str], gold: list[frozenset[str]]
) -> None:
    """Pushing everything down one place raises no figure."""
    before, after = score(ranked, gold), score(["no tool", *ranked], gold)

    assert all(after[name] <= before[name] + 1e-12 for name in before)
