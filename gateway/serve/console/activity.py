"""Activity page: recent spans as traces, and totals over these spans."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import ClassVar, TypeAlias, get_args
from urllib.parse import urlencode

from starlette.responses import Response, StreamingResponse

from gateway.discovery.meta_tools import meta_names, meta_tools
from gateway.discovery.tool_list import ToolListBuilder
from gateway.errors import Failed, attempt
from gateway.gateway import Gateway
from gateway.runtime.text import json_tokens
from gateway.serve.api.problems import RefusedError
from gateway.serve.auth import METRICS
from gateway.serve.console.page import ConsoleOptions, PageView, Place, Texts, Visit, page
from gateway.serve.console.spans import MAX_STREAMS, Kind, SpanRecord, SpanRing
from gateway.serve.guard import CONSOLE
from gateway.types import Caller

Tree: TypeAlias = tuple[tuple[int, SpanRecord], ...]
"""A root span and its descendants, each with its depth. Parents come first."""
KINDS: tuple[str, ...] = get_args(Kind)
"""Span kinds, most important first. The first one in a trace represents the trace."""
_WORK: tuple[Kind, ...] = ("call", "search", "model", "build")
"""Span kinds whose failures are counted. Their failures also fail their parents."""
_TOKENS = {
    "input": "gen_ai.usage.input_tokens",
    "cached": "gen_ai.usage.cache_read.input_tokens",
    "output": "gen_ai.usage.output_tokens",
    "reasoning": "gen_ai.usage.reasoning.output_tokens",
}
_MAX_TRACES = 50
_HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceFilter:
    """Selects traces with a matching span. Empty strings and 0 match every span."""

    kind: str = ""
    outcome: str = ""
    """``failed`` selects traces with a failed matching span, ``ok`` traces without one."""
    text: str = ""
    """Part of a span's name, target, server or error, ignoring case."""
    minutes: int = 0
    """Maximum age of a span, in minutes since its start."""

    def admits(self, span: SpanRecord, now: float) -> bool:
        """Return whether *span* matches all fields but `outcome` at *now*, in Unix seconds."""
        words = f"{span.name} {span.target} {span.server} {span.error}".casefold()
        return (
            self.kind in {"", span.kind}
            and self.text.casefold() in words
            and (not self.minutes or span.start >= now - 60 * self.minutes)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceSummary:
    """One trace, represented by one of its spans."""

    span: SpanRecord
    age_s: float
    spans: int
    failed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Counts and sums over spans."""

    spans: int
    age_s: float
    """Seconds since the oldest span started. 0.0 without spans."""
    searches: int
    cached_share: float | None
    """Share of searches answered from the cache. None without searches."""
    calls: int
    turns: int
    saved_tokens: int
    """Estimated tokens saved, compared with sending all schemas in each turn."""
    models: Mapping[str, Mapping[str, int]]
    """Number of requests and tokens, keyed by operation and model, and by ``requests``, ``input``,
    ``cached`` (in ``input``), ``output`` or ``reasoning`` (in ``output``)."""
    failures: Mapping[str, Mapping[str, int]]
    """Number of failed spans, keyed by server (or span kind, without a server) and error type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivityData:
    """The newest traces, and totals of the chosen period."""

    is_recorded: bool
    filter: TraceFilter
    totals: Totals
    definition_tokens: int
    """Estimated tokens of the meta-tools, which every turn sends."""
    catalog_tokens: int
    """Estimated tokens of all tools that the caller may see."""
    matching: int
    """Number of traces that match the filter. `traces` has only the newest."""
    traces: tuple[TraceSummary, ...]
    kinds: tuple[str, ...] = KINDS
    export: str
    """Address of a download of all matching traces."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineSpan:
    """One span of a trace, with its position in time."""

    level: int
    offset: float
    width: float
    """Width of the bar in per cent of the trace's duration. `offset` is its start."""
    span: SpanRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceData:
    """The recorded spans of one trace."""

    ms: float
    spans: tuple[TimelineSpan, ...]


def trees(spans: Sequence[SpanRecord]) -> list[Tree]:
    """Group *spans* into trees, newest root first. A missing parent makes a span a root."""
    ids = {(span.trace, span.id) for span in spans}
    below = defaultdict[tuple[str, str], list[SpanRecord]](list)
    for span in sorted(spans, key=lambda span: span.start):
        parent = span.trace, span.parent
        below[parent if parent in ids else ("", "")].append(span)
    result = []
    for root in reversed(below["", ""]):
        tree, stack = [], [(0, root)]
        while stack:
            level, span = stack.pop()
            tree.append((level, span))
            stack += [(level + 1, child) for child in reversed(below[span.trace, span.id])]
        result.append(tuple(tree))
    return result


def select(
    traces: Sequence[Tree], trace_filter: TraceFilter, now: float
) -> Iterator[tuple[TraceSummary, Tree]]:
    """Yield the traces that match the filter, with summaries. *now* is Unix time in seconds."""
    for tree in traces:
        spans = [span for _, span in tree if trace_filter.admits(span, now)]
        failed = [span for span in spans if span.error]
        if trace_filter.outcome:
            spans = failed if trace_filter.outcome == "failed" else [] if failed else spans
        if spans:
            span = min(spans, key=lambda span: KINDS.index(span.kind))
            count = sum(bool(span.error) for _, span in tree)
            age_s = now - span.start
            yield TraceSummary(span=span, age_s=age_s, spans=len(tree), failed=count), tree


def totals(spans: Sequence[SpanRecord], now: float) -> Totals:
    """Return the totals of *spans*. *now* is Unix time in seconds."""
    kinds = Counter(span.kind for span in spans)
    failures = defaultdict[str, Counter[str]](Counter)
    models = defaultdict[str, list[SpanRecord]](list)
    for span in spans:
        if span.error and span.kind in _WORK:
            failures[span.server or span.kind][span.error] += 1
        if span.kind == "model":
            models[span.name].append(span)
    return Totals(
        spans=len(spans),
        age_s=max((now - span.start for span in spans), default=0.0),
        searches=kinds["search"],
        cached_share=_sum(spans, "gateway.cache.hit") / kinds["search"]
        if kinds["search"]
        else None,
        calls=kinds["call"],
        turns=_sum(spans, "gateway.chat.turns"),
        saved_tokens=_sum(spans, "gateway.chat.saved_tokens"),
        models={
            name: {
                "requests": len(requests),
                **{key: _sum(requests, _TOKENS[key]) for key in _TOKENS},
            }
            for name, requests in sorted(models.items())
        },
        failures=dict(sorted(failures.items())),
    )


def _sum(spans: Sequence[SpanRecord], name: str) -> int:
    return sum(int(span.attributes.get(name, 0)) for span in spans)


def timeline(spans: Sequence[SpanRecord]) -> TraceData:
    """Return the timeline of one trace with at least one span."""
    start = min(span.start for span in spans)
    ms = max(1000 * (span.start - start) + span.ms for span in spans) or 1.0
    timeline_spans = [
        TimelineSpan(
            level=level,
            offset=100 * (1000 * (span.start - start) / ms),
            width=max(100 * (span.ms / ms), 0.5),
            span=span,
        )
        for tree in reversed(trees(spans))
        for level, span in tree
    ]
    return TraceData(ms=ms, spans=tuple(timeline_spans))


class ActivityPage:
    """Page of recent searches and calls, updated live."""

    place: ClassVar = Place(title="Activity", path="/activity", right=METRICS)

    def __init__(self, gateway: Gateway, options: ConsoleOptions) -> None:
        self._gateway = gateway
        self._tool_lists = ToolListBuilder(gateway)
        self._is_recorded = options.spans is not None
        self._ring = options.spans or SpanRing()

    @page("GET", "/activity", right=METRICS)
    async def show(self, visit: Visit) -> PageView:
        """Show the traces that match the address's filter."""
        trace_filter, now, spans = _read_filter(visit.query), time.time(), self._ring.spans
        summaries = [summary for summary, _ in select(trees(spans), trace_filter, now)]
        recent = TraceFilter(minutes=trace_filter.minutes)
        tokens = await attempt(self._count_definitions(visit.caller))
        meta_tokens, every = (0, 0) if isinstance(tokens, Failed) else tokens
        data = ActivityData(
            is_recorded=self._is_recorded,
            filter=trace_filter,
            totals=totals([span for span in spans if recent.admits(span, now)], now),
            definition_tokens=meta_tokens,
            catalog_tokens=every,
            matching=len(summaries),
            traces=tuple(summaries[:_MAX_TRACES]),
            export=f"{CONSOLE}/activity/export?{urlencode(asdict(trace_filter))}",
        )
        return PageView(template="activity.html", title="Activity", data=data)

    async def _count_definitions(self, caller: Caller) -> tuple[int, int]:
        tools = await self._tool_lists.searchable(caller)
        names = meta_names(self._gateway.options.discovery, (), avoid=tools.by_name)
        meta_tokens = sum(map(json_tokens, meta_tools(names, tools.digest)))
        # Counting takes seconds for 100,000 tools.
        return meta_tokens, await asyncio.to_thread(lambda: tools.tokens)

    @page("GET", "/activity/export", right=METRICS)
    async def export(self, visit: Visit) -> Response:
        """Send all spans of matching traces as JSON Lines."""
        selected = select(trees(self._ring.spans), _read_filter(visit.query), time.time())
        lines = [json.dumps(asdict(span)) + "\n" for _, tree in selected for _, span in tree]
        headers = {"Content-Disposition": 'attachment; filename="activity.jsonl"', **_HEADERS}
        return Response("".join(lines), media_type="application/jsonl", headers=headers)

    @page("GET", "/activity/events", right=METRICS)
    async def events(self, visit: Visit) -> Response:
        """Stream spans as they end, like `SpanRing.stream`."""
        if not self._ring.has_room(visit.caller):
            detail = f"a caller may have at most {MAX_STREAMS} streams; close another window"
            raise RefusedError(429, "too_many_streams", detail)
        stream = self._ring.stream(visit.caller)
        return StreamingResponse(stream, media_type="text/event-stream", headers=_HEADERS)

    @page("GET", "/activity/{trace}", right=METRICS)
    async def trace(self, visit: Visit) -> PageView:
        """Show one trace as trees."""
        spans = [span for span in self._ring.spans if span.trace == visit.path["trace"]]
        if not spans:
            raise RefusedError(404, "unknown_trace", "the spans of this trace are no longer stored")
        return PageView(template="trace.html", title="Trace", data=timeline(spans))


def _read_filter(query: Texts) -> TraceFilter:
    kind, outcome, text = (query.get(name, "").strip() for name in ("kind", "outcome", "text"))
    minutes = query.get("minutes", "")[:6]
    minute_count = int(minutes) if minutes.isdecimal() else 0
    return TraceFilter(kind=kind, outcome=outcome, text=text, minutes=minute_count)
