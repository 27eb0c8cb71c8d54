"""Spans and metrics of a gateway, by the OpenTelemetry API alone.

* Without a provider of the host's, every call is a no-op.
* No query, argument, result or description is sent unless the host asked for content.
* What the host's providers raise ends no work: it is logged once (`Telemetry.call_host`).
* Names stand in `telemetry_names`.
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
"""Returns the present values of gauges, by metric and by the value of its label. Called on any
thread."""
log = logging.getLogger("gateway.telemetry")
_MISSING = "a tracer or meter of the host raised %s: spans or metrics are missing, all else goes on"


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
        self._has_failed = False
        tracers = tracer_provider or trace.get_tracer_provider()
        meters = meter_provider or metrics.get_meter_provider()
        scope = SCOPE, VERSION, SCHEMA_URL
        self._tracer = self.call_host(trace.NoOpTracer(), tracers.get_tracer, *scope)
        self._gauges: list[ReadGauges] = []
        own = meters is not metrics.get_meter_provider()

        def measure() -> None:
            meter = meters.get_meter(*scope)
            self._make_instruments(meter)
            _report_gauges(self, meters if own else Telemetry, meter)

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
        """Return what *function* of the host's providers returns, or *default* if it raises."""
        answer = attempt_call(partial(function, *arguments, **named))
        if not isinstance(answer, Failed):
            return answer
        if not self._has_failed:
            self._has_failed = True
            # By its type alone: its message may hold what no log may have.
            log.warning(_MISSING, type(answer.error).__name__)
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
        """Begin what has a span of *kind*, and *metric* for its duration.

        Args:
            kind: What it is, as `docs/telemetry.md` lists it.
            target: The second word of the span's name, of few values; may be empty.
            attributes: Those of the span alone. What is known now samplers read.
            metric: A histogram of seconds; "" for none.
            labels: Attributes of both; those of the metric may be filled in until the end.
        """
        name = f"{kind} {target}" if target else kind
        initial = {**labels, **(attributes or {})}
        if not kind.startswith("gateway."):
            initial["gen_ai.operation.name"] = kind
        span_kind = SpanKind.CLIENT if kind in CLIENT_SPANS else SpanKind.INTERNAL

        def start() -> Span:
            span = self._tracer.start_span(name, kind=span_kind, attributes=initial)
            # Libraries that are called within it ask for this, and know of no failure.
            span.get_span_context()
            return span

        return TimedSpan(self, self.call_host(trace.INVALID_SPAN, start), metric, labels)

    @contextmanager
    def within(self, span: Span) -> Iterator[None]:
        """Make *span* the parent of what the block starts, without ending it."""
        # Not `use_span`: it asks the span when the block raises.
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
        """Let *read* be asked for gauges whenever metrics are collected."""
        self._gauges.append(read)

    def gauge(self, metric: str) -> Mapping[str, float]:
        """Return the values of the gauge *metric* as they are now, by label; empty for none."""
        readings = (read().get(metric, {}) for read in self._gauges)
        return {label: value for reading in readings for label, value in reading.items()}

    def close(self) -> None:
        """Report no gauge any more."""
        self._gauges = []

    def store_failed(self, store: str, error_types: Iterable[str]) -> None:
        """Count each failure of a store: ``vectors``, ``catalog``, ``index`` or ``call_log``."""
        for error_type in error_types:
            labels = {"gateway.store.name": store, "error.type": error_type}
            self.add("gateway.store.failures", attributes=labels)

    def tool_call(
        self, name: str, *, kind: str = "function", server: str = "", call_id: str = ""
    ) -> AbstractContextManager[TimedSpan]:
        """Trace and time one call of a tool; an exception marks it as failed.

        Args:
            name: The tool's exposed name; `OTHER` for one that is not in the catalog, since a
                model may have written anything.
            kind: ``function``, or ``extension`` and ``datastore`` for the tools that are ours.
            server: Of the tool; "" for none.
            call_id: The model's id of the call; "" for none.
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
        """Begin a request to a model; its owner ends it.

        Args:
            operation: ``chat`` or ``embeddings``.
            endpoint: The model.
            attributes: Others of its span.
        """
        labels: Labels = {"gen_ai.operation.name": operation, **endpoint.attributes}
        metric = "gen_ai.client.operation.duration"
        return self.operation(operation, endpoint.model, attributes, metric=metric, labels=labels)

    def cache_event(self, name: str, event: str) -> None:
        """Count one look-up in a cache."""
        labels = {"gateway.cache.name": name, "gateway.cache.result": event}
        self.add("gateway.cache.requests", attributes=labels)


class TimedSpan:
    """What has a span, and its duration as a metric. Its owner ends it, once, or `within` does."""

    def __init__(self, telemetry: Telemetry, span: Span, metric: str, labels: Labels) -> None:
        self.span = span
        self._telemetry = telemetry
        self._metric = metric
        self._labels = labels
        self._started = time.perf_counter()

    @property
    def is_recording(self) -> bool:
        """Whether attributes of its span go anywhere."""
        return self._telemetry.call_host(False, self.span.is_recording)

    def describe(self, attributes: Attributes) -> None:
        """Set *attributes* of its span."""
        self._telemetry.call_host(None, self.span.set_attributes, attributes)

    def count(self, usage: TokenUsage) -> None:
        """Note the tokens that a service reported for it."""
        self.describe(usage.attributes)
        for kind, tokens in {"input": usage.input, "output": usage.output}.items():
            if tokens is not None:
                labels = {**self._labels, "gen_ai.token.type": kind}
                self._telemetry.record("gen_ai.client.token.usage", tokens, labels)

    def fail(self, error_type: str) -> None:
        """Mark it as failed, in its span and in its metric, without a message: it could hold
        content.
        """
        self._labels["error.type"] = error_type
        self.describe({"error.type": error_type})
        self._telemetry.call_host(None, self.span.set_status, Status(StatusCode.ERROR))

    def end(self) -> None:
        """End it."""
        if self._metric:
            self._telemetry.record(self._metric, time.perf_counter() - self._started, self._labels)
        self._telemetry.call_host(None, self.span.end)

    @contextmanager
    def within(self) -> Iterator[Self]:
        """Make it current within the block, and end it with the block; an exception fails it."""
        try:
            with self._telemetry.within(self.span):
                yield self
        except BaseException as error:
            self.fail(type(error).__name__)
            raise
        finally:
            self.end()


_REPORTING: WeakKeyDictionary[object, WeakSet[Telemetry]] = WeakKeyDictionary()
"""The gateways whose gauges a provider collects: an SDK asks one callback a name, so that one adds
them all up."""
_LOCK = Lock()


def _report_gauges(telemetry: Telemetry, provider: object, meter: metrics.Meter) -> None:
    """Have the gauges of *telemetry* collected, as long as it lives.

    Args:
        telemetry: Of one gateway.
        provider: What collects; a class stands for the process's own, which may be set later.
        meter: Of that provider.
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
    """Return the values of a gauge over all gateways: ages as the greatest, others added up."""
    with _LOCK:
        gateways = tuple(reporting)
    label, is_age = METRICS[name].label, METRICS[name].unit == "s"
    totals: dict[str, float] = {}
    for telemetry in gateways:
        for key, value in telemetry.gauge(name).items():
            before = totals.get(key, 0.0)
            totals[key] = max(before, value) if is_age else before + value
    return [Observation(value, {label: key} if label else None) for key, value in totals.items()]
