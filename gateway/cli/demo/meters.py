"""The demo's metrics, read from memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import (
    ExponentialHistogramDataPoint,
    HistogramDataPoint,
    InMemoryMetricReader,
    NumberDataPoint,
)

Point = NumberDataPoint | HistogramDataPoint | ExponentialHistogramDataPoint
_STAGE = "gateway.search.stage.duration"
_WHOLE = {
    "gateway.index.build.duration": "index build",
    "gen_ai.execute_tool.duration": "tool calls",
}
_CACHE = "gateway.cache.requests"


@dataclass(frozen=True, slots=True)
class Reading:
    """What was measured until now."""

    seconds: dict[str, float]
    """By stage."""
    hits: int
    lookups: int


class Meters:
    """Collects what a gateway measures."""

    def __init__(self) -> None:
        self._reader = InMemoryMetricReader()
        self.provider = MeterProvider(metric_readers=[self._reader], shutdown_on_exit=False)
        """Give this to the gateway."""

    def read(self) -> Reading:
        """Add up what was measured until now."""
        seconds: dict[str, float] = {}
        events: dict[str, int] = {}
        for name, point in self._points():
            told = point.attributes or {}
            if isinstance(point, HistogramDataPoint) and (name in _WHOLE or name == _STAGE):
                stage = _WHOLE.get(name) or f"search: {told.get('gateway.search.stage')}"
                seconds[stage] = seconds.get(stage, 0.0) + point.sum
            elif isinstance(point, NumberDataPoint) and name == _CACHE:
                event = str(told.get("gateway.cache.result"))
                events[event] = events.get(event, 0) + int(point.value)
        hits = events.get("hit", 0)
        return Reading(seconds=seconds, hits=hits, lookups=hits + events.get("miss", 0))

    def _points(self) -> Iterator[tuple[str, Point]]:
        data = self._reader.get_metrics_data()
        for resource in data.resource_metrics if data else ():
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    for point in metric.data.data_points:
                        yield metric.name, point
