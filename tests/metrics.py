"""Access to metrics and spans in tests."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import (
    HistogramDataPoint,
    InMemoryMetricReader,
    Metric,
    NumberDataPoint,
)
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

Point = NumberDataPoint | HistogramDataPoint


def recorded(reader: InMemoryMetricReader) -> Iterator[tuple[Metric, Point]]:
    data = reader.get_metrics_data()
    for resource in data.resource_metrics if data else ():
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                for point in metric.data.data_points:
                    if isinstance(point, NumberDataPoint | HistogramDataPoint):
                        yield metric, point


def counted(reader: InMemoryMetricReader, name: str, attribute: str) -> dict[object, float]:
    """Return the sums of the metric *name*, keyed by the values of *attribute*."""
    counts: dict[object, float] = {}
    for metric, point in recorded(reader):
        if metric.name == name:
            value = point.value if isinstance(point, NumberDataPoint) else point.sum
            key = (point.attributes or {}).get(attribute)
            counts[key] = counts.get(key, 0) + value
    return counts


class Documented(NamedTuple):
    """One row of `docs/telemetry.md`."""

    cells: list[str]
    """Cells of the row between the name and the attributes."""
    attributes: set[str]


def documented() -> dict[str, Documented]:
    page = Path(__file__).parents[1] / "docs" / "telemetry.md"
    rows = [line for line in page.read_text(encoding="utf-8").splitlines() if line[:3] == "| `"]
    table = {}
    for row in rows:
        name, *cells, attributes = (cell.strip() for cell in row.strip("|").split("|"))
        table[name.strip("`")] = Documented(cells, set(re.findall("`(.+?)`", attributes)))
    return table


class Watch:
    def __init__(self) -> None:
        self.spans = InMemorySpanExporter()
        self.began: list[str] = []
        """Names of all started spans."""
        self.reader = InMemoryMetricReader()
        self.tracer = TracerProvider(shutdown_on_exit=False)
        self.tracer.add_span_processor(SimpleSpanProcessor(self.spans))
        self.tracer.add_span_processor(_Beginnings(self.began))
        self.meter = MeterProvider([self.reader], shutdown_on_exit=False)

    @property
    def finished(self) -> Sequence[ReadableSpan]:
        return self.spans.get_finished_spans()

    def named(self, start: str) -> list[ReadableSpan]:
        return [span for span in self.finished if span.name.startswith(start)]

    def of(self, name: str) -> ReadableSpan:
        (span,) = [span for span in self.finished if span.name == name]
        return span

    def written(self) -> str:
        points = [
            (metric.name, dict(point.attributes or {})) for metric, point in recorded(self.reader)
        ]
        return json.dumps([span.to_json() for span in self.finished]) + json.dumps(points)


class _Beginnings(SpanProcessor):
    def __init__(self, began: list[str]) -> None:
        self._began = began

    def on_start(self, span: Span, parent_context: object = None) -> None:
        self._began.append(span.name)
