"""Metrics and spans as a test reads them."""

from __future__ import annotations

from collections.abc import Iterator

from opentelemetry.sdk.metrics.export import (
    HistogramDataPoint,
    InMemoryMetricReader,
    Metric,
    NumberDataPoint,
)

Point = NumberDataPoint | HistogramDataPoint


def recorded(reader: InMemoryMetricReader) -> Iterator[tuple[Metric, Point]]:
    """Give every data point of every metric."""
    data = reader.get_metrics_data()
    for resource in data.resource_metrics if data else ():
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                for point in metric.data.data_points:
                    if isinstance(point, NumberDataPoint | HistogramDataPoint):
                        yield metric, point


def counted(reader: InMemoryMetricReader, name: str, attribute: str) -> dict[object, float]:
    """Give the counts (or sums) of a metric by the values of one attribute."""
    found: dict[object, float] = {}
    for metric, point in recorded(reader):
        if metric.name == name:
            value = point.value if isinstance(point, NumberDataPoint) else point.sum
            key = (point.attributes or {}).get(attribute)
            found[key] = found.get(key, 0) + value
    return found
