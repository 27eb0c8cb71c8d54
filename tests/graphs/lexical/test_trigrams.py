"""Near spellings."""

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
def test_a_misspelt_word_meets_the_word_that_was_meant(word: str, expected: str) -> None:
    """A typo must not empty the result."""
    near = TrigramIndex(WORDS).suggest(word)

    assert expected == near[0][0]


@pytest.mark.parametrize("word", ["kitchen", "1ssu", "y" * 40, "qqqq", ""])
def test_nothing_near_is_nothing(word: str) -> None:
    """A guess that is far off is worse than none."""
    assert () == TrigramIndex(WORDS).suggest(word) == TrigramIndex([]).suggest(word)


def test_the_nearer_comes_first_and_counts_more() -> None:
    """One edit is likelier than two."""
    found = TrigramIndex(["carpets", "carpet", "carped"]).suggest("carpett")

    assert (("carpet", 0.8), ("carpets", 0.8), ("carped", 0.5)) == found
