"""Spans and metrics of a gateway, by the OpenTelemetry API alone.

* Without a provider of the host's, every call is a no-op.
* No query, argument, result or description is sent unless the host asked for content.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from opentelemetry import metrics, trace
from opentelemetry.metrics import Counter, Histogram, MeterProvider
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, TracerProvider

from gateway.runtime import VERSION
from gateway.runtime.telemetry_names import METRICS, SCHEMA_URL, SCOPE, SPANS, Attributes

__all__ = ["MeterProvider", "Span", "Telemetry", "TracerProvider"]

_KINDS = {"internal": SpanKind.INTERNAL, "client": SpanKind.CLIENT}


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

    @contextmanager
    def span(
        self, kind: str, target: str = "", attributes: Attributes | None = None
    ) -> Iterator[Span]:
        """Open a span of *kind*, current within the block; an exception marks it as failed.

        Args:
            kind: A key of `SPANS`.
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
            kind: A key of `SPANS` that names an operation.
            target: See `span`.
            attributes: See `span`.
        """
        name = f"{kind} {target}" if target else kind
        initial = {**(attributes or {})}
        if not kind.startswith("gateway."):
            initial["gen_ai.operation.name"] = kind
        return self._tracer.start_span(name, kind=_KINDS[SPANS[kind].kind], attributes=initial)

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
