"""The signal for tools that contain words of one clause of a request."""

from __future__ import annotations

import pytest

from gateway.search.signals.every import ClauseWords
from tests.core.search.signals.conftest import names_of, pool_of

TOOLS = ("read_letter", "paint_fence", "count_coins")
LONG = (
    "Please read the letter of my aunt to me in the garden. Then paint the fence of the garden in "
    "a fine green with the old brush."
)


def test_clause_words_score_tools_that_contain_words_of_one_clause() -> None:
    pool = pool_of(TOOLS, LONG)

    scores = ClauseWords(1).score(pool)

    assert {"read_letter", "paint_fence"} == names_of(pool, scores > 0)
    assert pytest.approx(0, abs=1e-6) == float(scores.mean())


def test_clause_words_score_zero_for_a_short_request() -> None:
    assert [0, 0, 0] == ClauseWords(1).score(pool_of(TOOLS, "read it")).tolist()
