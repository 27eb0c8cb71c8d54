"""The demo's spans and metrics, kept in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import (
    ExponentialHistogramDataPoint,
    HistogramDataPoint,
    InMemoryMetricReader,
    NumberDataPoint,
)
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

Point = NumberDataPoint | HistogramDataPoint | ExponentialHistogramDataPoint
_STAGE_DURATION = "gateway.search.stage.duration"
_DURATIONS = {
    "gateway.index.build.duration": "index build",
    "gen_ai.execute_tool.duration": "tool calls",
}
_CACHE_REQUESTS = "gateway.cache.requests"


@dataclass(frozen=True, slots=True)
class Metrics:
    """What was measured so far."""

    seconds: dict[str, float]
    """By stage."""
    hits: int
    lookups: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanNode:
    """One span and its children, in the order of their start."""

    name: str
    duration_ms: float
    attributes: Mapping[str, object]
    children: tuple[SpanNode, ...]


class DemoTelemetry:
    """Collects the spans and metrics of one gateway; give it both providers."""

    def __init__(self) -> None:
        self._reader = InMemoryMetricReader()
        self._exporter = InMemorySpanExporter()
        self.meter_provider = MeterProvider(metric_readers=[self._reader], shutdown_on_exit=False)
        self.tracer_provider = TracerProvider(shutdown_on_exit=False)
        self.tracer_provider.add_span_processor(SimpleSpanProcessor(self._exporter))

    def metrics(self) -> Metrics:
        """Return the sums of what was measured so far."""
        seconds: dict[str, float] = {}
        counts = {"hit": 0, "miss": 0}
        for name, point in self._points():
            attributes = point.attributes or {}
            if isinstance(point, HistogramDataPoint) and name in {*_DURATIONS, _STAGE_DURATION}:
                stage = f"search: {attributes.get('gateway.search.stage')}"
                stage = _DURATIONS.get(name, stage)
                seconds[stage] = seconds.get(stage, 0.0) + point.sum
            elif isinstance(point, NumberDataPoint) and name == _CACHE_REQUESTS:
                event = str(attributes.get("gateway.cache.result"))
                counts[event] = counts.get(event, 0) + int(point.value)
        hits = counts["hit"]
        return Metrics(seconds=seconds, hits=hits, lookups=hits + counts["miss"])

    def _points(self) -> Iterator[tuple[str, Point]]:
        data = self._reader.get_metrics_data()
        for resource in data.resource_metrics if data else ():
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    for point in metric.data.data_points:
                        yield metric.name, point

    def span_tree(self) -> tuple[SpanNode, ...]:
        """Return the finished spans, roots first."""
        spans = sorted(self._exporter.get_finished_spans(), key=lambda span: span.start_time or 0)
        ids = {span.context.span_id for span in spans if span.context}
        children: dict[int, list[ReadableSpan]] = {}
        for span in spans:
            parent = span.parent.span_id if span.parent else 0
            children.setdefault(parent if parent in ids else 0, []).append(span)
        return _span_nodes(children, 0)


def _span_nodes(
    children: Mapping[int, Sequence[ReadableSpan]], parent: int
) -> tuple[SpanNode, ...]:
    return tuple(
        SpanNode(
            name=span.name,
            duration_ms=((span.end_time or 0) - (span.start_time or 0)) / 1e6,
            attributes=dict(span.attributes or {}),
            children=_span_nodes(children, span.context.span_id) if span.context else (),
        )
        for span in children.get(parent, ())
    )
