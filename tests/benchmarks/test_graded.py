"""Figures of graded answers."""

from __future__ import annotations

from math import log2

import pytest

from benchmarks.graded import Answer, interval, score
from gateway.plugins.quality import metrics

ASKED = Answer(ids=frozenset({"a"}), grade=2)
PART = Answer(ids=frozenset({"b", "c"}), grade=1)


def test_requested_answer_gains_three_times_as_much() -> None:
    """By hand: gains 3 and 1, discounts 1, 1/log2(3), 1/2."""
    best = 3 + 1 / log2(3)

    assert pytest.approx(1.0) == score(["a", "b", "x"], [ASKED, PART])["ndcg_at_10"]
    assert pytest.approx((1 + 3 / 2) / best) == score(["b", "x", "a"], [ASKED, PART])["ndcg_at_10"]


def test_repeated_answer_counts_once() -> None:
    """Ten tools of the right server are one answer."""
    result = score(["b", "c"], [ASKED, PART])

    assert (1.0, 0.5) == (result["mrr"], result["recall_at_10"])
    assert pytest.approx(1 / (3 + 1 / log2(3))) == result["ndcg_at_10"]


def test_single_grade_equals_the_ungraded_figures() -> None:
    """Public gold has no grades."""
    gold = [Answer(ids=frozenset({item}), grade=1) for item in "abc"]
    plain = metrics.score(["x", "b", "c"], [answer.ids for answer in gold])

    result = score(["x", "b", "c"], gold)

    assert pytest.approx(plain["ndcg@10"]) == result["ndcg_at_10"]
    assert (plain["mrr"], plain["recall@10"]) == (result["mrr"], result["recall_at_10"])


def test_interval_contains_the_mean_of_the_slices() -> None:
    """Slices have equal weight, whatever their size. Equal figures give an interval without
    width.
    """
    low, high = interval([[0.0, 1.0] * 20, [1.0] * 5])

    assert 0.6 < low < 0.75 < high < 0.9
    assert (0.5, 0.5) == interval([[0.5, 0.5], [0.5]])
