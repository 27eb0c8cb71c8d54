"""Figures of graded answers."""

from __future__ import annotations

from math import log2

import pytest

from benchmarks.graded import Answer, interval, score
from gateway.plugins.quality import metrics

ASKED = Answer(ids=frozenset({"a"}), grade=2)
PART = Answer(ids=frozenset({"b", "c"}), grade=1)


def test_what_was_asked_for_gains_three_times_what_would_do() -> None:
    """By hand: gains 3 and 1, discounts 1, 1/log2(3), 1/2."""
    best = 3 + 1 / log2(3)

    assert pytest.approx(1.0) == score(["a", "b", "x"], [ASKED, PART])["ndcg_at_10"]
    assert pytest.approx((1 + 3 / 2) / best) == score(["b", "x", "a"], [ASKED, PART])["ndcg_at_10"]


def test_an_answer_is_served_once() -> None:
    """Ten tools of the right server are not ten answers."""
    found = score(["b", "c"], [ASKED, PART])

    assert (1.0, 0.5) == (found["mrr"], found["recall_at_10"])
    assert pytest.approx(1 / (3 + 1 / log2(3))) == found["ndcg_at_10"]


def test_with_one_grade_the_figures_are_those_of_the_other_benchmarks() -> None:
    """Public gold has no grades."""
    gold = [Answer(ids=frozenset({each}), grade=1) for each in "abc"]
    plain = metrics.score(["x", "b", "c"], [answer.ids for answer in gold])

    found = score(["x", "b", "c"], gold)

    assert pytest.approx(plain["ndcg@10"]) == found["ndcg_at_10"]
    assert (plain["mrr"], plain["recall@10"]) == (found["mrr"], found["recall_at_10"])


def test_an_interval_holds_the_mean_of_the_slices() -> None:
    """Each slice weighs the same, whatever its size; equal figures leave no doubt."""
    low, high = interval([[0.0, 1.0] * 20, [1.0] * 5])

    assert 0.6 < low < 0.75 < high < 0.9
    assert (0.5, 0.5) == interval([[0.5, 0.5], [0.5]])
