"""Metrics and spans as a test reads them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

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


class Documented(NamedTuple):
    """One row of `docs/telemetry.md`."""

    cells: list[str]
    """Those between the name and the attributes."""
    attributes: set[str]


def documented() -> dict[str, Documented]:
    """Return every span and metric of the document, by name."""
    page = Path(__file__).parents[1] / "docs" / "telemetry.md"
    rows = [line for line in page.read_text(encoding="utf-8").splitlines() if line[:3] == "| `"]
    table = {}
    for row in rows:
        name, *cells, attributes = (cell.strip() for cell in row.strip("|").split("|"))
        table[name.strip("`")] = Documented(cells, set(re.findall("`(.+?)`", attributes)))
    return table
