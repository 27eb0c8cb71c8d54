"""Exporters of this process's spans and metrics, as the variables of OpenTelemetry's SDK ask, and
the console's record of spans.

Only a process that is the gateway's alone sets its providers: `gateway serve`. A library leaves
them to its host.
"""

from __future__ import annotations

import sys
from threading import Thread

from opentelemetry import metrics, trace
from opentelemetry.sdk._configuration import _OTelSDKConfigurator
from opentelemetry.sdk._logs.export import ConsoleLogRecordExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import ConsoleMetricExporter
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter

from gateway.errors import ConfigError
from gateway.options.environment import complete_telemetry
from gateway.serve.http import MetricsPage

_GRACE_S = 5
_CONSOLE = {
    exporter: {"out": sys.stderr}
    for exporter in (ConsoleSpanExporter, ConsoleMetricExporter, ConsoleLogRecordExporter)
}
"""Standard output may be the protocol's, and what reads it may still be there at the end."""
_REMEDY = 'pip install "tool-gateway[metrics]" for OTLP over HTTP and for Prometheus'


class _Configurator(_OTelSDKConfigurator):
    """The SDK's own, which reads all of its variables and must be subclassed."""


def start_exporters(
    *, with_page: bool, processor: SpanProcessor | None = None
) -> MetricsPage | None:
    """Set the process's providers if the variables ask for an export, or a page is wanted.

    Those that an agent around the process has set stay.

    Args:
        with_page: Whether Prometheus reads the metrics on a page.
        processor: Receives the spans too, such as `gateway.serve.console.spans.SpanRing`; unless
            the agent's provider takes none.

    Returns:
        That page.

    Raises:
        ConfigError: What exports is not installed, or a variable is no good.
    """
    try:
        if complete_telemetry() or with_page:
            _set_providers()
        if processor is not None:
            _add_processor(processor)
        return _prometheus_page() if with_page else None
    except (ImportError, RuntimeError, ValueError) as error:
        raise ConfigError(f"telemetry cannot be exported: {error}; {_REMEDY}") from error


def _set_providers() -> None:
    if not isinstance(metrics.get_meter_provider(), MeterProvider):
        # The SDK's has no types.
        _Configurator().configure(exporter_args_map=_CONSOLE)  # type: ignore[no-untyped-call]


def _add_processor(processor: SpanProcessor) -> None:
    provider = trace.get_tracer_provider()
    if isinstance(provider, trace.ProxyTracerProvider):
        # None is set so far.
        provider = TracerProvider()
        trace.set_tracer_provider(provider)
    if add := getattr(provider, "add_span_processor", None):
        add(processor)


def _prometheus_page() -> MetricsPage:
    from opentelemetry.exporter.prometheus import PrometheusMetricReader  # noqa: PLC0415  (extra)
    from prometheus_client import CollectorRegistry, ProcessCollector, make_asgi_app  # noqa: PLC0415

    registry = CollectorRegistry()
    # Memory, processor time and open files, where there is /proc.
    ProcessCollector(registry=registry)
    provider = metrics.get_meter_provider()
    if isinstance(provider, MeterProvider):
        provider.add_metric_reader(PrometheusMetricReader(registry=registry))
    return make_asgi_app(registry)


def stop_exporters() -> None:
    """Export what is left, for some seconds at most, before a process that a signal ends.

    Where a process ends by itself, the SDK does it by itself.
    """
    providers = trace.get_tracer_provider(), metrics.get_meter_provider()
    sdk = [each for each in providers if isinstance(each, TracerProvider | MeterProvider)]
    # No pool: at this point of a process it takes no work.
    threads = [Thread(target=each.shutdown, daemon=True) for each in sdk]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(_GRACE_S / len(threads))
