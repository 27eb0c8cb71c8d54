"""What a caller says -> a checked request; long requests -> clauses."""

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


def asked(
    query: str | None = None,
    *,
    queries: tuple[str, ...] = (),
    context: dict[str, object] | None = None,
    context_summary: str = "",
    limit: int | None = None,
) -> tuple[SearchRequest, tuple[Diagnostic, ...]]:
    asked = SearchArguments(
        query, queries=queries, context=context, context_summary=context_summary, limit=limit
    )
    return prepare(asked, OPTIONS)


@pytest.mark.parametrize(("limit", "given_limit"), [(None, 5), (1, 1), (50, 50), (51, 50)])
def test_limits_are_five_and_fifty(limit: int | None, given_limit: int) -> None:
    """As the original had them."""
    request, notes = asked("a", limit=limit)

    assert given_limit == request.limit
    assert (limit == 51) == bool(notes)


def test_blank_and_repeated_queries_are_dropped() -> None:
    """A model that repeats itself gets no second quota."""
    request, _ = asked(queries=("a", " ", "b", " a "))

    assert ("a", "b") == request.queries


def test_a_context_is_flattened_and_joined_with_its_summary() -> None:
    """Keys are words too; nothing is None."""
    request, notes = asked(
        "q", context={"a": {"b": [1, None, "x"]}, "c": True}, context_summary="why\u200b"
    )

    assert "why; a b 1; a b x; c True" == request.context
    assert () == notes


def deep(levels: int) -> dict[str, object]:
    whole: dict[str, object] = {}
    for _ in range(levels):
        whole = {"k": whole}
    return whole


@pytest.mark.parametrize("context", [{"a": {1}}, {"a": b""}, deep(100_000)])
def test_a_context_that_is_not_json_is_left_out_and_told(context: dict[str, object]) -> None:
    """Diagnostics, not exceptions."""
    request, notes = asked("q", context=context)

    assert "" == request.context
    assert ["context_ignored"] == [note.code for note in notes]


@given(st.lists(st.text(max_size=100), max_size=8), st.text(max_size=100))
def test_whatever_is_said_fits_the_caps(queries: list[str], summary: str) -> None:
    """An embedder's request stays small."""
    request, notes = asked(queries=tuple(queries), context_summary=summary)

    assert all(0 < len(query) <= 64 for query in request.queries)
    assert len(request.context) <= 64
    assert sum(len(query) > 64 for query in queries) == len(notes)


@pytest.mark.parametrize("piece", COSTLY)
async def test_a_search_costs_no_more_than_what_it_reads_of_a_megabyte(
    open_gateway: OpenGateway, piece: str
) -> None:
    """As query, context and summary: four times the CPU of 4,096 characters at most.

    The least of three: other threads of this process may work meanwhile.
    """
    gateway = open_gateway(definitions(100))
    times = []
    for number, size in enumerate((2**12, 2**12, 2**20, 2**20, 2**20)):
        # Another text each time, or the result would be in the cache.
        text = f"{number} {piece * size}"[:size]
        start = time.process_time()
        await gateway.search(text, context={"a": text}, context_summary=text)
        times.append(time.process_time() - start)

    # The first search builds the index.
    assert min(times[2:]) < 4 * times[1] + 0.02


def test_a_short_request_has_no_clauses() -> None:
    """It is ranked whole."""
    assert () == split_clauses("Pay the invoice. Then book a flight.")


@pytest.mark.parametrize(
    "joint", [". ", "\n- ", "; ", ", and ", " and then ", ", und ", "。", " — "]
)
def test_a_long_request_is_split_where_its_steps_end(joint: str) -> None:
    """In several languages and forms of lists."""
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
def test_without_spaces_two_letters_count_as_a_word(text: str, parts: tuple[str, ...]) -> None:
    """A long request in Chinese is long, though it holds no space."""
    assert parts == split_clauses(text)


@pytest.mark.parametrize(
    "inside", ["PM2.5 and 3.5% of it", "notes.txt", "README.MD", "api.example.com", "v1.2", "1..5"]
)
def test_a_full_stop_inside_a_word_ends_nothing(inside: str) -> None:
    """Half a number is no part of a request."""
    first = f"Tell me whatever there is to be known about {inside} for the last two weeks"
    second = "Send all of it to the people of my team this evening"

    assert (first, second) == split_clauses(f"{first}. {second}.")
    assert (first, second) == split_clauses(f"{first}... {second}")


def test_a_long_sentence_without_joints_has_no_clauses() -> None:
    """One part is the whole."""
    assert () == split_clauses("word " * 40)


@given(st.text(alphabet="ab .;\n-", max_size=400))
def test_clauses_are_few_distinct_and_long_enough(text: str) -> None:
    """Each costs an embedding."""
    found = split_clauses(text)

    assert len(found) == len(set(found)) <= MAX_CLAUSES
    assert all(len(each.split()) >= MIN_CLAUSE_WORDS for each in found)
    assert not found or len(text.split()) > LONG_REQUEST_WORDS


def test_a_query_has_all_its_forms() -> None:
    """Rules 6 and 7: both texts for vectors, the English one for the graph, each with context."""
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
def test_a_rewrite_with_few_words_of_the_query_contradicts(
    query: str, english: str, *, contradicts: bool
) -> None:
    """More than half must be its own; literals that were put back are no words."""
    assert contradicts == Query(text=query, english=english).compare_words().contradicts


def test_a_corrected_clause_counts_once() -> None:
    """Clauses are counted as written or as corrected, not both; both are embedded."""
    misspelt = LONG.replace("convert", "convrt")

    query = Query(text=misspelt, corrected=LONG).split()

    assert 5 == query.clause_count
    assert {*split_clauses(misspelt), *split_clauses(LONG)} == set(query.clauses)
    assert (split_clauses(LONG), 5) == (Query(text=LONG).split().clauses, 5)
    assert ((), 0) == (
        Query(text="short").split().clauses,
        Query(text="short").split().clause_count,
    )
