"""Spans and metrics of a gateway, by the OpenTelemetry API alone; and their names.

* Without a provider of the host's, every call is a no-op.
* No query, argument, result or description is sent unless the host asked for content.
* Dashboards depend on the names; `docs/telemetry.md` lists them with all attributes. Those of
  ``gen_ai.*`` are OpenTelemetry's (semantic conventions 1.41, still moving: keep them here), all
  others are ``gateway.*``. Durations are seconds. Attributes are few and of few values.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import NamedTuple, TypeAlias

from opentelemetry import metrics, trace
from opentelemetry.metrics import MeterProvider
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, TracerProvider

from gateway.runtime import VERSION

__all__ = ["MeterProvider", "Span", "Telemetry", "TracerProvider"]

SCOPE = "tool-gateway"
SCHEMA_URL = "https://opentelemetry.io/schemas/1.41.1"
Attributes: TypeAlias = Mapping[str, str | int | float | bool]
CLIENT_SPANS = frozenset({"retrieval", "embeddings", "chat"})
"""Kinds of spans that are requests to a service, by the first word of their names."""

_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
_DOUBLING = tuple(0.01 * 2**step for step in range(14))
_TOKENS = tuple(float(4**step) for step in range(14))
_SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)
_COUNTS = (0.0, 1.0, 2.0, 3.0, 5.0, 8.0, 10.0, 20.0, 50.0)
_ENTITIES = (10.0, 100.0, 1000.0, 10000.0, 100000.0)


class Metric(NamedTuple):
    """One instrument: a histogram if it has buckets, else a counter."""

    unit: str
    description: str
    buckets: tuple[float, ...] = ()


METRICS: Mapping[str, Metric] = {
    "gateway.search.duration": Metric("s", "One search, cache hits included.", _SECONDS),
    "gateway.search.stage.duration": Metric(
        "s", "One stage of a search that was not cached.", _SECONDS
    ),
    "gateway.search.results": Metric(
        "{entity}", "How many entities each list of a result holds.", _COUNTS
    ),
    "gateway.search.fallbacks": Metric(
        "{fallback}", "Searches that wanted vectors and were answered by the graph."
    ),
    "gateway.index.build.duration": Metric(
        "s", "One build of the index, listing the sources included.", _DOUBLING
    ),
    "gateway.index.entities": Metric(
        "{entity}", "How many entities an index build found.", _ENTITIES
    ),
    "gateway.cache.requests": Metric("{request}", "Look-ups in a process-local cache."),
    "gateway.upstream.failures": Metric("{failure}", "Sources that could not be listed."),
    "gateway.usage.failures": Metric(
        "{failure}", "Times that the ledger of calls could not be read or written."
    ),
    "gateway.tools.quarantined": Metric(
        "{tool}", "Tools that were left out because their definition cannot be used."
    ),
    "gateway.chat.turns": Metric(
        "{turn}", "Requests to the model within one call of the wrapper.", _COUNTS
    ),
    "gateway.chat.definition.share": Metric(
        "1", "Tokens of tool definitions sent, against sending every schema.", _SHARES
    ),
    "gateway.chat.prefix.stability": Metric(
        "1", "The share of the requests' bytes that a prompt cache could know.", _SHARES
    ),
    "gen_ai.execute_tool.duration": Metric("s", "One tool call, ours or an upstream's.", _DOUBLING),
    "gen_ai.client.operation.duration": Metric(
        "s", "One request to an embedding model or to the normalizer's chat model.", _DOUBLING
    ),
    "gen_ai.client.token.usage": Metric(
        "{token}", "Tokens that a model reported for such a request.", _TOKENS
    ),
}
"""Every metric, by name."""


class ContentAttributes(NamedTuple):
    """The attributes that hold content of users and tools."""

    query: str = "gen_ai.retrieval.query.text"
    documents: str = "gen_ai.retrieval.documents"
    arguments: str = "gen_ai.tool.call.arguments"
    result: str = "gen_ai.tool.call.result"


CONTENT_ATTRIBUTES = ContentAttributes()
"""Set only when the host asks for content."""


class Telemetry:
    """The spans and instruments of one gateway.

    Args:
        tracer_provider: Where spans go; None is the process's own.
        meter_provider: Where metrics go; None is the process's own.
        capture_content: Whether spans may hold queries, arguments and results.
    """

    def __init__(
        self,
        *,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        capture_content: bool = False,
    ) -> None:
        self.capture_content = capture_content
        tracers = tracer_provider or trace.get_tracer_provider()
        meters = meter_provider or metrics.get_meter_provider()
        self._tracer = tracers.get_tracer(SCOPE, VERSION, SCHEMA_URL)
        meter = meters.get_meter(SCOPE, VERSION, SCHEMA_URL)
        self._histograms = {
            name: meter.create_histogram(
                name, unit, description, explicit_bucket_boundaries_advisory=buckets
            )
            for name, (unit, description, buckets) in METRICS.items()
            if buckets
        }
        self._counters = {
            name: meter.create_counter(name, unit, description)
            for name, (unit, description, buckets) in METRICS.items()
            if not buckets
        }

    @contextmanager
    def span(
        self, kind: str, target: str = "", attributes: Attributes | None = None
    ) -> Iterator[Span]:
        """Open a span of *kind*, current within the block; an exception marks it as failed.

        Args:
            kind: What it is, as `docs/telemetry.md` lists it.
            target: The second word of the span's name, of few values; may be empty.
            attributes: Those known at creation, which samplers read.
        """
        span = self.begin(kind, target, attributes)
        try:
            with self.within(span):
                yield span
        except BaseException as error:
            self.fail(span, type(error).__name__)
            raise
        finally:
            span.end()

    def begin(self, kind: str, target: str = "", attributes: Attributes | None = None) -> Span:
        """Start a span that no block bounds; its owner ends it, and may enter it with `within`.

        Args:
            kind: See `span`.
            target: See `span`.
            attributes: See `span`.
        """
        name = f"{kind} {target}" if target else kind
        initial = {**(attributes or {})}
        if not kind.startswith("gateway."):
            initial["gen_ai.operation.name"] = kind
        span_kind = SpanKind.CLIENT if kind in CLIENT_SPANS else SpanKind.INTERNAL
        return self._tracer.start_span(name, kind=span_kind, attributes=initial)

    def within(self, span: Span) -> AbstractContextManager[Span]:
        """Make *span* the parent of what the block starts, without ending it."""
        return trace.use_span(span, record_exception=False, set_status_on_exception=False)

    @contextmanager
    def timed(self, metric: str, attributes: dict[str, str | int | float | bool]) -> Iterator[None]:
        """Record the block's duration; *attributes* may be filled in while it runs."""
        started = time.perf_counter()
        try:
            yield
        except BaseException as error:
            attributes["error.type"] = type(error).__name__
            raise
        finally:
            self.record(metric, time.perf_counter() - started, attributes)

    def record(self, metric: str, value: float, attributes: Attributes | None = None) -> None:
        """Record *value* in the histogram *metric*."""
        self._histograms[metric].record(value, attributes)

    def add(self, metric: str, value: int = 1, attributes: Attributes | None = None) -> None:
        """Add *value* to the counter *metric*."""
        self._counters[metric].add(value, attributes)

    def cache_event(self, name: str, event: str) -> None:
        """Count one look-up in a cache."""
        self.add(
            "gateway.cache.requests",
            attributes={"gateway.cache.name": name, "gateway.cache.result": event},
        )

    def fail(self, span: Span, error_type: str) -> None:
        """Mark *span* as failed, without a message: it could hold content."""
        span.set_attribute("error.type", error_type)
        span.set_status(Status(StatusCode.ERROR))
