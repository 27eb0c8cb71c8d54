"""Offline spelling correction: corrected words and words that must not change."""

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
CORRECT_REQUESTS = CASES.with_name("languages.txt")
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
    return [(typed, expected) for typed, expected, _ in cells[2:]]


def correct_requests() -> list[tuple[str, str]]:
    lines = CORRECT_REQUESTS.read_text("utf-8").splitlines()
    return [(line[:2], line[3:]) for line in lines if not line.startswith("#")]


@pytest.fixture(scope="module")
def correct() -> CatalogCorrector:
    return CatalogCorrector(CatalogWords(postings=index()), find_word_lists())


@pytest.mark.parametrize(("query", "expected"), rows())
def test_each_query_of_the_case_file_is_corrected_as_expected(
    correct: CatalogCorrector, query: str, expected: str
) -> None:
    assert expected == correct.correct(query).text


def test_correction_lists_the_changed_words(correct: CatalogCorrector) -> None:
    correction = correct.correct("show the weahter and the forcast")

    assert (("weahter", "weather"), ("forcast", "forecast")) == correction.changed
    assert "weahter → weather, forcast → forecast" == correction.summary


def test_long_words_are_corrected_by_catalog_words_without_word_lists() -> None:
    corrector = CatalogCorrector(CatalogWords(postings=index()))

    assert "weather wnat invoices" == corrector.correct("weahter wnat invocies").text


def test_unreadable_word_list_is_ignored(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "large_en.msgpack.gz", "wb") as file:
        file.write(msgpack.packb([{"format": "cB", "version": 99}, ["weather"]]))

    assert {} == word_list(tmp_path, "en").costs
    assert (
        "the weather"
        == CatalogCorrector(CatalogWords(postings=index()), tmp_path).correct("the weahter").text
    )


def test_query_of_common_words_reads_only_the_start_of_a_word_list(tmp_path: Path) -> None:
    """The rest of the file is cut off here."""
    rare_rows = [[f"{number:x}" * 9] for number in range(60_000)]
    path = tmp_path / "large_en.msgpack.gz"
    with gzip.open(path, "wb") as file:
        file.write(
            msgpack.packb([{"format": "cB", "version": 1}, *([["the"]] * COMMON), *rare_rows])
        )
    path.write_bytes(path.read_bytes()[:-1000])

    assert {"the"} == common_words(tmp_path, "en")
    with pytest.raises(EOFError):
        word_list(tmp_path, "en")


def test_word_list_corrects_without_a_catalog() -> None:
    empty = BM25Index.build([], weights={"text": 1.0})

    assert (
        "the weather of today"
        == SpellingCorrector(find_word_lists())(empty, "the weahter of today").text
    )


def test_corrector_uses_the_words_of_the_current_index() -> None:
    spelling = SpellingCorrector(None)

    assert "frobnicate" == spelling(index("frobnicate the gizmo"), "frobnciate").text
    assert "frobnciate" == spelling(index(), "frobnciate").text


def test_first_language_of_a_script_is_preferred_if_nearly_as_likely() -> None:
    """ "in" is a word of many European languages."""
    heads = {"in": {"en": 220, "sl": 250}, "on": {"fi": 250}}

    assert ["en", "sl"] == likely_languages(heads, {"in": 1}, rather="en")
    assert ["sl", "en"] == likely_languages(heads, {"in": 1})
    assert [] == likely_languages(heads, {"zzz": 1}, rather="en")


@given(st.text(max_size=80))
@settings(max_examples=150, deadline=None)
def test_any_text_is_corrected_without_an_error(correct: CatalogCorrector, text: str) -> None:
    """The texts contain lone surrogates, combining marks and all scripts."""
    correction = correct.correct(text)

    assert (correction.text != text) == any(before != after for before, after in correction.changed)


_ENGLISH = ("please", "show", "weather", "tomorrow", "between", "customer", "the", "of", "send")


@given(st.lists(st.sampled_from(_ENGLISH), min_size=1, max_size=12))
@settings(deadline=None)
def test_dictionary_words_are_not_changed(correct: CatalogCorrector, words: list[str]) -> None:
    text = " ".join(words)

    assert text == correct.correct(text).text


@given(
    st.from_regex(
        re.compile(r"[a-z]{3,8}[0-9]{1,3}|[a-z]{3,6}_[a-z]{3,6}|[a-z]{4,8}\.json"), fullmatch=True
    )
)
@settings(max_examples=60, deadline=None)
def test_literals_are_not_changed(correct: CatalogCorrector, literal: str) -> None:
    assert literal in correct.correct(f"please show the weahter of {literal} today").text


@given(st.lists(st.sampled_from(("weahter", "forcast", "invocies", "shwo", "the")), max_size=3))
@settings(max_examples=40, deadline=None)
def test_correcting_twice_changes_nothing_more(correct: CatalogCorrector, words: list[str]) -> None:
    once = correct.correct("please show me the " + " ".join(words)).text

    assert once == correct.correct(once).text


def search_with(*, spelling: bool) -> Search:
    correct = SpellingCorrector(None) if spelling else None
    embed = plain_embed(HashingEmbedder())
    return Search(options=SearchOptions(), strategy="auto", embed=embed, correct=correct)


def test_search_embeds_both_spellings_and_reports_the_correction() -> None:
    tools = [entity(tool("get_weather", "Tell the weather forecast.")), entity(tool("pay", "Pay."))]
    snapshot = snapshot_of(tools, HashingEmbedder())

    corrected = run(search_with(spelling=True), snapshot, "weahter forecats")
    plain = run(search_with(spelling=False), snapshot, "weahter forecats")

    assert ["query_mended"] == [code for code in codes(corrected) if code.startswith("query")]
    assert ("weahter forecats",) == corrected.normalized
    assert (1, 2) == (plain.counts.embedded_texts, corrected.counts.embedded_texts)
    assert corrected.matches[0].confidence > plain.matches[0].confidence


def test_correct_query_is_embedded_once() -> None:
    snapshot = snapshot_of([entity(tool("get_weather", "Tell the weather."))], HashingEmbedder())

    result = run(search_with(spelling=True), snapshot, "weather")

    assert 1 == result.counts.embedded_texts
    assert "query_mended" not in codes(result)
    assert Correction(text="weather") == SpellingCorrector(None)(snapshot.lexical, "weather")


@pytest.mark.parametrize("language", sorted({language for language, _ in correct_requests()}))
def test_correct_words_of_other_languages_are_not_changed(
    correct: CatalogCorrector, language: str
) -> None:
    """Inflected and compound words are missing from lists of common words."""
    requests = [text for code, text in correct_requests() if code == language]

    assert requests == [correct.correct(text).text for text in requests]


def test_compound_is_split_only_in_the_language_of_the_catalog() -> None:
    german = index(
        "Lege einen Termin mit dem Kunden an und sage, wann er ist und wo",
        "Suche eine Datei, die noch nicht gespeichert ist",
    )
    matching = CatalogCorrector(CatalogWords(postings=german), find_word_lists())
    corrector = CatalogCorrector(CatalogWords(postings=index()), find_word_lists())
    query = "wann ist der Terminmit dem Kunden"

    assert "wann ist der Termin mit dem Kunden" == matching.correct(query).text
    assert query == corrector.correct(query).text
