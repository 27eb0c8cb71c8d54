from __future__ import annotations

import pytest

from graphs.lexical.query import TrigramIndex

WORDS = ["invoic", "issu", "weather", "translat", "repositori", "x" * 40]


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("invioc", "invoic"),
        ("isu", "issu"),
        ("wether", "weather"),
        ("wehater", "weather"),
        ("repositorrrri", "repositori"),
    ],
)
def test_suggest_corrects_misspelt_words(word: str, expected: str) -> None:
    near = TrigramIndex(WORDS).suggest(word)

    assert expected == near[0][0]


@pytest.mark.parametrize("word", ["kitchen", "1ssu", "y" * 40, "qqqq", ""])
def test_suggest_returns_nothing_if_no_indexed_word_is_similar(word: str) -> None:
    assert () == TrigramIndex(WORDS).suggest(word) == TrigramIndex([]).suggest(word)


def test_suggest_ranks_words_with_fewer_edits_first() -> None:
    suggestions = TrigramIndex(["carpets", "carpet", "carped"]).suggest("carpett")

    assert (("carpet", 0.8), ("carpets", 0.8), ("carped", 0.5)) == suggestions
