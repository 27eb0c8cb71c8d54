"""Metrics: figures computed by hand, and properties of every ranking."""

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


def test_score_matches_figures_computed_by_hand() -> None:
    """Two of three gold tools are at the second and the fourth rank."""
    figures = score("xaybz", singles("abc"))

    gain = 1 / log2(3) + 1 / log2(5)
    ideal = 1 + 1 / log2(3) + 1 / log2(4)
    assert figures == pytest.approx(
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


def test_second_tool_of_a_group_does_not_change_the_figures() -> None:
    gold = (frozenset("ab"), frozenset("c"))

    figures = score("abc", gold)

    assert (2 / 2, (1 + 2 / 3) / 2) == pytest.approx((figures["recall@3"], figures["map@10"]))


def test_tool_that_serves_two_groups_gains_only_once() -> None:
    """Recall counts the served groups, but gains are counted once per rank."""
    figures = score("a", (frozenset("ab"), frozenset("ac")))

    assert (1.0, 0.5) == (figures["recall@1"], figures["map@10"])


def test_reciprocal_rank_includes_ranks_beyond_ten() -> None:
    figures = score("bcdefghijkla", singles("a"))

    assert (1 / 12, 0.0, 0.0) == (figures["mrr"], figures["recall@10"], figures["ndcg@10"])


@given(ranked=rankings, gold=golds)
def test_every_figure_is_between_0_and_1(ranked: list[str], gold: list[frozenset[str]]) -> None:
    figures = score(ranked, gold)

    assert 9 == len(figures)
    assert all(0 <= value <= 1 + 1e-12 for value in figures.values())


@given(ranked=rankings, gold=golds)
def test_recall_does_not_fall_with_the_number_of_ranks(
    ranked: list[str], gold: list[frozenset[str]]
) -> None:
    figures = score(ranked, gold)
    recalls = [figures[f"recall@{depth}"] for depth in RECALL_AT]

    assert sorted(recalls) == recalls
    assert figures["comp@10"] == (recalls[-1] == 1)


@given(names=st.lists(tools, unique=True, min_size=1, max_size=10))
def test_perfect_ranking_scores_1_in_every_figure(names: list[str]) -> None:
    figures = score(names, singles("".join(names)))

    assert [1.0] * 4 == pytest.approx(
        [figures[name] for name in ("recall@10", "ndcg@10", "map@10", "comp@10")]
    )


@given(ranked=rankings, gold=golds)
def test_irrelevant_first_tool_raises_no_figure(
    ranked: list[str], gold: list[frozenset[str]]
) -> None:
    before, after = score(ranked, gold), score(["no tool", *ranked], gold)

    assert all(after[name] <= before[name] + 1e-12 for name in before)
