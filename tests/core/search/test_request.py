"""Checks of search arguments, and clauses of long requests."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.options import SearchOptions
from gateway.search import (
    LONG_REQUEST_WORDS,
    MAX_CLAUSES,
    MIN_CLAUSE_WORDS,
    Query,
    SearchArguments,
    prepare,
    split_clauses,
)
from gateway.types import Diagnostic, SearchRequest
from tests.conftest import OpenGateway
from tests.core.runtime.test_text import COSTLY
from tests.fakes import definitions

OPTIONS = SearchOptions(max_query_chars=64)
LONG = (
    "Please do all of these for me today. convert the length of the reactor. convert the weight of "
    "the catalyst. note the comment of the author. convert the volume of the tank"
)


def prepare_request(
    query: str | None = None,
    *,
    queries: tuple[str, ...] = (),
    context: dict[str, object] | None = None,
    context_summary: str = "",
    limit: int | None = None,
) -> tuple[SearchRequest, tuple[Diagnostic, ...]]:
    arguments = SearchArguments(
        query, queries=queries, context=context, context_summary=context_summary, limit=limit
    )
    return prepare(arguments, OPTIONS)


@pytest.mark.parametrize(("limit", "given_limit"), [(None, 5), (1, 1), (50, 50), (51, 50)])
def test_limit_is_five_by_default_and_at_most_fifty(limit: int | None, given_limit: int) -> None:
    request, notes = prepare_request("a", limit=limit)

    assert given_limit == request.limit
    assert (limit == 51) == bool(notes)


def test_blank_and_repeated_queries_are_dropped() -> None:
    """Each query gets an equal share of the matches, so a repeated one must not get two."""
    request, _ = prepare_request(queries=("a", " ", "b", " a "))

    assert ("a", "b") == request.queries


def test_search_context_is_flattened_and_joined_with_its_summary() -> None:
    """Keys of the context become words; None values are dropped."""
    request, notes = prepare_request(
        "q", context={"a": {"b": [1, None, "x"]}, "c": True}, context_summary="why\u200b"
    )

    assert "why; a b 1; a b x; c True" == request.context
    assert () == notes


def nested_context(levels: int) -> dict[str, object]:
    context: dict[str, object] = {}
    for _ in range(levels):
        context = {"k": context}
    return context


@pytest.mark.parametrize("context", [{"a": {1}}, {"a": b""}, nested_context(100_000)])
def test_search_context_that_is_not_json_is_ignored_with_a_diagnostic(
    context: dict[str, object],
) -> None:
    request, notes = prepare_request("q", context=context)

    assert "" == request.context
    assert ["context_ignored"] == [note.code for note in notes]


@given(st.lists(st.text(max_size=100), max_size=8), st.text(max_size=100))
def test_cleaned_request_respects_the_maximum_lengths(queries: list[str], summary: str) -> None:
    request, notes = prepare_request(queries=tuple(queries), context_summary=summary)

    assert all(0 < len(query) <= 64 for query in request.queries)
    assert len(request.context) <= 64
    assert sum(len(query) > 64 for query in queries) == len(notes)


@pytest.mark.parametrize("piece", COSTLY)
async def test_search_of_a_long_text_costs_no_more_than_of_its_first_part(
    open_gateway: OpenGateway, piece: str
) -> None:
    """A megabyte as query, context and summary takes at most four times the CPU time of 4,096
    characters.

    The minimum of three runs is compared, because other threads may use the CPU.
    """
    gateway = open_gateway(definitions(100))
    times = []
    for number, size in enumerate((2**12, 2**12, 2**20, 2**20, 2**20)):
        # Use a different text each time, so that the result is not cached.
        text = f"{number} {piece * size}"[:size]
        start = time.process_time()
        await gateway.search(text, context={"a": text}, context_summary=text)
        times.append(time.process_time() - start)

    # The first search builds the index, so the second one is the reference.
    assert min(times[2:]) < 4 * times[1] + 0.02


def test_short_request_has_no_clauses() -> None:
    assert () == split_clauses("Pay the invoice. Then book a flight.")


@pytest.mark.parametrize(
    "joint", [". ", "\n- ", "; ", ", and ", " and then ", ", und ", "。", " — "]
)
def test_long_request_is_split_into_a_clause_for_each_step(joint: str) -> None:
    first = "find " + "all the very old " * 4 + "invoices of the customer"
    second = "send " + "them to the new " * 3 + "accountant by mail"

    head, tail = split_clauses(first + joint + second)

    assert (first, True) == (head, tail.endswith(second))


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (
            "请帮我查询北京明天的天气预报和空气质量。然后预订一张周五从上海飞往北京的机票。另外提醒我带上护照和雨伞出门。",
            (
                "请帮我查询北京明天的天气预报和空气质量",
                "然后预订一张周五从上海飞往北京的机票",
                "另外提醒我带上护照和雨伞出门",
            ),
        ),
        ("查询天气。预订机票。", ()),
        (
            "明日の東京の天気予報を教えてください。それから金曜日の大阪行きの新幹線のIDをABC予約システムで確認してください。",
            (
                "明日の東京の天気予報を教えてください",
                "それから金曜日の大阪行きの新幹線のIDをABC予約システムで確認してください",
            ),
        ),
        ("명" * 200 + ". " + "명" * 200, ()),
    ],
    ids=["zh-long", "zh-short", "ja-long", "ko-has-spaces"],
)
def test_two_letters_count_as_a_word_in_scripts_without_spaces(
    text: str, parts: tuple[str, ...]
) -> None:
    assert parts == split_clauses(text)


@pytest.mark.parametrize(
    "inside", ["PM2.5 and 3.5% of it", "notes.txt", "README.MD", "api.example.com", "v1.2", "1..5"]
)
def test_full_stop_inside_a_word_does_not_end_a_clause(inside: str) -> None:
    first = f"Tell me whatever there is to be known about {inside} for the last two weeks"
    second = "Send all of it to the people of my team this evening"

    assert (first, second) == split_clauses(f"{first}. {second}.")
    assert (first, second) == split_clauses(f"{first}... {second}")


def test_long_sentence_without_separators_has_no_clauses() -> None:
    assert () == split_clauses("word " * 40)


@given(st.text(alphabet="ab .;\n-", max_size=400))
def test_clauses_are_few_distinct_and_long_enough(text: str) -> None:
    """Their number is limited because each costs an embedding."""
    clauses = split_clauses(text)

    assert len(clauses) == len(set(clauses)) <= MAX_CLAUSES
    assert all(len(clause.split()) >= MIN_CLAUSE_WORDS for clause in clauses)
    assert not clauses or len(text.split()) > LONG_REQUEST_WORDS


def test_query_texts_contain_all_forms_of_the_query_with_the_context() -> None:
    """Rules 6 and 7: vectors use all forms, but the graph uses only the English one."""
    query = Query(text="лист", english="email", context="for Bob", clauses=("a b c",))

    assert ("лист. for Bob", "email. for Bob", "a b c") == query.texts_to_embed
    assert "email. for Bob" == query.graph_text
    assert ("лист", "email") == query.confidence_texts


@pytest.mark.parametrize(
    ("query", "english", "contradicts"),
    [
        ("please would you send e-mails to Bob", "send e-mail to Bob", False),
        ("sned an email", "sned an email", False),
        ("надіслати лист", "send email", True),
        ("send an e-mail", "delete everything", True),
        ("delete the file notes.txt", "delete everything notes.txt", True),
        ("pay invoice INV-2041", "INV-2041", True),
    ],
)
def test_rewrite_contradicts_if_few_of_its_words_are_in_the_query(
    query: str, english: str, *, contradicts: bool
) -> None:
    """More than half of the rewrite's words must be in the query. Literals do not count."""
    assert contradicts == Query(text=query, english=english).compare_words().contradicts


def test_clause_and_its_corrected_form_count_once() -> None:
    """Both forms are embedded. Only one counts, because the number of clauses changes weights."""
    misspelt = LONG.replace("convert", "convrt")

    query = Query(text=misspelt, corrected=LONG).split()

    assert 5 == query.clause_count
    assert {*split_clauses(misspelt), *split_clauses(LONG)} == set(query.clauses)
    assert (split_clauses(LONG), 5) == (Query(text=LONG).split().clauses, 5)
    assert ((), 0) == (
        Query(text="short").split().clauses,
        Query(text="short").split().clause_count,
    )
