"""The offline spelling pass: what is mended, and what nobody may touch."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.options import SearchOptions
from gateway.plugins.spelling import (
    COMMON,
    CatalogCorrector,
    CatalogWords,
    SpellingCorrector,
    common_words,
    find_word_lists,
    likely_languages,
    word_list,
)
from gateway.search import Correction, Search
from gateway.testing import HashingEmbedder
from graphs import BM25Index
from tests.core.search.conftest import run, snapshot_of
from tests.fakes import codes, entity, plain_embed, tool

CASES = Path(__file__).parents[2] / "cases" / "spelling.md"
RIGHT = CASES.with_name("languages.txt")
TEXTS = (
    "get the weather forecast of a city",
    "send an email to somebody",
    "book a flight between two airports",
    "list the open invoices of a customer",
)


def index(*texts: str) -> BM25Index:
    return BM25Index.build([{"text": text} for text in texts or TEXTS], weights={"text": 1.0})


def rows() -> list[tuple[str, str]]:
    lines = CASES.read_text("utf-8").splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if "|" in line]
    return [(asked, mended) for asked, mended, _ in cells[2:]]


def right_requests() -> list[tuple[str, str]]:
    lines = RIGHT.read_text("utf-8").splitlines()
    return [(line[:2], line[3:]) for line in lines if not line.startswith("#")]


@pytest.fixture(scope="module")
def correct() -> CatalogCorrector:
    return CatalogCorrector(CatalogWords(postings=index()), find_word_lists())


@pytest.mark.parametrize(("query", "mended"), rows())
def test_a_query_is_mended_as_the_case_says(
    correct: CatalogCorrector, query: str, mended: str
) -> None:
    """In many languages."""
    assert mended == correct.correct(query).text


def test_what_was_changed_is_told(correct: CatalogCorrector) -> None:
    """A person can see what was done to the words."""
    found = correct.correct("show the weahter and the forcast")

    assert (("weahter", "weather"), ("forcast", "forecast")) == found.changed
    assert "weahter → weather, forcast → forecast" == found.summary


def test_without_word_lists_the_catalog_mends() -> None:
    """The core has no lists of languages: only long words, and only to words of the catalog."""
    corrector = CatalogCorrector(CatalogWords(postings=index()))

    assert "weather wnat invoices" == corrector.correct("weahter wnat invocies").text


def test_a_language_without_a_list_mends_from_the_catalog(tmp_path: Path) -> None:
    """A folder of another format, or of none, is no list and no error."""
    with gzip.open(tmp_path / "large_en.msgpack.gz", "wb") as file:
        file.write(msgpack.packb([{"format": "cB", "version": 99}, ["weather"]]))

    assert {} == word_list(tmp_path, "en").costs
    assert (
        "the weather"
        == CatalogCorrector(CatalogWords(postings=index()), tmp_path).correct("the weahter").text
    )


def test_the_head_of_a_list_costs_no_more_of_it(tmp_path: Path) -> None:
    """Its rest is not read: here it is not even there."""
    rest = [[f"{number:x}" * 9] for number in range(60_000)]
    path = tmp_path / "large_en.msgpack.gz"
    with gzip.open(path, "wb") as file:
        file.write(msgpack.packb([{"format": "cB", "version": 1}, *([["the"]] * COMMON), *rest]))
    path.write_bytes(path.read_bytes()[:-1000])

    assert {"the"} == common_words(tmp_path, "en")
    with pytest.raises(EOFError):
        word_list(tmp_path, "en")


def test_an_empty_catalog_mends_by_the_language() -> None:
    """No word of a catalog is needed to know English."""
    empty = BM25Index.build([], weights={"text": 1.0})

    assert (
        "the weather of today"
        == SpellingCorrector(find_word_lists())(empty, "the weahter of today").text
    )


def test_the_words_of_the_current_catalog_are_used() -> None:
    """Another snapshot, other words."""
    mending = SpellingCorrector(None)

    assert "frobnicate" == mending(index("frobnicate the gizmo"), "frobnciate").text
    assert "frobnciate" == mending(index(), "frobnciate").text


def test_the_first_language_of_a_script_wins_when_it_is_near() -> None:
    """``in`` alone says nothing: it is a word of half of Europe."""
    heads = {"in": {"en": 220, "sl": 250}, "on": {"fi": 250}}

    assert ["en", "sl"] == likely_languages(heads, {"in": 1}, rather="en")
    assert ["sl", "en"] == likely_languages(heads, {"in": 1})
    assert [] == likely_languages(heads, {"zzz": 1}, rather="en")


@given(st.text(max_size=80))
@settings(max_examples=150, deadline=None)
def test_any_text_is_mended_without_an_error(correct: CatalogCorrector, text: str) -> None:
    """Lone surrogates, marks alone, every script: no change, no change told."""
    found = correct.correct(text)

    assert (found.text != text) == any(before != after for before, after in found.changed)


_ENGLISH = ("please", "show", "weather", "tomorrow", "between", "customer", "the", "of", "send")


@given(st.lists(st.sampled_from(_ENGLISH), min_size=1, max_size=12))
@settings(deadline=None)
def test_words_of_the_dictionary_stay(correct: CatalogCorrector, words: list[str]) -> None:
    """A clean query never loses."""
    text = " ".join(words)

    assert text == correct.correct(text).text


@given(
    st.from_regex(
        re.compile(r"[a-z]{3,8}[0-9]{1,3}|[a-z]{3,6}_[a-z]{3,6}|[a-z]{4,8}\.json"), fullmatch=True
    )
)
@settings(max_examples=60, deadline=None)
def test_literals_stay(correct: CatalogCorrector, literal: str) -> None:
    """Ids, names in code and files are somebody's, however they are spelt."""
    assert literal in correct.correct(f"please show the weahter of {literal} today").text


@given(st.lists(st.sampled_from(("weahter", "forcast", "invocies", "shwo", "the")), max_size=3))
@settings(max_examples=40, deadline=None)
def test_what_is_mended_stays_mended(correct: CatalogCorrector, words: list[str]) -> None:
    """A second pass finds nothing more to do."""
    once = correct.correct("please show me the " + " ".join(words)).text

    assert once == correct.correct(once).text


def searched(*, spelling: bool) -> Search:
    correct = SpellingCorrector(None) if spelling else None
    embed = plain_embed(HashingEmbedder())
    return Search(options=SearchOptions(), strategy="auto", embed=embed, correct=correct)


def test_a_search_sees_both_spellings_and_says_so() -> None:
    """Vectors get the query as typed and as meant; the result keeps what was typed."""
    tools = [entity(tool("get_weather", "Tell the weather forecast.")), entity(tool("pay", "Pay."))]
    snapshot = snapshot_of(tools, HashingEmbedder())

    found = run(searched(spelling=True), snapshot, "weahter forecats")
    plain = run(searched(spelling=False), snapshot, "weahter forecats")

    assert ["query_mended"] == [code for code in codes(found) if code.startswith("query")]
    assert ("weahter forecats",) == found.normalized
    assert (1, 2) == (plain.counts.embedded_texts, found.counts.embedded_texts)
    assert found.matches[0].confidence > plain.matches[0].confidence


def test_a_clean_query_is_not_asked_twice() -> None:
    """What is spelt well costs one text and leaves no note."""
    snapshot = snapshot_of([entity(tool("get_weather", "Tell the weather."))], HashingEmbedder())

    found = run(searched(spelling=True), snapshot, "weather")

    assert 1 == found.counts.embedded_texts
    assert "query_mended" not in codes(found)
    assert Correction(text="weather") == SpellingCorrector(None)(snapshot.lexical, "weather")


@pytest.mark.parametrize("language", sorted({language for language, _ in right_requests()}))
def test_a_right_word_of_another_language_stays(correct: CatalogCorrector, language: str) -> None:
    """Inflected and compound words are in no list of common words, and are right all the same."""
    asked = [text for each, text in right_requests() if each == language]

    assert asked == [correct.correct(text).text for text in asked]


def test_a_compound_is_split_in_the_language_of_the_catalog_alone() -> None:
    """A German catalog mends German requests in full."""
    german = index(
        "Lege einen Termin mit dem Kunden an und sage, wann er ist und wo",
        "Suche eine Datei, die noch nicht gespeichert ist",
    )
    at_home = CatalogCorrector(CatalogWords(postings=german), find_word_lists())
    abroad = CatalogCorrector(CatalogWords(postings=index()), find_word_lists())
    asked = "wann ist der Terminmit dem Kunden"

    assert "wann ist der Termin mit dem Kunden" == at_home.correct(asked).text
    assert asked == abroad.correct(asked).text
