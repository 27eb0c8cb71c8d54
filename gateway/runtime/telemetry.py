"""Spans and metrics of a gateway, with the OpenTelemetry API only. Names: `telemetry_names`.

* Without a provider, every call is a no-op.
* Queries, arguments, results and descriptions are sent only if the host enables content capture.
* Exceptions of the host's providers do not end work; the first one is logged.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from threading import Lock
from typing import ParamSpec, Self, TypeAlias, TypeVar
from weakref import WeakKeyDictionary, WeakSet

from opentelemetry import context, metrics, trace
from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, TracerProvider

from gateway.errors import Failed, attempt_call
from gateway.runtime import VERSION
from gateway.runtime.model_endpoint import ModelEndpoint, TokenUsage
from gateway.runtime.telemetry_names import CLIENT_SPANS, METRICS, SCHEMA_URL, SCOPE

__all__ = ["MeterProvider", "Span", "Telemetry", "TracerProvider"]

P = ParamSpec("P")
T = TypeVar("T")
Attributes: TypeAlias = Mapping[str, str | int | float | bool | Sequence[str]]
Labels: TypeAlias = dict[str, str | int | float | bool]
ReadGauges: TypeAlias = Callable[[], Mapping[str, Mapping[str, float]]]
"""Returns current values of gauges, keyed by metric and then by label. Called on any thread."""
log = logging.getLogger("gateway.telemetry")
_PROVIDER_FAILED = (
    "a tracer or meter of the host raised %s: spans or metrics are missing, the rest works"
)


class Telemetry:
    """Spans and metrics of one gateway.

    Args:
        tracer_provider: Receiver of spans; None is the process's provider.
        meter_provider: Receiver of metrics; None is the process's provider.
        capture_content: True if spans may contain queries, arguments and results.
    """

    def __init__(
        self,
        *,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        capture_content: bool = False,
    ) -> None:
        self.capture_content = capture_content
        self._has_failed = False
        tracers = tracer_provider or trace.get_tracer_provider()
        meters = meter_provider or metrics.get_meter_provider()
        scope = SCOPE, VERSION, SCHEMA_URL
        self._tracer = self.call_host(trace.NoOpTracer(), tracers.get_tracer, *scope)
        self._gauges: list[ReadGauges] = []
        has_own_meters = meters is not metrics.get_meter_provider()

        def measure() -> None:
            meter = meters.get_meter(*scope)
            self._make_instruments(meter)
            _report_gauges(self, meters if has_own_meters else Telemetry, meter)

        self._make_instruments(metrics.NoOpMeter(SCOPE))
        self.call_host(None, measure)

    def _make_instruments(self, meter: metrics.Meter) -> None:
        histograms: dict[str, metrics.Histogram] = {}
        counters: dict[str, metrics.Counter] = {}
        for name, metric in METRICS.items():
            texts = name, metric.unit, metric.description
            if metric.kind == "histogram":
                histograms[name] = meter.create_histogram(
                    *texts, explicit_bucket_boundaries_advisory=metric.buckets
                )
            elif metric.kind == "counter":
                counters[name] = meter.create_counter(*texts)
        self._histograms, self._counters = histograms, counters

    def call_host(
        self, default: T, function: Callable[P, T], *arguments: P.args, **named: P.kwargs
    ) -> T:
        """Return the result of a provider's *function*, or *default* if it raises an exception."""
        answer = attempt_call(partial(function, *arguments, **named))
        if not isinstance(answer, Failed):
            return answer
        if not self._has_failed:
            self._has_failed = True
            # Only the type of the exception, because its message may contain secrets.
            log.warning(_PROVIDER_FAILED, type(answer.error).__name__)
        return default

    def operation(
        self,
        kind: str,
        target: str = "",
        attributes: Attributes | None = None,
        *,
        metric: str = "",
        labels: Labels,
    ) -> TimedSpan:
        """Start a span, and the timer of a duration metric.

        Args:
            kind: First word of the span's name, as listed in `docs/telemetry.md`.
            target: Second word of the span's name, with few distinct values; may be empty.
            attributes: Attributes of the span only. Samplers see them.
            metric: Name of a histogram of seconds; empty records no duration.
            labels: Attributes of the span and the metric. Labels that the caller adds before the
                end of the span still reach the metric.
        """
        name = f"{kind} {target}" if target else kind
        initial = {**labels, **(attributes or {})}
        if not kind.startswith("gateway."):
            initial["gen_ai.operation.name"] = kind
        span_kind = SpanKind.CLIENT if kind in CLIENT_SPANS else SpanKind.INTERNAL

        def start() -> Span:
            span = self._tracer.start_span(name, kind=span_kind, attributes=initial)
            # A broken span must fail here, because libraries do not handle its errors.
            span.get_span_context()
            return span

        return TimedSpan(self, self.call_host(trace.INVALID_SPAN, start), metric, labels)

    @contextmanager
    def within(self, span: Span) -> Iterator[None]:
        """Make *span* the parent of spans that start in the block, without ending it."""
        # `use_span` would call the span when the block raises an exception.
        token = context.attach(trace.set_span_in_context(span))
        try:
            yield
        finally:
            context.detach(token)

    def record(self, metric: str, value: float, attributes: Attributes | None = None) -> None:
        """Record *value* in the histogram *metric*."""
        self.call_host(None, self._histograms[metric].record, value, attributes)

    def add(self, metric: str, value: int = 1, attributes: Attributes | None = None) -> None:
        """Add *value* to the counter *metric*."""
        self.call_host(None, self._counters[metric].add, value, attributes)

    def observe(self, read: ReadGauges) -> None:
        """Register *read*, which is called whenever metrics are collected."""
        self._gauges.append(read)

    def gauge(self, metric: str) -> Mapping[str, float]:
        """Return the current values of the gauge *metric*, keyed by label."""
        readings = (read().get(metric, {}) for read in self._gauges)
        return {label: value for reading in readings for label, value in reading.items()}

    def close(self) -> None:
        """Stop reporting gauges."""
        self._gauges = []

    def store_failed(self, store: str, error_types: Iterable[str]) -> None:
        """Count failures of a store: ``vectors``, ``catalog``, ``index`` or ``call_log``."""
        for error_type in error_types:
            labels = {"gateway.store.name": store, "error.type": error_type}
            self.add("gateway.store.failures", attributes=labels)

    def tool_call(
        self, name: str, *, kind: str = "function", server: str = "", call_id: str = ""
    ) -> AbstractContextManager[TimedSpan]:
        """Trace and time one tool call. An exception marks it as failed.

        Args:
            name: Exposed name of the tool. `OTHER` for tools outside the catalog, because a model
                may write any text as a name.
            kind: ``function``; ``extension`` or ``datastore`` for the gateway's own tools.
            server: Server of the tool, or "".
            call_id: The model's id of the call, or "".
        """
        labels: Labels = {"gen_ai.tool.name": name, "gen_ai.tool.type": kind}
        if server:
            labels["gateway.server.name"] = server
        attributes = {"gen_ai.tool.call.id": call_id} if call_id else {}
        metric = "gateway.tool.duration"
        span = self.operation("execute_tool", name, attributes, metric=metric, labels=labels)
        return span.within()

    def model_request(
        self, operation: str, endpoint: ModelEndpoint, attributes: Attributes | None = None
    ) -> TimedSpan:
        """Start the span of a request (``chat`` or ``embeddings``). The caller ends it."""
        labels: Labels = {"gen_ai.operation.name": operation, **endpoint.attributes}
        metric = "gen_ai.client.operation.duration"
        return self.operation(operation, endpoint.model, attributes, metric=metric, labels=labels)

    def cache_event(self, name: str, event: str) -> None:
        """Count a lookup in a cache: ``hit``, ``miss`` or ``coalesced`` (shared running work)."""
        labels = {"gateway.cache.name": name, "gateway.cache.result": event}
        self.add("gateway.cache.requests", attributes=labels)


class TimedSpan:
    """A span with a duration metric, to be ended once, by `end` or by the block of `within`."""

    def __init__(self, telemetry: Telemetry, span: Span, metric: str, labels: Labels) -> None:
        self.span = span
        self._telemetry = telemetry
        self._metric = metric
        self._labels = labels
        self._started = time.perf_counter()

    @property
    def is_recording(self) -> bool:
        """True if attributes of the span are recorded."""
        return self._telemetry.call_host(False, self.span.is_recording)

    def describe(self, attributes: Attributes) -> None:
        """Set attributes of the span."""
        self._telemetry.call_host(None, self.span.set_attributes, attributes)

    def count(self, usage: TokenUsage) -> None:
        """Record the tokens that a model service reported."""
        self.describe(usage.attributes)
        for kind, tokens in {"input": usage.input, "output": usage.output}.items():
            if tokens is not None:
                labels = {**self._labels, "gen_ai.token.type": kind}
                self._telemetry.record("gen_ai.client.token.usage", tokens, labels)

    def fail(self, error_type: str) -> None:
        """Mark the span and the metric as failed, without a message, which could contain
        content.
        """
        self._labels["error.type"] = error_type
        self.describe({"error.type": error_type})
        self._telemetry.call_host(None, self.span.set_status, Status(StatusCode.ERROR))

    def end(self) -> None:
        """End the span and record its duration."""
        if self._metric:
            self._telemetry.record(self._metric, time.perf_counter() - self._started, self._labels)
        self._telemetry.call_host(None, self.span.end)

    @contextmanager
    def within(self) -> Iterator[Self]:
        """Make the span current in the block and end it. An exception marks it as failed."""
        try:
            with self._telemetry.within(self.span):
                yield self
        except BaseException as error:
            self.fail(type(error).__name__)
            raise
        finally:
            self.end()


_REPORTING: WeakKeyDictionary[object, WeakSet[Telemetry]] = WeakKeyDictionary()
"""Telemetry of all gateways that report gauges, keyed by provider. One callback adds up the values,
because an SDK calls only one callback for each name."""
_LOCK = Lock()


def _report_gauges(telemetry: Telemetry, provider: object, meter: metrics.Meter) -> None:
    """Report the gauges of *telemetry* while it exists.

    If *provider* is a class, they go to the process's provider, which may be set later.
    """
    with _LOCK:
        reporting = _REPORTING.get(provider)
        if reporting is None:
            reporting = _REPORTING[provider] = WeakSet()
            for name, metric in METRICS.items():
                if metric.kind == "gauge":
                    callback = partial(_observe, reporting, name)
                    meter.create_observable_gauge(name, [callback], metric.unit, metric.description)
        reporting.add(telemetry)


def _observe(
    reporting: WeakSet[Telemetry], name: str, _options: CallbackOptions
) -> Iterable[Observation]:
    """Return the values of a gauge of all gateways: the maximum of ages, the sum of others."""
    with _LOCK:
        gateways = tuple(reporting)
    label, is_age = METRICS[name].label, METRICS[name].unit == "s"
    totals: dict[str, float] = {}
    for telemetry in gateways:
        for key, value in telemetry.gauge(name).items():
            before = totals.get(key, 0.0)
            totals[key] = max(before, value) if is_age else before + value
    return [Observation(value, {label: key} if label else None) for key, value in totals.items()]
