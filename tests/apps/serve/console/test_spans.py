"""Recording of spans, and the streams that send them to browsers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import NamedTuple

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags

from gateway.gateway import Gateway
from gateway.options import Options
from gateway.runtime.telemetry_names import CONTENT_ATTRIBUTES, SCOPE
from gateway.serve.console import MAX_CHARS, MAX_EVENTS, MAX_STREAMS, SpanRing
from gateway.testing import HashingEmbedder
from tests.conftest import OpenGateway


class Recorded(NamedTuple):
    gateway: Gateway
    ring: SpanRing


def provider_of(ring: SpanRing) -> TracerProvider:
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(ring)
    return provider


def divide(a: int, b: int) -> float:
    """Divide one number by another."""
    return a / b


def recorded(open_gateway: OpenGateway, **options: object) -> Recorded:
    ring = SpanRing()
    gateway = open_gateway(tracer_provider=provider_of(ring), **options)
    gateway.add_tool(divide)
    return Recorded(gateway, ring)


def record(ring: SpanRing, *names: str, scope: str = SCOPE) -> None:
    tracer = provider_of(ring).get_tracer(scope)
    for name in names:
        tracer.start_span(name).end()


async def test_spans_are_recorded_without_content(open_gateway: OpenGateway) -> None:
    gateway, ring = recorded(open_gateway, strategy="auto", embedder=HashingEmbedder())
    await gateway.search("share a cake among seven guests")
    await gateway.invoke("divide", {"a": 1, "b": 0})

    search = next(span for span in ring.spans if span.kind == "search")
    call = next(span for span in ring.spans if span.kind == "call")
    query = [span for span in ring.spans if span.parent == search.id]
    assert ("retrieval catalog", "auto", "") == (search.name, search.target, search.error)
    assert ["model"] == [span.kind for span in query]
    assert {search.trace} == {span.trace for span in query}
    assert ("divide", "local", "tool_error") == (call.target, call.server, call.error)
    assert {"build"} <= {span.kind for span in ring.spans}
    assert search.start > 0 <= search.ms
    assert "cake" not in str(ring.spans)


async def test_captured_content_is_recorded_and_truncated(open_gateway: OpenGateway) -> None:
    gateway, ring = recorded(open_gateway, options=Options(capture_content=True))

    def shout(word: str) -> str:
        """Shout a word."""
        return word * 1000

    gateway.add_tool(shout)
    await gateway.invoke("shout", {"word": "hey!"})

    (call,) = [span for span in ring.spans if span.kind == "call"]
    assert '{"word": "hey!"}' == call.attributes[CONTENT_ATTRIBUTES.arguments]
    result = str(call.attributes[CONTENT_ATTRIBUTES.result])
    assert (MAX_CHARS + 1, "…") == (len(result), result[-1])


def test_span_ring_stores_only_the_last_spans() -> None:
    ring = SpanRing(max_spans=3)
    record(ring, "a", "b", "c", "d", "e" * 5000)

    assert ["c", "d", "e" * MAX_CHARS] == [span.name for span in ring.spans]


def test_spans_of_other_libraries_are_not_recorded() -> None:
    """Their attributes may contain anything, such as a URL with a key."""
    ring = SpanRing()
    record(ring, "GET /?key=secret", scope="opentelemetry.instrumentation.httpx")

    assert [] == ring.spans


def test_sdk_spans_are_recorded_without_messages_and_client_names() -> None:
    """A client that misspells a tool may have sent any text as its name."""
    ring = SpanRing()
    tracer = provider_of(ring).get_tracer("mcp-python-sdk")
    attributes = {
        "mcp.method.name": "tools/call",
        "gen_ai.tool.name": "secret",
        "error.type": "tool_error",
    }
    with tracer.start_as_current_span("tools/call secret", attributes=attributes) as span:
        span.record_exception(ValueError("secret"))
        span.set_status(trace.StatusCode.ERROR, "secret")

    (record,) = ring.spans
    assert ("request", "tools/call", "tool_error") == (record.kind, record.name, record.error)
    assert "secret" not in str(record)


async def read_events(stream: AsyncIterator[str], count: int) -> list[tuple[str, object]]:
    """Read *count* server-sent events, each as (name, data)."""
    events: list[tuple[str, object]] = []
    async for text in stream:
        for event in filter(lambda part: part.startswith("event:"), text.split("\n\n")):
            name, data = event.split("\n")
            events.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
        if len(events) >= count:
            break
    return events


async def open_stream(ring: SpanRing, owner: object = "") -> AsyncIterator[str]:
    """Open a stream of spans and skip its first comment."""
    stream = ring.stream(owner)
    assert ":\n\n" == await anext(stream)
    return stream


async def test_stream_sends_root_call_and_search_spans(open_gateway: OpenGateway) -> None:
    """The stream is read on another thread than the one on which spans end."""
    gateway, ring = recorded(open_gateway, options=Options(capture_content=True))
    await gateway.refresh()
    stream = await open_stream(ring)
    await gateway.search("numbers")
    await gateway.invoke("divide", {"a": 4, "b": 2})

    events = await read_events(stream, 2)
    kinds = [
        (name, data["kind"], data["attributes"]) for name, data in events if isinstance(data, dict)
    ]
    assert [("span", "search", {}), ("span", "call", {})] == kinds


async def test_span_with_a_remote_parent_is_a_root() -> None:
    """The parent is a span of a client whose trace the gateway continues."""
    ring = SpanRing()
    stream = await open_stream(ring)
    tracer = provider_of(ring).get_tracer(SCOPE)
    remote = SpanContext(1, 2, is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED))
    context = trace.set_span_in_context(NonRecordingSpan(remote))
    with tracer.start_as_current_span("root", context=context):
        tracer.start_span("below").end()

    events = await read_events(stream, 1)
    assert ["root"] == [data["name"] for _, data in events if isinstance(data, dict)]


async def test_slow_reader_of_a_stream_gets_the_number_of_missed_events() -> None:
    ring = SpanRing()
    stream = await open_stream(ring)
    record(ring, *(f"span {number}" for number in range(MAX_EVENTS + 7)))

    events = await read_events(stream, MAX_EVENTS + 1)
    spans = [data["name"] for _, data in events if isinstance(data, dict)]
    assert ("missed", 7) == events[0]
    assert ("span 7", f"span {MAX_EVENTS + 6}", MAX_EVENTS) == (spans[0], spans[-1], len(spans))


async def test_number_of_streams_per_owner_is_limited() -> None:
    ring = SpanRing()
    streams = [await open_stream(ring, "a") for _ in range(MAX_STREAMS)]
    before = ring.has_room("a"), ring.has_room("b")
    for stream in streams[:1]:
        await stream.aclose()  # type: ignore[attr-defined]

    assert (False, True) == before
    assert ring.has_room("a")


async def test_stream_beyond_the_limit_ends_at_once() -> None:
    """Several streams that start together may all pass `has_room` before the first one counts."""
    ring = SpanRing()
    streams = [ring.stream("a") for _ in range(MAX_STREAMS + 2)]
    begun = [await anext(stream, "") for stream in streams]

    assert [":\n\n"] * MAX_STREAMS + ["", ""] == begun


async def test_span_streams_end_at_shutdown() -> None:
    ring = SpanRing()
    stream = await open_stream(ring)
    ending = asyncio.create_task(read_events(stream, 1))
    await asyncio.sleep(0)
    ring.shutdown()

    assert [] == await ending
    with pytest.raises(StopAsyncIteration):
        await anext(await open_stream(ring))
    record(ring, "late")
    assert ["late"] == [span.name for span in ring.spans]


def test_ending_a_span_skips_readers_on_a_closed_event_loop() -> None:
    """Ending a span must never raise an error, even if the event loop of a reader has ended."""
    ring = SpanRing()
    streams = []

    async def leave() -> None:
        streams.append(await open_stream(ring))

    loop = asyncio.new_event_loop()
    loop.run_until_complete(leave())
    loop.close()
    record(ring, "late")

    assert ["late"] == [span.name for span in ring.spans]
