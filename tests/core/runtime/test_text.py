"""Cleaning, clipping, literals and token counts of texts."""

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

INVISIBLE = {"Cc", "Cf", "Cs", "Co"}
IGNORABLE = (
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u2065\u3164\ufe00"
    "\uffa0\ufff0\ufdd0\uffff\U000e0000\U000e01ef"
)
"""Default ignorable characters of other Unicode categories."""

anything = st.text(st.characters(), max_size=200)


@given(anything, st.integers(1, 100))
def test_cleaned_text_is_short_and_visible(text: str, limit: int) -> None:
    cleaned = clean(text, limit=limit)

    assert len(cleaned) <= limit
    assert "\r" not in cleaned
    check_visible(cleaned)
    assert cleaned == cleaned.strip()


def check_visible(text: str) -> None:
    """Check that the only invisible characters in *text* are line ends, and joiners between two
    characters.
    """
    joiners, ends = "\u200c\u200d\ufe0e\ufe0f", "\t\n\r"
    assert INVISIBLE.isdisjoint(
        unicodedata.category(char) for char in text if char not in joiners + ends
    )
    assert not any(ignorable in text for ignorable in IGNORABLE)
    assert not re.search("^[\u200c\u200d\ufe0e\ufe0f]|\r(?!\n)", text)
    assert not re.search("[\u200c\u200d][\u200c\u200d\ufe0e\ufe0f]|[\ufe0e\ufe0f]{2}", text)
    assert not re.search("[\x00-\x7f]\u200c|[\x00-\x7f]\u200d|[A-Za-z][\ufe0e\ufe0f]", text)


HIDDEN = f"{IGNORABLE}\u200c\u200d\ufe0e\ufe0f\r\n\x0b\x85\u2028\ud800\udfff\ue000\ufeff\x1b"
JOINED = "aé1#\u20e3\u0627\u0628\u0915\u094d\u2764\U0001f468\U0001f33e\U0001f3fd"
odd = st.text(st.sampled_from(HIDDEN) | st.sampled_from(JOINED) | st.characters())
"""Strategy for texts with many invisible characters and the characters that they may join."""


def test_ten_thousand_cleaned_texts_are_visible() -> None:
    """One third of each text is invisible, one third can be joined, and one third is any
    character.
    """
    for seed in range(10_000):
        dice = random.Random(seed)
        anywhere = [chr(dice.randrange(sys.maxunicode + 1)) for _ in range(dice.randrange(30))]
        chars = [*dice.choices(HIDDEN, k=len(anywhere)), *dice.choices(JOINED, k=30), *anywhere]
        dice.shuffle(chars)

        check_visible(clean("".join(chars), limit=dice.randint(1, 100)))


json_values = st.recursive(
    st.none() | st.booleans() | st.floats() | odd,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(odd, inner, max_size=4),
)


@given(odd)
def test_visible_is_idempotent_and_valid_utf_8(text: str) -> None:
    cleaned = visible(text)

    cleaned.encode("utf-8")
    check_visible(cleaned)
    assert cleaned == visible(cleaned)
    assert is_visible(cleaned) <= (cleaned.isprintable() and "\n" not in cleaned)


@given(json_values)
def test_visible_json_is_strict_json(value: object) -> None:
    """A lone surrogate ends an MCP session, and standard parsers refuse NaN."""
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
def test_visible_keeps_meaningful_joiners(text: str) -> None:
    """Persian, Indic scripts and emoji need joiners. CR LF is kept too."""
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
def test_visible_removes_meaningless_joiners(text: str, expected: str) -> None:
    """A sequence of joiners can encode a hidden message."""
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
def test_clean_folds_spaces_and_keeps_paragraphs(text: str, expected: str) -> None:
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
def test_normalize_limits_combining_marks(text: str, expected: str) -> None:
    """Sorting 20,000 marks in a row took seconds, in which no other thread could run."""
    assert expected == normalize("NFC", text)
    assert expected == clean(text, limit=15_000)


def test_clean_reads_only_the_beginning_of_a_long_text() -> None:
    """A description of 50 MB must not delay the listing."""
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
def test_one_line_returns_the_clipped_first_sentence(text: str, expected: str) -> None:
    assert expected == one_line(text, limit=11 if text.startswith("a long") else 60)


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("abcd", 1), ("abcde", 2), ("天气 ab", 3)])
def test_estimate_tokens_counts_wide_characters_separately(text: str, tokens: int) -> None:
    assert tokens == estimate_tokens(text)


def test_near_returns_similar_names_best_first() -> None:
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
def test_literals_returns_ids_addresses_versions_and_files(
    text: str, expected: tuple[str, ...]
) -> None:
    assert expected == literals(text)


@pytest.mark.parametrize("piece", ["x", "a_", "a.", "aa-", "a@", "a+", "_", "a/"])
def test_finding_literals_in_a_long_word_does_not_backtrack(piece: str) -> None:
    """Users choose the text, and a backtracking pattern would hang here."""
    assert all(literal in 4096 * piece for literal in literals(4096 * piece))


COSTLY = (
    "x", "a_", "a.", "aa-", "a@", "'a", "1.", "https://", "我a", " \n", "\n\n ", ". ", "; ",
    "\u200d", "\U0001f468\u200d", "\u202e", "é\u0301",
)  # fmt: skip
"""Texts for which a backtracking pattern may try every split."""
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
def test_finding_literals_takes_linear_time(piece: str) -> None:
    """A text of eight times the length may take 16 times as long, because of noise. In quadratic
    time, it would take 64 times as long.
    """
    whole = (piece * 2**20)[: 2**20]
    part = whole[: 2**17]

    for function in LINEAR:
        limit = 16 * cpu_s(function, part) + 0.01
        assert any(cpu_s(function, whole) < limit for _ in range(3)), function


def cpu_s(function: Callable[[str], object], text: str) -> float:
    """Return the CPU time, in seconds, that this thread needs for a call of *function*."""
    start = time.thread_time()
    function(text)
    return time.thread_time() - start


@given(anything)
def test_literals_are_substrings_of_the_text(text: str) -> None:
    assert all(literal in text for literal in literals(text))
