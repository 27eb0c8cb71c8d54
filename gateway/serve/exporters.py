"""OpenTelemetry exporters of `gateway serve`, configured by the SDK's environment variables."""

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
"""Arguments that send console exporters to standard error, because standard output may be the MCP
connection."""
_REMEDY = 'pip install "tool-gateway[metrics]" for OTLP over HTTP and for Prometheus'


class _Configurator(_OTelSDKConfigurator):
    """The SDK's configurator, which must be subclassed."""


def start_exporters(
    *, with_page: bool, processor: SpanProcessor | None = None
) -> MetricsPage | None:
    """Set the telemetry providers if an environment variable or *with_page* requires them.

    Providers of an instrumentation agent are kept. *processor* also receives spans, unless the
    agent's provider accepts none. Return a page of metrics for
    Prometheus, or None without *with_page*.

    Raises:
        ConfigError: If an exporter is not installed, or an environment variable is invalid.
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
        # The configurator has no type annotations.
        _Configurator().configure(exporter_args_map=_CONSOLE)  # type: ignore[no-untyped-call]


def _add_processor(processor: SpanProcessor) -> None:
    provider = trace.get_tracer_provider()
    if isinstance(provider, trace.ProxyTracerProvider):
        # The environment variables requested no export.
        provider = TracerProvider()
        trace.set_tracer_provider(provider)
    if add := getattr(provider, "add_span_processor", None):
        add(processor)


def _prometheus_page() -> MetricsPage:
    from opentelemetry.exporter.prometheus import PrometheusMetricReader  # noqa: PLC0415  (extra)
    from prometheus_client import CollectorRegistry, ProcessCollector, make_asgi_app  # noqa: PLC0415

    registry = CollectorRegistry()
    # Memory, CPU time and open files, where /proc exists.
    ProcessCollector(registry=registry)
    provider = metrics.get_meter_provider()
    if isinstance(provider, MeterProvider):
        provider.add_metric_reader(PrometheusMetricReader(registry=registry))
    return make_asgi_app(registry)


def stop_exporters() -> None:
    """Export the remaining telemetry within some seconds, before a signal ends the process."""
    providers = trace.get_tracer_provider(), metrics.get_meter_provider()
    sdk = [
        provider for provider in providers if isinstance(provider, TracerProvider | MeterProvider)
    ]
    # Executors accept no work during the interpreter's shutdown.
    threads = [Thread(target=provider.shutdown, daemon=True) for provider in sdk]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(_GRACE_S / len(threads))
