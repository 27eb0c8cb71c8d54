"""Activity page: traces, filters and totals."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any, NamedTuple

import pytest
import pytest_asyncio
from mcp import Client
from playwright.async_api import expect

from gateway.gateway import Gateway
from gateway.options import Options
from gateway.serve.console import MAX_STREAMS, SpanRecord, SpanRing
from gateway.serve.console.activity import TraceFilter, select, timeline, totals, trees
from gateway.serve.http_options import HttpOptions
from gateway.serve.mcp_server import mcp_server
from tests.apps.serve.console.catalogs import HOSTILE, LONG, MARKUP, RIGHT_TO_LEFT, SMALL
from tests.apps.serve.console.conftest import Open, Serve, Served, check_access
from tests.apps.serve.console.test_access import READER, SECRET
from tests.apps.serve.console.test_pages import check_layout
from tests.apps.serve.console.test_spans import provider_of
from tests.conftest import OpenGateway
from tests.fakes import Shelf, tool

NOW = 10_000.0


def span(key: str, parent: str = "", **values: Any) -> SpanRecord:
    """Return a span of the trace `t` that starts at `NOW`."""
    plain: dict[str, Any] = {
        "trace": "t",
        "kind": "request",
        "name": key,
        "target": "",
        "server": "",
        "start": NOW,
        "ms": 1.0,
        "error": "",
        "attributes": {},
    }
    return SpanRecord(id=key, parent=parent, **(plain | values))


def failing_call() -> list[SpanRecord]:
    """Return the spans of a failed call with `call_tool`, in the order in which they end."""
    failed = {"error": "tool_error"}
    return [
        span("sent", "call", start=NOW + 3),
        span(
            "call", "meta", kind="call", target="get_time", server="clock", start=NOW + 2, **failed
        ),
        span("meta", "root", kind="meta_tool", target="call_tool", start=NOW + 1, **failed),
        span("root", "elsewhere", start=NOW, **failed),
    ]


def search(key: str, **values: Any) -> SpanRecord:
    return span(key, kind="search", target="auto", **values)


def test_trace_trees_are_ordered_newest_root_first() -> None:
    later = [span("call", "root", trace="u", start=NOW + 9), span("root", trace="u", start=NOW + 8)]
    result = [
        [(level, record.trace + " " + record.id) for level, record in tree]
        for tree in trees([*failing_call(), *later])
    ]

    assert [
        [(0, "u root"), (1, "u call")],
        [(0, "t root"), (1, "t meta"), (2, "t call"), (3, "t sent")],
    ] == result


def test_spans_without_their_parent_are_roots() -> None:
    first, second = trees([*failing_call()[:2], search("lone", start=NOW + 5)])

    assert ["lone"] == [record.id for _, record in first]
    assert [(0, "call"), (1, "sent")] == [(level, record.id) for level, record in second]


@pytest.mark.parametrize(
    ("wanted", "subjects"),
    [
        (TraceFilter(), ["quick", "call"]),
        (TraceFilter(kind="search"), ["quick"]),
        (TraceFilter(kind="request"), ["root"]),
        (TraceFilter(kind="build"), []),
        (TraceFilter(outcome="failed"), ["call"]),
        (TraceFilter(outcome="ok"), ["quick"]),
        (TraceFilter(kind="request", outcome="ok"), []),
        (TraceFilter(text="CLOCK"), ["call"]),
        (TraceFilter(text="Tool_Error", kind="meta_tool"), ["meta"]),
        (TraceFilter(minutes=1), ["quick"]),
    ],
)
def test_trace_is_represented_by_the_matching_span(
    wanted: TraceFilter, subjects: list[str]
) -> None:
    spans = [*failing_call(), search("quick", start=NOW + 100)]
    result = select(trees(spans), wanted, NOW + 120)

    assert subjects == [summary.span.id for summary, _ in result]


def test_trace_summary_counts_all_spans_of_the_trace() -> None:
    ((summary, tree),) = select(trees(failing_call()), TraceFilter(kind="call"), NOW)

    assert (4, 3, 4) == (summary.spans, summary.failed, len(tree))


def model(key: str, name: str, **usage: int) -> SpanRecord:
    tokens = {f"gen_ai.usage.{item.replace('__', '.')}": count for item, count in usage.items()}
    return span(key, kind="model", name=name, attributes=tokens)


def test_activity_totals_count_searches_calls_tokens_and_failures() -> None:
    """Spans that fail only because a child span failed are not counted as failed."""
    conversation = {"gateway.chat.turns": 3, "gateway.chat.saved_tokens": 900}
    hit, miss = {"gateway.cache.hit": True}, {"gateway.cache.hit": False}
    first = model("m1", "chat m", input_tokens=10, output_tokens=4, cache_read__input_tokens=6)
    second = model("m2", "chat m", input_tokens=20, output_tokens=5, reasoning__output_tokens=2)
    spans = [
        *failing_call(),
        *failing_call(),
        search("s1", attributes=hit, start=NOW - 5),
        search("s2", attributes=miss),
        search("s3", attributes={}, error="IndexFailedError"),
        *(first, second, model("m3", "embeddings e", input_tokens=7)),
        span("a", kind="conversation", attributes=conversation),
    ]
    result = totals(spans, NOW)

    assert (15, 5.0) == (result.spans, result.age_s)
    assert (3, 1 / 3, 2) == (result.searches, result.cached_share, result.calls)
    assert (3, 900) == (result.turns, result.saved_tokens)
    assert {
        "chat m": {"requests": 2, "input": 30, "cached": 6, "output": 9, "reasoning": 2},
        "embeddings e": {"requests": 1, "input": 7, "cached": 0, "output": 0, "reasoning": 0},
    } == result.models
    assert {"clock": {"tool_error": 2}, "search": {"IndexFailedError": 1}} == result.failures


def test_activity_totals_are_zero_without_spans() -> None:
    result = totals([], NOW)

    assert (0, 0.0, 0, None) == (result.spans, result.age_s, result.searches, result.cached_share)
    assert ({}, {}, []) == (result.models, result.failures, trees([]))


class Watched(NamedTuple):
    """A gateway whose spans are recorded, and its console."""

    gateway: Gateway
    served: Served
    ring: SpanRing

    async def work(self) -> None:
        """Search twice with the same query, and call two tools. One call fails."""
        for _ in range(2):
            await self.gateway.search("read an e-mail")
        await self.gateway.invoke("read_email")
        await self.gateway.invoke("fail")


@pytest_asyncio.fixture(loop_scope="session")
async def watched(open_gateway: OpenGateway, serve_console: Serve) -> AsyncIterator[Watched]:
    """Serve a gateway with a server ``mail``. One of its tools fails."""
    ring = SpanRing()
    gateway = open_gateway(tracer_provider=provider_of(ring))
    gateway.add_server("mail", server=Shelf((*SMALL, tool("fail"))).server)
    yield Watched(gateway, await serve_console(gateway, spans=ring), ring)
    # An open stream would delay the shutdown of the server.
    ring.shutdown()


async def test_activity_page_shows_traces_and_totals(watched: Watched) -> None:
    before = await watched.served.data("/activity")
    await watched.work()
    data = await watched.served.data("/activity")

    bar = [
        (
            item["span"]["kind"],
            item["span"]["target"],
            item["span"]["server"],
            item["span"]["error"],
        )
        for item in data["traces"][:4]
    ]
    assert ([], True) == (before["traces"], before["is_recorded"])
    assert [
        ("call", "fail", "mail", "tool_error"),
        ("call", "read_email", "mail", ""),
        ("search", "graph", "", ""),
        ("search", "graph", "", ""),
    ] == bar
    assert (2, 0.5, 2) == tuple(
        data["totals"][key] for key in ("searches", "cached_share", "calls")
    )
    assert {"mail": {"tool_error": 1}} == data["totals"]["failures"]
    assert 0 < data["definition_tokens"] < data["catalog_tokens"] + 1000


async def test_activity_filter_applies_to_traces_and_export(watched: Watched) -> None:
    await watched.work()
    filters = {"kind": "call", "outcome": "failed", "text": "MAIL", "minutes": "5"}
    data = await watched.served.data("/activity", **filters)
    async with watched.served.client() as client:
        export = await client.get(data["export"].removeprefix("/console"))
        page = await client.get("/activity", params=filters)

    lines = [json.loads(line) for line in export.text.splitlines()]
    assert ["fail"] == [trace["span"]["target"] for trace in data["traces"]]
    assert 2 == data["totals"]["searches"]
    assert {data["traces"][0]["span"]["trace"]} == {line["trace"] for line in lines}
    assert "attachment" in export.headers["content-disposition"]
    assert '<option value="failed" selected>' in page.text


def test_span_bar_ends_within_its_trace() -> None:
    """The width of 1.38 ms in 1.38 ms, `100 * ms / ms`, is more than 100 because of rounding."""
    (bar,) = timeline([span("root", ms=1.38)]).spans

    assert (0, 100) == (bar.offset, bar.width)


async def test_trace_page_shows_the_tree_of_spans(watched: Watched) -> None:
    # Builds the index first. Otherwise the build would be a span of the call.
    await watched.gateway.report()
    async with Client(mcp_server(watched.gateway)) as client:
        await client.call_tool("call_tool", {"name": "read_email"})
    (summary,) = (await watched.served.data("/activity", kind="call"))["traces"]
    data = await watched.served.data(f"/activity/{summary['span']['trace']}")
    async with watched.served.client() as client:
        missing = await client.get("/activity/0af7651916cd43dd8448eb211c80319c")

    assert [(0, "meta_tool"), (1, "call")] == [
        (span["level"], span["span"]["kind"]) for span in data["spans"]
    ]
    assert all(0 <= span["offset"] <= 100 >= span["width"] > 0 for span in data["spans"])
    assert 404 == missing.status_code


async def test_trace_page_shows_queries_only_if_the_host_captures_content(
    open_gateway: OpenGateway, serve_console: Serve
) -> None:
    pages = []
    for captured in (False, True):
        ring, options = SpanRing(), Options(capture_content=captured)
        gateway = open_gateway(SMALL, tracer_provider=provider_of(ring), options=options)
        served = await serve_console(gateway, spans=ring)
        await gateway.search(f"mail {MARKUP}")
        trace = next(span.trace for span in ring.spans if span.kind == "search")
        async with served.client() as client:
            pages.append((await client.get(f"/activity/{trace}")).text)

    assert ["onerror" in page for page in pages] == [False, True]
    assert MARKUP not in pages[1]


async def test_activity_page_requires_the_metrics_scope(
    empty_gateway: Gateway, serve_console: Serve
) -> None:
    """Spans reveal the searches and calls of other callers."""
    http = HttpOptions(port=0, tokens=(READER,))
    served = await serve_console(empty_gateway, http=http, token=SECRET, spans=SpanRing())
    async with served.client() as client:
        answers = [
            await client.get(f"/activity{path}") for path in ("", "/export", "/events", "/x")
        ]

    assert [403] * 4 == [answer.status_code for answer in answers]


async def test_activity_page_says_if_no_spans_are_recorded(
    empty_gateway: Gateway, serve_console: Serve
) -> None:
    """A host with its own tracer provider may not have added the console's span processor."""
    served = await serve_console(empty_gateway)
    async with served.client() as client:
        page = await client.get("/activity")

    assert "does not record spans" in page.text
    assert "data-events" not in page.text


async def test_number_of_span_streams_per_caller_is_limited(watched: Watched) -> None:
    async with watched.served.client() as client, AsyncExitStack() as stack:
        opened = [client.stream("GET", "/activity/events") for _ in range(MAX_STREAMS)]
        first, *others = [await stack.enter_async_context(line) for line in opened]
        lines = first.aiter_lines()
        assert {":"} == {await anext(line) for line in (lines, *(o.aiter_lines() for o in others))}
        refused = await client.get("/activity/events")
        await watched.gateway.invoke("read_email")
        event = await anext(json.loads(line[6:]) async for line in lines if "read_email" in line)
        await first.aclose()
        status = refused.status_code
        async with asyncio.timeout(60):
            while status == refused.status_code:
                async with client.stream("GET", "/activity/events") as again:
                    status = again.status_code

    assert (429, 200) == (refused.status_code, status)
    assert ("text/event-stream; charset=utf-8", "no-store") == (
        first.headers["content-type"],
        first.headers["cache-control"],
    )
    assert ("call", {}) == (event["kind"], event["attributes"])


async def test_activity_page_updates_live_until_paused(watched: Watched, visit: Open) -> None:
    page = await visit(watched.served, "/activity?kind=call")
    await expect(page.get_by_text("Live", exact=True)).to_be_visible()

    await watched.work()
    await expect(page.get_by_role("link", name="fail")).to_be_visible()
    await page.get_by_role("link", name="fail").focus()
    await watched.gateway.invoke("send_email")
    await expect(page.get_by_role("link", name="send_email")).to_be_visible()
    await expect(page.get_by_role("link", name="fail")).to_be_focused()
    await check_access(page)

    pause = page.get_by_role("button", name="Pause")
    await pause.click()
    await expect(pause).to_have_attribute("aria-pressed", "true")
    await expect(page.get_by_role("status").filter(has_text="Paused")).to_be_visible()
    await watched.gateway.invoke("play_music")
    await page.get_by_label("Outcome").select_option("failed")
    await expect(page.get_by_role("link", name="send_email")).to_have_count(0)
    assert "outcome=failed" in page.url
    await pause.click()
    await page.get_by_label("Outcome").select_option("")
    await expect(page.get_by_role("link", name="play_music")).to_be_visible()

    await page.get_by_role("link", name="fail").click()
    await expect(page.get_by_role("heading", name="Trace")).to_be_visible()
    await page.locator("summary").first.click()
    await expect(page.get_by_text("tool_error").last).to_be_visible()
    await check_access(page)


async def test_activity_page_escapes_span_names(
    open_gateway: OpenGateway, serve_console: Serve, visit: Open
) -> None:
    ring = SpanRing()
    options = Options(capture_content=True)
    gateway = open_gateway(HOSTILE, tracer_provider=provider_of(ring), options=options)
    served = await serve_console(gateway, spans=ring)
    await gateway.search(f"{MARKUP} {RIGHT_TO_LEFT} {LONG}")
    await gateway.invoke("markup")
    page = await visit(served, "/activity")
    await check_layout(page)
    await page.goto(f"{served.url}/console/activity/{ring.spans[-2].trace}")
    await page.locator("summary").first.click()
    await check_layout(page)
    await check_access(page)
    ring.shutdown()

    assert await page.evaluate("window.broken") is None
