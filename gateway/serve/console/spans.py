"""Recent spans of the process, in memory, and streams of new spans for the activity page.

Only spans of the gateway and of the MCP SDK are recorded, because URLs in others may contain
secrets. Events, error messages, and names that clients send in the SDK's spans are not recorded.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from itertools import count
from typing import Literal, TypeAlias

from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.trace import StatusCode, format_span_id, format_trace_id
from opentelemetry.util.types import AttributeValue

from gateway.runtime.telemetry_names import SCOPE

Kind: TypeAlias = Literal[
    "conversation", "call", "search", "meta_tool", "build", "model", "request"
]
"""Kind of a span. *build* builds the index, *model* calls a model, *request* is an MCP request."""
Value: TypeAlias = str | int | float | bool
MAX_SPANS = 2000
MAX_CHARS = 1000
MAX_EVENTS = 100
"""Maximum number of events kept for a slow reader."""
MAX_STREAMS = 8
HEARTBEAT_S = 15.0
STREAM_S = 600.0
"""Maximum duration of a stream. Reconnecting checks the session again."""
_MCP_SCOPE = "mcp-python-sdk"
_KINDS: Mapping[str, Kind] = {
    "retrieval": "search",
    "chat": "model",
    "embeddings": "model",
    "invoke_agent": "conversation",
}
_TARGETS = (
    *("gen_ai.tool.name", "gateway.search.strategy"),
    *("gen_ai.agent.name", "gen_ai.request.model"),
)
_SERVERS = ("gateway.server.name", "gen_ai.provider.name")


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanRecord:
    """A span that has ended."""

    trace: str
    id: str
    parent: str
    kind: Kind
    name: str
    target: str
    """Tool, model or agent, or the strategy of a search. Empty if unknown."""
    server: str
    """Server of the tool, or provider of the model. Empty if unknown."""
    start: float
    ms: float
    error: str
    """Type of the error. Empty if the span did not fail."""
    attributes: Mapping[str, Value]


class SpanRing(SpanProcessor):
    """Ring buffer of recent spans, a thread-safe processor for the host's tracer provider."""

    # Without a lock, because a finalizer may end a span in a thread that already has it.
    def __init__(self, max_spans: int = MAX_SPANS) -> None:
        self._spans = deque[SpanRecord](maxlen=max_spans)
        self._events = deque[tuple[int, SpanRecord]](maxlen=MAX_EVENTS)
        self._numbers = count(1)
        self._readers: list[tuple[object, asyncio.AbstractEventLoop, asyncio.Event]] = []
        self._is_closed = False

    @property
    def spans(self) -> list[SpanRecord]:
        """Stored spans, in the order of their ends."""
        return list(self._spans)

    def on_end(self, span: ReadableSpan) -> None:
        """Record *span*. Streams also receive roots, calls and searches."""
        record = _record(span)
        if record is None:
            return
        self._spans.append(record)
        is_root = span.parent is None or span.parent.is_remote
        if is_root or record.kind in {"call", "search"}:
            self._events.append((next(self._numbers), record))
            self._wake_readers()

    def _wake_readers(self) -> None:
        for _, loop, ready in list(self._readers):
            with suppress(RuntimeError):  # the reader's event loop has ended
                loop.call_soon_threadsafe(ready.set)

    def shutdown(self) -> None:
        """End all present and later streams. Spans are still recorded."""
        self._is_closed = True
        self._wake_readers()

    def has_room(self, owner: object) -> bool:
        """Return whether *owner* may open another stream."""
        return sum(reader[0] == owner for reader in self._readers) < MAX_STREAMS

    async def stream(self, owner: object) -> AsyncIterator[str]:
        """Yield new events in the format of server-sent events (WHATWG HTML, 9.2).

        ``span`` events contain a record as JSON without attributes, ``missed`` events the number of
        events lost because the reader was too slow. Idle streams send comments, so that proxies do
        not close them. A stream ends at `shutdown`, after `STREAM_S`, or at once if *owner* has no
        room.
        """
        if not self.has_room(owner):
            return
        reader = (owner, asyncio.get_running_loop(), asyncio.Event())
        end = time.monotonic() + STREAM_S
        last = max((number for number, _ in list(self._events)), default=0)
        self._readers.append(reader)
        try:
            yield ":\n\n"
            while not self._is_closed and time.monotonic() < end:
                with suppress(TimeoutError):
                    async with asyncio.timeout(HEARTBEAT_S):
                        await reader[2].wait()
                reader[2].clear()
                new = [event for event in list(self._events) if event[0] > last]
                yield "".join(_format_events(new, last)) or ":\n\n"
                last = new[-1][0] if new else last
        finally:
            self._readers.remove(reader)


def _format_events(events: Sequence[tuple[int, SpanRecord]], last: int) -> Iterator[str]:
    """Yield *events* in SSE format, first ``missed`` if there are gaps after the number *last*."""
    if events and (missed := events[0][0] - last - 1):
        yield f"event: missed\ndata: {missed}\n\n"
    for _, record in events:
        yield f"event: span\ndata: {json.dumps(asdict(replace(record, attributes={})))}\n\n"


def _record(span: ReadableSpan) -> SpanRecord | None:
    scope = span.instrumentation_scope.name if span.instrumentation_scope else ""
    if span.context is None or scope not in {SCOPE, _MCP_SCOPE}:
        return None
    is_ours = scope == SCOPE
    attributes = {
        key: _plain(value)
        for key, value in (span.attributes or {}).items()
        if is_ours or not key.startswith("gen_ai.")
    }
    name = span.name if is_ours else str(attributes.get("mcp.method.name", ""))
    ended = span.end_time or 0
    started = span.start_time or ended
    failed = span.status.status_code is StatusCode.ERROR
    return SpanRecord(
        trace=format_trace_id(span.context.trace_id),
        id=format_span_id(span.context.span_id),
        parent=format_span_id(span.parent.span_id) if span.parent else "",
        kind=_kind(attributes) if is_ours else "request",
        name=name[:MAX_CHARS],
        target=_first(attributes, *_TARGETS),
        server=_first(attributes, *_SERVERS),
        start=started / 1e9,
        ms=(ended - started) / 1e6,
        error=_first(attributes, "error.type") or "error" if failed else "",
        attributes=attributes,
    )


def _plain(value: AttributeValue) -> Value:
    if isinstance(value, bool | int | float):
        return value
    text = value if isinstance(value, str) else ", ".join(map(str, value or ()))
    return text if len(text) <= MAX_CHARS else f"{text[:MAX_CHARS]}…"


def _kind(attributes: Mapping[str, Value]) -> Kind:
    operation = str(attributes.get("gen_ai.operation.name", ""))
    if operation == "execute_tool":
        return "call" if attributes.get("gen_ai.tool.type") == "function" else "meta_tool"
    return _KINDS.get(operation, "build")


def _first(attributes: Mapping[str, Value], *names: str) -> str:
    return next((str(attributes[name]) for name in names if name in attributes), "")
