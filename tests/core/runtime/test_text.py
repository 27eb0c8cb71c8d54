"""Small laws of text."""

from __future__ import annotations

import json
import random
import re
import sys
import time
import unicodedata
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.runtime.text import (
    clean,
    estimate_tokens,
    is_visible,
    literals,
    near,
    normalize,
    one_line,
    visible,
    visible_json,
)

UNSEEN = {"Cc", "Cf", "Cs", "Co"}
IGNORABLE = (
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u2065\u3164\ufe00"
    "\uffa0\ufff0\ufdd0\uffff\U000e0000\U000e01ef"
)
"""What Unicode calls default ignorable, of other categories."""

anything = st.text(st.characters(), max_size=200)


@given(anything, st.integers(1, 100))
def test_cleaned_text_fits_and_holds_nothing_unseen(text: str, limit: int) -> None:
    """What an upstream hides in its description reaches nobody."""
    found = clean(text, limit=limit)

    assert len(found) <= limit
    assert "\r" not in found
    check_seen(found)
    assert found == found.strip()


def check_seen(text: str) -> None:
    """Check that *text* holds nothing unseen but line ends, and joiners between two characters."""
    joiners, ends = "\u200c\u200d\ufe0e\ufe0f", "\t\n\r"
    assert UNSEEN.isdisjoint(
        unicodedata.category(char) for char in text if char not in joiners + ends
    )
    assert not any(ignorable in text for ignorable in IGNORABLE)
    assert not re.search("^[\u200c\u200d\ufe0e\ufe0f]|\r(?!\n)", text)
    assert not re.search("[\u200c\u200d][\u200c\u200d\ufe0e\ufe0f]|[\ufe0e\ufe0f]{2}", text)
    assert not re.search("[\x00-\x7f]\u200c|[\x00-\x7f]\u200d|[A-Za-z][\ufe0e\ufe0f]", text)


HIDDEN = f"{IGNORABLE}\u200c\u200d\ufe0e\ufe0f\r\n\x0b\x85\u2028\ud800\udfff\ue000\ufeff\x1b"
JOINED = "aé1#\u20e3\u0627\u0628\u0915\u094d\u2764\U0001f468\U0001f33e\U0001f3fd"
odd = st.text(st.sampled_from(HIDDEN) | st.sampled_from(JOINED) | st.characters())
"""Much of what is unseen, beside what it may join."""


def test_ten_thousand_cleaned_texts_hold_nothing_unseen() -> None:
    """A third of each text is unseen, a third is what that may join, a third is any character."""
    for seed in range(10_000):
        dice = random.Random(seed)
        anywhere = [chr(dice.randrange(sys.maxunicode + 1)) for _ in range(dice.randrange(30))]
        chars = [*dice.choices(HIDDEN, k=len(anywhere)), *dice.choices(JOINED, k=30), *anywhere]
        dice.shuffle(chars)

        check_seen(clean("".join(chars), limit=dice.randint(1, 100)))


json_values = st.recursive(
    st.none() | st.booleans() | st.floats() | odd,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(odd, inner, max_size=4),
)


@given(odd)
def test_what_no_reader_can_see_is_dropped_once_and_for_all(text: str) -> None:
    """From whatever it came: UTF-8 can write the rest, and a second look finds no more."""
    found = visible(text)

    found.encode("utf-8")
    check_seen(found)
    assert found == visible(found)
    assert is_visible(found) <= (found.isprintable() and "\n" not in found)


@given(json_values)
def test_json_is_strict_in_keys_as_in_values(value: object) -> None:
    """Half of a pair ends a session, and no standard reader takes a NaN."""
    text = json.dumps(visible_json(value), ensure_ascii=False, allow_nan=False)

    text.encode("utf-8")
    assert json.loads(text) == visible_json(json.loads(text))


@pytest.mark.parametrize(
    "text",
    [
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
        "क्\u200dष",
        "നന്\u200d",
        "\U0001f468\u200d\U0001f469\u200d\U0001f467",
        "\U0001f3f3\ufe0f\u200d\U0001f308",
        "\U0001f937\U0001f3fd\u200d\u2640\ufe0f",
        "1\ufe0f\u20e3 \u2764\ufe0f",
        "one\r\ntwo\tthree\n",
    ],
    ids=["persian", "hindi", "malayalam", "family", "flag", "shrug", "keycap", "lines"],
)
def test_a_joiner_that_says_something_stays(text: str) -> None:
    """Persian, Indic scripts and emoji are written with them; files with CR LF stay as they are."""
    assert text == visible(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\u200db\u200cc", "abc"),
        ("a\ufe0f\ufe0f", "a"),
        ("\u0627\u200c\u200c\u200c\u0628", "\u0627\u200c\u0628"),
        ("\U0001f468\u200d\u200d\U0001f469", "\U0001f468\U0001f469"),
        ("\U0001f3f4\U000e0067\U000e007f", "\U0001f3f4"),
        ("one\rtwo\x0cthree\u2028four", "one\ntwo\nthree\nfour"),
    ],
)
def test_a_joiner_that_says_nothing_goes(text: str, expected: str) -> None:
    """A run of them is a hidden message."""
    assert expected == visible(text)


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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("e\u0301te\u0301", "\u00e9t\u00e9"),
        ("a" + "\u0316" * 30 + "b", "a" + "\u0316" * 30 + "b"),
        ("a" + "\u0316\u0317" * 10_000 + "b", "a" + "\u0316\u0317" * 15 + "b"),
        ("a" + "\u0f73" * 20_000, "a" + "\u0f71" * 30 + "\u0f72" * 30),
    ],
)
def test_marks_without_end_are_not_sorted(text: str, expected: str) -> None:
    """Twenty thousand of them took seconds, and no thread ran meanwhile."""
    assert expected == normalize("NFC", text)
    assert expected == clean(text, limit=15_000)


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
    assert () == near(f"{'q' * 256} send_email", names), "the end of a long one is not read"


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


COSTLY = (
    "x", "a_", "a.", "aa-", "a@", "'a", "1.", "https://", "我a", " \n", "\n\n ", ". ", "; ",
    "\u200d", "\U0001f468\u200d", "\u202e", "é\u0301",
)  # fmt: skip
"""Pieces of which a pattern that goes back may try every split."""
LINEAR: tuple[Callable[[str], object], ...] = (
    lambda text: clean(text, limit=len(text)),
    lambda text: one_line(text, limit=60),
    lambda text: near(text, ("send_email",)),
    visible,
    is_visible,
    literals,
    estimate_tokens,
)


@pytest.mark.parametrize("piece", COSTLY)
def test_a_megabyte_costs_what_its_letters_cost(piece: str) -> None:
    """Eight times an eighth of it, with as much again for noise: the square would be 64 times."""
    whole = (piece * 2**20)[: 2**20]
    part = whole[: 2**17]

    for function in LINEAR:
        limit = 16 * cpu_s(function, part) + 0.01
        assert any(cpu_s(function, whole) < limit for _ in range(3)), function


def cpu_s(function: Callable[[str], object], text: str) -> float:
    """Give the time that this thread takes for it."""
    start = time.thread_time()
    function(text)
    return time.thread_time() - start


@given(anything)
def test_literals_stand_in_the_text_as_they_are(text: str) -> None:
    """They are copied, never made up."""
    assert all(literal in text for literal in literals(text))
