from __future__ import annotations

import pytest

from gateway.errors import EmbeddingError
from gateway.gateway import Gateway
from gateway.options import Options, SearchOptions
from gateway.plugins.quality import EvalRequest, RequestSet, TokenCounter, evaluate, hold_out
from gateway.testing import HashingEmbedder
from gateway.types import Access, Caller, SearchResult, ToolDefinition
from tests.conftest import OpenGateway
from tests.fakes import ListSource, tool
from tests.plugins.quality.conftest import Evaluate


def test_evaluation_counts_found_and_missed_tools(run: Evaluate) -> None:
    report = run(
        {
            "open invoices of a customer": "list_invoices",
            "get an invoice and pay it from the account": "get_invoice pay_invoice",
            "weather forecast": "play_music",
        }
    )
    found, both, missed = report.outcomes

    assert (("shelf/list_invoices",), (1,), False) == (found.tools, found.places, found.missed)
    assert {"shelf/get_invoice", "shelf/pay_invoice"} == set(both.tools)
    assert 1.0 == both.figures["complete@10"]
    assert (True, "shelf/get_weather") == (missed.missed, missed.found[0])
    assert pytest.approx(2 / 3) == report.summary.figures["hit@1"]
    assert pytest.approx(2 / 3) == report.summary.figures["recall@5"]
    assert (3, 0) == (report.summary.requests, report.summary.unanswerable)


def test_report_lists_missed_tools_first_with_higher_ranked_tools(run: Evaluate) -> None:
    report = run({"weather forecast": "play_music", "a flight": "book_flight"})
    worst, fine = report.tools
    (pair,) = (pair for pair in report.pairs if pair.wanted == "shelf/play_music")

    assert ("shelf/play_music", False, None) == (worst.id, worst.findable, worst.median_place)
    assert {"shelf/get_weather": 1} == worst.outranked_by
    assert ("forecast", "weather") == worst.missing_words
    assert ("shelf/book_flight", True, 0) == (fine.id, fine.findable, len(fine.missing_words))
    assert ("shelf/get_weather", False) == (pair.first, pair.are_twins)
    assert 10 == len(report.untested)


def test_tool_ranked_beyond_the_limit_is_missed_but_has_a_rank(open_gateway: OpenGateway) -> None:
    """The ranks beyond the limit come from a second, deeper search."""
    names = [f"read_{word}" for word in ("a", "b", "c", "d", "e", "f", "g")]
    tools = [tool(name, "Read the page of a book.") for name in names]
    gateway = open_gateway(tools)
    report = gateway.bridge.call(
        lambda: evaluate(
            gateway,
            RequestSet(requests=(EvalRequest(text="page of a book", wanted=(("shelf/read_g",),)),)),
        )
    )
    (outcome,) = report.outcomes

    assert (5, True, (7,)) == (report.limit, outcome.missed, outcome.places)
    assert (0.0, 1.0) == (outcome.figures["recall@5"], outcome.figures["recall@10"])
    assert 5 == len(report.tools[0].outranked_by)


def test_twin_of_a_wanted_tool_counts_as_found_and_is_reported(
    open_gateway: OpenGateway, run: Evaluate
) -> None:
    gateway = open_gateway([tool("play_music", "Play a song on the speakers.")])
    gateway.add_source(ListSource("other", [tool("music", "Plays songs on the speakers.")]))

    report = run({"play": "play_music", "music": "play_music"}, on=gateway)

    assert 1.0 == report.summary.figures["hit@1"]
    assert [True] == [pair.are_twins for pair in report.pairs]


def test_accepted_request_that_no_tool_serves_is_a_false_accept(
    run: Evaluate, gateway: Gateway
) -> None:
    tools = gateway.bridge.call(gateway.list_tools)
    request = EvalRequest(text="translate a text", wanted=(("shelf/translate_text",),))
    (held_out,) = hold_out([request], tools, count=1)

    report = run({"repair my bicycle": "", "a song": "play_music"}, held_out)
    nothing, song, out = report.outcomes

    assert {"shelf/translate_text"}.isdisjoint(out.found)
    assert (False, True) == (nothing.accepted, song.accepted)
    assert (3, 2) == (report.summary.requests, report.summary.unanswerable)
    assert out.accepted / 2 == report.summary.figures["false_accepts"]
    assert 0.0 == report.summary.figures["false_rejects"]


def test_ordered_request_checks_the_suggested_next_step(run: Evaluate) -> None:
    steps = (("search_flights",), ("book_flight",))
    forth = EvalRequest(text="a flight", wanted=steps, ordered=True)
    back = EvalRequest(text="a flight", wanted=(("book_flight",), ("play_music",)), ordered=True)
    report = run({"a song": "play_music"}, forth, back)

    assert [None, True, False] == [outcome.follows for outcome in report.outcomes]
    assert 0.5 == report.summary.figures["next@5"]


def test_report_has_figures_by_source_and_language(run: Evaluate) -> None:
    generated = EvalRequest(
        text="weather", wanted=(("play_music",),), source="rules", language="en"
    )
    report = run({"a song": "play_music"}, generated)

    assert [("rules", 0.0), ("user", 1.0)] == [
        (name, summary.figures["hit@1"]) for name, summary in report.by_source.items()
    ]
    assert ["en", "und"] == [*report.by_language]
    assert {} == report.outcomes[1].missing_words


def test_removed_tool_is_missed_and_reported_as_unknown(gateway: Gateway) -> None:
    """Otherwise an unattended agent would fail silently."""
    requests = RequestSet(requests=(EvalRequest(text="a song", wanted=(("shelf/sing",),)),))
    report = gateway.bridge.call(lambda: evaluate(gateway, requests))

    assert (("shelf/sing",), True) == (report.unknown, report.outcomes[0].missed)


def test_evaluation_searches_as_the_caller(
    open_gateway: OpenGateway, catalog: tuple[ToolDefinition, ...]
) -> None:
    gateway = open_gateway(catalog)
    secret = tool("open_safe", "Open the safe.")
    gateway.add_source(ListSource("safe", [secret]), access=Access(scopes=frozenset({"boss"})))
    requests = RequestSet(
        requests=(EvalRequest(text="open the safe", wanted=(("safe/open_safe",),)),)
    )
    boss = Caller(scopes=frozenset({"boss"}))

    hidden = gateway.bridge.call(lambda: evaluate(gateway, requests))
    permitted_report = gateway.bridge.call(lambda: evaluate(gateway, requests, caller=boss))

    assert (12, 13) == (len(hidden.catalog), len(permitted_report.catalog))
    assert (0.0, 1.0) == (
        hidden.summary.figures["hit@1"],
        permitted_report.summary.figures["hit@1"],
    )


def test_report_computes_the_break_even_of_tokens(gateway: Gateway) -> None:
    """Nine searches of 60 + 40 tokens use up the saved 1000 - 100 tokens."""

    def count(result: SearchResult) -> tuple[int, int]:
        assert result.matches
        return 60, 40

    requests = RequestSet(requests=(EvalRequest(text="a song", wanted=(("shelf/play_music",),)),))
    tokens = TokenCounter(catalog=1000, fixed=100, count=count)
    cost = gateway.bridge.call(lambda: evaluate(gateway, requests, tokens=tokens)).cost

    assert cost is not None
    assert (60, 60, 40, 9) == (cost.answer_p50, cost.answer_p95, cost.schemas_p50, cost.break_even)


def test_evaluation_reports_progress(
    open_gateway: OpenGateway, catalog: tuple[ToolDefinition, ...]
) -> None:
    """The number of concurrent searches is also the size of an embedding batch."""
    gateway = open_gateway(catalog, strategy="auto", embedder=HashingEmbedder())
    requests = tuple(EvalRequest(text=f"song number {number}") for number in range(40))
    told: list[tuple[str, int, int]] = []

    report = gateway.bridge.call(
        lambda: evaluate(
            gateway, RequestSet(requests=requests), progress=lambda *each: told.append(each)
        )
    )

    assert 0 == report.degraded
    assert [("requests", number, 40) for number in (0, 8, 16, 24, 32, 40)] == told


def test_report_counts_searches_without_vectors(
    open_gateway: OpenGateway, catalog: tuple[ToolDefinition, ...]
) -> None:
    """Figures without vectors are not those of a healthy gateway."""
    embedder = HashingEmbedder()
    gateway = open_gateway(
        catalog, strategy="auto", embedder=embedder, options=Options(search=SearchOptions(limit=3))
    )
    gateway.bridge.call(gateway.report)
    embedder.fail_with = EmbeddingError("down")
    requests = RequestSet(requests=(EvalRequest(text="a song", wanted=(("shelf/play_music",),)),))

    report = gateway.bridge.call(lambda: evaluate(gateway, requests))

    assert (1, 3) == (report.degraded, report.limit)
