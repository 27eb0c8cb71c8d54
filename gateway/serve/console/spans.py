"""The last spans of the process, in memory, and streams of events for those who watch.

* Spans of the gateway and of the MCP SDK are recorded, no other library's: a URL may hold a secret.
* Neither events nor messages of failures are recorded, and of the SDK's spans no name that a client
  wrote: they may hold content. What the host has captured of content is clipped.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from itertools import islice
from typing import Literal, TypeAlias

from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.trace import StatusCode, format_span_id, format_trace_id
from opentelemetry.util.types import AttributeValue

from gateway.runtime.telemetry_names import SCOPE

Kind: TypeAlias = Literal[
    "conversation", "call", "search", "meta_tool", "model", "build", "request"
]
"""What a span is: *model* is a request to a model, *build* one of the index, *request* is MCP's."""
Value: TypeAlias = str | int | float | bool
MAX_SPANS = 2000
MAX_CHARS = 1000
"""Of a name or an attribute."""
MAX_ATTRIBUTES = 32
MAX_EVENTS = 100
"""That wait for one reader."""
MAX_STREAMS = 4
"""Of one owner."""
HEARTBEAT_S = 15.0
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
    """One span that has ended."""

    trace: str
    """32 hexadecimal digits."""
    id: str
    """16 hexadecimal digits."""
    parent: str
    """An id; "" if there is none."""
    kind: Kind
    name: str
    target: str
    """The tool, the model or the agent; of a search its strategy; "" for none."""
    server: str
    """Of a tool; of a model its provider; "" for none."""
    start: float
    """Unix time in seconds."""
    ms: float
    error: str
    """The type of its error; "" if it did not fail."""
    attributes: Mapping[str, Value]


class SpanRing(SpanProcessor):
    """The last spans. A host adds it to its tracer provider; any thread may use it.

    Args:
        max_spans: One more takes the place of the oldest.
    """

    # No lock: a finalizer may end a span while its thread holds one.
    def __init__(self, max_spans: int = MAX_SPANS) -> None:
        self._spans = deque[SpanRecord](maxlen=max_spans)
        self._readers: tuple[_Reader, ...] = ()
        self._is_closed = False

    @property
    def spans(self) -> list[SpanRecord]:
        """Those that are held, in the order in which they ended."""
        return list(self._spans)

    def on_end(self, span: ReadableSpan) -> None:
        """Record *span*; a root, a call or a search is an event."""
        record = _record(span)
        if record is None:
            return
        self._spans.append(record)
        is_root = span.parent is None or span.parent.is_remote
        if is_root or record.kind in {"call", "search"}:
            for reader in self._readers:
                reader.put(record)

    def shutdown(self) -> None:
        """End all streams, and from now on each at once. Spans are recorded on."""
        self._is_closed = True
        for reader in self._readers:
            reader.put(None)

    def has_room(self, owner: object) -> bool:
        """Return whether *owner* may have one more stream."""
        return sum(each.owner == owner for each in self._readers) < MAX_STREAMS

    async def stream(self, owner: object) -> AsyncIterator[str]:
        """Yield events as they happen, in the format of server-sent events (WHATWG HTML, 9.2).

        ``span`` is a record as JSON, without its attributes. ``missed`` is a count: a reader that
        is slow loses the oldest of its events. A comment goes out where there is none for long, so
        that nothing in between gives up. It ends at `shutdown`.
        """
        reader = _Reader(owner)
        self._readers += (reader,)
        try:
            yield ":\n\n"
            while not self._is_closed:
                yield await reader.read()
        finally:
            self._readers = tuple(each for each in self._readers if each is not reader)


class _Reader:
    """The events that wait for one stream, on the loop that made it."""

    def __init__(self, owner: object) -> None:
        self.owner = owner
        self._loop = asyncio.get_running_loop()
        self._ready = asyncio.Event()
        self._events = deque[SpanRecord](maxlen=MAX_EVENTS)
        self._missed = 0

    def put(self, record: SpanRecord | None) -> None:
        """Add an event, on any thread; None only ends the wait."""
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._append, record)

    def _append(self, record: SpanRecord | None) -> None:
        if record is not None:
            self._missed += len(self._events) == MAX_EVENTS
            self._events.append(record)
        self._ready.set()

    async def read(self) -> str:
        """Wait for events and return all of them."""
        try:
            async with asyncio.timeout(HEARTBEAT_S):
                await self._ready.wait()
        except TimeoutError:
            return ":\n\n"
        self._ready.clear()
        events = [("missed", str(self._missed))] if self._missed else []
        events += [
            ("span", json.dumps(asdict(replace(each, attributes={})))) for each in self._events
        ]
        self._missed = 0
        self._events.clear()
        return "".join(f"event: {name}\ndata: {data}\n\n" for name, data in events)


def _record(span: ReadableSpan) -> SpanRecord | None:
    scope = span.instrumentation_scope.name if span.instrumentation_scope else ""
    if span.context is None or scope not in {SCOPE, _MCP_SCOPE}:
        return None
    is_ours = scope == SCOPE
    attributes = {
        key: _plain(value)
        for key, value in islice((span.attributes or {}).items(), MAX_ATTRIBUTES)
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
