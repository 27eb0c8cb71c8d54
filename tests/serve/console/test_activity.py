"""The page Activity: traces, filters, totals."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.serve.console.activity import TraceFilter, select, totals, trees
from gateway.serve.console.spans import SpanRecord

NOW = 10_000.0


def span(key: str, parent: str = "", **values: Any) -> SpanRecord:
    """A span of a trace named `t`, which starts at *NOW*."""
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
    """A call through `call_tool` that failed, in the order in which its spans end."""
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


def test_spans_become_trees_with_the_newest_root_first() -> None:
    """A parent comes before its children; what a later trace repeats is its own."""
    later = [span("call", "root", trace="u", start=NOW + 9), span("root", trace="u", start=NOW + 8)]
    found = [
        [(level, one.trace + " " + one.id) for level, one in tree]
        for tree in trees([*failing_call(), *later])
    ]

    assert [
        [(0, "u root"), (1, "u call")],
        [(0, "t root"), (1, "t meta"), (2, "t call"), (3, "t sent")],
    ] == found


def test_children_of_a_parent_that_has_left_are_roots() -> None:
    """So they are shown as long as they are there."""
    first, second = trees([*failing_call()[:2], search("lone", start=NOW + 5)])

    assert ["lone"] == [one.id for _, one in first]
    assert [(0, "call"), (1, "sent")] == [(level, one.id) for level, one in second]


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
def test_a_trace_is_shown_by_the_span_that_a_filter_means(
    wanted: TraceFilter, subjects: list[str]
) -> None:
    """Without a filter, by what matters most in it."""
    spans = [*failing_call(), search("quick", start=NOW + 100)]
    found = select(trees(spans), wanted, NOW + 120)

    assert subjects == [summary.subject.id for summary, _ in found]


def test_a_summary_counts_the_spans_of_its_trace() -> None:
    """All of them, whatever the filter."""
    ((summary, tree),) = select(trees(failing_call()), TraceFilter(kind="call"), NOW)

    assert (4, 3, 4) == (summary.spans, summary.failed, len(tree))


def model(key: str, operation: str, target: str, **usage: int) -> SpanRecord:
    tokens = {f"gen_ai.usage.{name.replace('__', '.')}": count for name, count in usage.items()}
    attributes = {"gen_ai.operation.name": operation, **tokens}
    return span(key, kind="model", target=target, attributes=attributes)


def test_totals_add_up_searches_calls_tokens_and_failures() -> None:
    """What only passes a failure on is not counted with it."""
    conversation = {"gateway.chat.turns": 3, "gateway.chat.saved_tokens": 900}
    hit, miss = {"gateway.cache.hit": True}, {"gateway.cache.hit": False}
    first = model("m1", "chat", "m", input_tokens=10, output_tokens=4, cache_read__input_tokens=6)
    second = model("m2", "chat", "m", input_tokens=20, output_tokens=5, reasoning__output_tokens=2)
    spans = [
        *failing_call(),
        *failing_call(),
        search("s1", attributes=hit, start=NOW - 5),
        search("s2", attributes=miss),
        search("s3", attributes={}, error="IndexFailedError"),
        *(first, second, model("m3", "embeddings", "e", input_tokens=7)),
        span("a", kind="conversation", attributes=conversation),
    ]
    found = totals(spans)

    assert (15, NOW - 5) == (found.spans, found.start)
    assert (3, 1, 2) == (found.searches, found.cached, found.calls)
    assert (3, 900) == (found.turns, found.saved_tokens)
    assert [("chat", "m", 2, (30, 9, 6, 2)), ("embeddings", "e", 1, (7, 0, 0, 0))] == [
        (
            each.operation,
            each.model,
            each.requests,
            (each.input, each.output, each.cached, each.reasoning),
        )
        for each in found.models
    ]
    assert [
        ("call", "clock", "get_time", "tool_error", 2),
        ("search", "", "auto", "IndexFailedError", 1),
    ] == [(each.kind, each.server, each.target, each.error, each.count) for each in found.failures]


def test_nothing_adds_up_to_nothing() -> None:
    """No span has been recorded yet."""
    found = totals([])

    assert (0, 0.0, 0, (), ()) == (
        found.spans,
        found.start,
        found.searches,
        found.models,
        found.failures,
    )
    assert [] == trees([])
