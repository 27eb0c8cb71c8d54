"""Ranking figures for answers with grades."""

from __future__ import annotations

from math import log2

import pytest

from benchmarks.graded import Answer, interval, score
from gateway.plugins.quality import metrics

ASKED = Answer(ids=frozenset({"a"}), grade=2)
PART = Answer(ids=frozenset({"b", "c"}), grade=1)


def test_answer_of_the_highest_grade_gains_three_times_as_much() -> None:
    """Computed by hand: gains 3 and 1, discounts 1, 1/log2(3), 1/2."""
    best = 3 + 1 / log2(3)

    assert pytest.approx(1.0) == score(["a", "b", "x"], [ASKED, PART])["ndcg_at_10"]
    assert pytest.approx((1 + 3 / 2) / best) == score(["b", "x", "a"], [ASKED, PART])["ndcg_at_10"]


def test_repeated_answer_counts_once() -> None:
    """Ten tools of the right server are one answer."""
    result = score(["b", "c"], [ASKED, PART])

    assert (1.0, 0.5) == (result["mrr"], result["recall_at_10"])
    assert pytest.approx(1 / (3 + 1 / log2(3))) == result["ndcg_at_10"]


def test_answers_with_one_grade_give_the_ungraded_figures() -> None:
    """Relevant tools of public data sets have no grades."""
    gold = [Answer(ids=frozenset({item}), grade=1) for item in "abc"]
    plain = metrics.score(["x", "b", "c"], [answer.ids for answer in gold])

    result = score(["x", "b", "c"], gold)

    assert pytest.approx(plain["ndcg@10"]) == result["ndcg_at_10"]
    assert (plain["mrr"], plain["recall@10"]) == (result["mrr"], result["recall_at_10"])


def test_interval_contains_the_mean_over_slices_of_requests() -> None:
    """Slices have equal weight, whatever their size. Equal figures give an interval without
    width.
    """
    low, high = interval([[0.0, 1.0] * 20, [1.0] * 5])

    assert 0.6 < low < 0.75 < high < 0.9
    assert (0.5, 0.5) == interval([[0.5, 0.5], [0.5]])
