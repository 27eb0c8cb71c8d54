"""The signal for words of the best clause."""

from __future__ import annotations

import pytest

from gateway.search.signals.every import ClauseWords
from tests.core.search.signals.conftest import names_of, pool_of

TOOLS = ("read_letter", "paint_fence", "count_coins")
LONG = (
    "Please read the letter of my aunt to me in the garden. Then paint the fence of the garden in "
    "a fine green with the old brush."
)


def test_tool_gains_from_the_words_of_its_clause() -> None:
    pool = pool_of(TOOLS, LONG)

    scores = ClauseWords(1).score(pool)

    assert {"read_letter", "paint_fence"} == names_of(pool, scores > 0)
    assert pytest.approx(0, abs=1e-6) == float(scores.mean())


def test_short_request_has_no_clause_words() -> None:
    assert [0, 0, 0] == ClauseWords(1).score(pool_of(TOOLS, "read it")).tolist()
