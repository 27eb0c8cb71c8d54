"""Small laws of text."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.runtime.text import clean, estimate_tokens, literals, near, one_line

anything = st.text(st.characters(), max_size=200)


@given(anything, st.integers(1, 100))
def test_cleaned_text_fits_and_holds_nothing_unseen(text: str, limit: int) -> None:
    """What an upstream hides in its description reaches nobody."""
    found = clean(text, limit=limit)

    assert len(found) <= limit
    assert {"Cc", "Cf", "Cs", "Co"}.isdisjoint(
        unicodedata.category(char) for char in found if char != "\n"
    )
    assert found == found.strip()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("  a\u00a0 \t b  ", "a b"),
        ("a\n\n \n\nb", "a\n\nb"),
        ("in\u202evisible\u200b", "invisible"),
        ("tag\U000e0041s", "tags"),
        ("half \ud800 pair", "half ? pair"),
        ("e\u0301", "é"),
        ("", ""),
    ],
)
def test_cleaning_keeps_what_people_see(text: str, expected: str) -> None:
    """Spaces fold, paragraphs stay."""
    assert expected == clean(text, limit=100)


def test_cleaning_reads_only_the_head_of_a_giant() -> None:
    """A description of 50 MB must not stall the listing; this one would, character by character."""
    assert "x" * 10 == clean("x" * 50_000_000, limit=10)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Send a mail. It is quick.", "Send a mail."),
        ("Erste Zeile\nzweite", "Erste Zeile"),
        ("v1.2 is out", "v1.2 is out"),
        ("送信する。 次", "送信する。"),
        ("a long sentence indeed", "a long sen…"),
        ("", ""),
    ],
)
def test_one_line_is_the_first_sentence_clipped(text: str, expected: str) -> None:
    """Lists show one line a tool."""
    assert expected == one_line(text, limit=11 if text.startswith("a long") else 60)


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("abcd", 1), ("abcde", 2), ("天气 ab", 3)])
def test_tokens_are_estimated_by_kinds_of_letters(text: str, tokens: int) -> None:
    """Four letters a token, a wide one a token of its own."""
    assert tokens == estimate_tokens(text)


def test_near_names_are_the_misspelt_ones_best_first() -> None:
    """A model mends its call by them."""
    names = ("send_email", "send_message", "zzz")

    assert "send_email" == near("sendemail", names)[0]
    assert "zzz" not in near("sendemail", names)
    assert () == near("qqqqqq", names)
    assert 1 == len(near("send", names, limit=1))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mail bob@example.com now", ("bob@example.com",)),
        ("see https://a.example/x?y=1.", ("https://a.example/x?y=1",)),
        ("upgrade to v1.2.3", ("v1.2.3",)),
        ("ticket AB-123 of 2024-01-02", ("AB-123", "2024-01-02")),
        ("in octo/repo open main.py", ("octo/repo", "main.py")),
        ("call get_user_id twice: get_user_id", ("get_user_id",)),
        ("from 3.2.1 to 2-3 or 1e-6", ("3.2.1", "2-3", "1e-6")),
        (
            "我需要2000赫兹发给bob@x.example看https://a.example/x的图",
            ("2000", "bob@x.example", "https://a.example/x"),
        ),
        ("at:https://a.example and 7", ("https://a.example",)),
        ("nothing special here", ()),
    ],
)
def test_literals_are_what_no_rewriting_may_change(text: str, expected: tuple[str, ...]) -> None:
    """Ids, addresses, versions, files and repositories."""
    assert expected == literals(text)


@pytest.mark.parametrize("piece", ["x", "a_", "a.", "aa-", "a@", "a+", "_", "a/"])
def test_a_long_word_costs_no_more_than_its_letters(piece: str) -> None:
    """Whoever asks chooses the text: a pattern that goes back would hang here."""
    assert all(literal in 4096 * piece for literal in literals(4096 * piece))


@given(anything)
def test_literals_stand_in_the_text_as_they_are(text: str) -> None:
    """They are copied, never made up."""
    assert all(literal in text for literal in literals(text))
