"""Spans and metrics by the OpenTelemetry API alone; loaded when somebody may hear of them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import Token

from opentelemetry import metrics, trace
from opentelemetry.context import Context, attach, detach
from opentelemetry.metrics import Counter, Histogram
from opentelemetry.trace import SpanKind, Status, StatusCode

from gateway.runtime import VERSION
from gateway.runtime.telemetry_names import (
    METRICS,
    SCHEMA_URL,
    SCOPE,
    SPANS,
    Attributes,
    MeterProvider,
    Span,
    TracerProvider,
)

_KINDS = {"internal": SpanKind.INTERNAL, "client": SpanKind.CLIENT}


class OpenTelemetry:
    """`Instruments` of OpenTelemetry's API.

    Args:
        tracer_provider: Where spans go; None is the process's own.
        meter_provider: Where metrics go; None is the process's own.
    """

    def __init__(
        self,
        tracer_provider: TracerProvider | None,
        meter_provider: MeterProvider | None,
    ) -> None:
        provider = tracer_provider or trace.get_tracer_provider()
        self._tracer = provider.get_tracer(SCOPE, VERSION, SCHEMA_URL)
        meter = (meter_provider or metrics.get_meter_provider()).get_meter(
            SCOPE, VERSION, SCHEMA_URL
        )
        self._histograms: dict[str, Histogram] = {}
        self._counters: dict[str, Counter] = {}
        for name, metric in METRICS.items():
            if metric.kind == "counter":
                self._counters[name] = meter.create_counter(name, metric.unit, metric.description)
            else:
                self._histograms[name] = meter.create_histogram(
                    name,
                    metric.unit,
                    metric.description,
                    explicit_bucket_boundaries_advisory=list(metric.buckets) or None,
                )

    def begin(self, kind: str, target: str, attributes: Attributes | None) -> trace.Span:
        """Start a span; see `Telemetry.begin`."""
        name = f"{kind} {target}" if target else kind
        given = {**attributes} if attributes else {}
        if not kind.startswith("gateway."):
            given["gen_ai.operation.name"] = kind
        span: trace.Span = self._tracer.start_span(
            name, kind=_KINDS[SPANS[kind].kind], attributes=given
        )
        return span

    def span(
        self, kind: str, target: str, attributes: Attributes | None
    ) -> AbstractContextManager[trace.Span]:
        """Open a span; see `Telemetry.span`."""
        return _Spanned(self.begin(kind, target, attributes))

    @contextmanager
    def within(self, span: Span) -> Iterator[None]:
        """Make *span* current; one that was begun when nobody listened is none."""
        if not isinstance(span, trace.Span):
            yield
            return
        token = attach(trace.set_span_in_context(span))
        try:
            yield
        finally:
            detach(token)

    def fail(self, span: Span, error_type: str) -> None:
        """Mark *span* as failed."""
        if isinstance(span, trace.Span):
            _fail(span, error_type)

    def timed(
        self, metric: str, attributes: dict[str, str | int | float | bool]
    ) -> AbstractContextManager[None]:
        """Record the block's duration."""
        return _Timed(self._histograms[metric], attributes)

    def record(self, metric: str, value: float, attributes: Attributes | None) -> None:
        """Record *value* in the histogram *metric*."""
        self._histograms[metric].record(value, attributes)

    def add(self, metric: str, value: int, attributes: Attributes | None) -> None:
        """Add *value* to the counter *metric*."""
        self._counters[metric].add(value, attributes)


class _Spanned(AbstractContextManager[trace.Span]):
    """A span's block. A class: a generator costs a search that is remembered a tenth."""

    __slots__ = ("_span", "_token")

    def __init__(self, span: trace.Span) -> None:
        self._span = span
        self._token: Token[Context] | None = None

    def __enter__(self) -> trace.Span:
        # Without a provider a span has no context: nobody's parent need not be made current.
        if self._span.get_span_context().is_valid:
            self._token = attach(trace.set_span_in_context(self._span))
        return self._span

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._token is not None:
            detach(self._token)
        if kind is not None:
            _fail(self._span, kind.__name__)
        self._span.end()


class _Timed(AbstractContextManager[None]):
    """A block whose duration is recorded."""

    __slots__ = ("_attributes", "_began", "_histogram")

    def __init__(
        self, histogram: Histogram, attributes: dict[str, str | int | float | bool]
    ) -> None:
        self._histogram = histogram
        self._attributes = attributes
        self._began = time.perf_counter()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self._attributes["error.type"] = kind.__name__
        self._histogram.record(time.perf_counter() - self._began, self._attributes)


def _fail(span: trace.Span, error_type: str) -> None:
    span.set_attribute("error.type", error_type)
    span.set_status(Status(StatusCode.ERROR))
