"""Telemetry of `gateway serve`: metrics for Prometheus, and OTLP."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition

import httpx2
from mcp import Client
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from gateway.testing.endpoint import Loopback
from tests.apps.cli.running import BIN, WITHOUT_PACKAGE, Place, child
from tests.apps.cli.test_serve import over_pipes

PROTOBUF = "application/x-protobuf"
ONLY_AT_THE_END = {"OTEL_BSP_SCHEDULE_DELAY": "600000", "OTEL_METRIC_EXPORT_INTERVAL": "600000"}
"""Milliseconds between exports, much longer than a test."""


class Collector:
    """A collector of OpenTelemetry on this machine: OTLP over HTTP, as protobuf."""

    def __init__(self) -> None:
        self.spans: list[str] = []
        self.metrics: set[str] = set()
        self.services: set[str] = set()
        self.keys: set[str] = set()
        """Values of the header ``x-key`` of the received requests."""
        self._arrival = Condition()
        routes = [
            Route("/v1/traces", self._take_spans, methods=["POST"]),
            Route("/v1/metrics", self._take_metrics, methods=["POST"]),
        ]
        self._server = Loopback(Starlette(routes=routes))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.port}"

    @contextmanager
    def listening(self) -> Iterator[None]:
        self._server.start()
        try:
            yield
        finally:
            self._server.close()

    async def arrived(self, span: str) -> bool:
        """Wait until a span named *span* is received; return whether it arrived."""

        def wait() -> bool:
            with self._arrival:
                return self._arrival.wait_for(lambda: span in self.spans, 120)

        return await asyncio.to_thread(wait)

    async def _take_spans(self, request: Request) -> Response:
        export = ExportTraceServiceRequest.FromString(await request.body())
        self._note(request, [each.resource for each in export.resource_spans])
        with self._arrival:
            for resource in export.resource_spans:
                for scope in resource.scope_spans:
                    self.spans += [span.name for span in scope.spans]
            self._arrival.notify_all()
        return Response(ExportTraceServiceResponse().SerializeToString(), media_type=PROTOBUF)

    async def _take_metrics(self, request: Request) -> Response:
        export = ExportMetricsServiceRequest.FromString(await request.body())
        self._note(request, [each.resource for each in export.resource_metrics])
        for resource in export.resource_metrics:
            for scope in resource.scope_metrics:
                self.metrics |= {metric.name for metric in scope.metrics}
        return Response(ExportMetricsServiceResponse().SerializeToString(), media_type=PROTOBUF)

    def _note(self, request: Request, resources: list[object]) -> None:
        self.keys.add(request.headers.get("x-key", ""))
        for resource in resources:
            for attribute in getattr(resource, "attributes", ()):
                if attribute.key == "service.name":
                    self.services.add(attribute.value.string_value)


async def search_and_call(client: Client) -> None:
    """Search for a tool until its server has started, and call the tool."""
    async with asyncio.timeout(120):
        while True:
            result = await client.call_tool("search_tools", {"query": "current time"})
            if (result.structured_content or {})["tools"]:
                break
    arguments = {"timezone": "Europe/Kyiv"}
    called = {"name": "get_current_time", "arguments": arguments}
    assert not (await client.call_tool("call_tool", called)).is_error


def use(url: str) -> None:
    """Search for a tool and call it over HTTP."""

    async def talk() -> None:
        async with Client(url) as client:
            await search_and_call(client)

    asyncio.run(talk())


def series(page: str) -> list[Sample]:
    """Return the samples of a metrics page."""
    return [one for family in text_string_to_metric_families(page) for one in family.samples]


def test_metrics_page_counts_searches_calls_and_requests(place: Place) -> None:
    """Ids of entities are not used as labels, because there are too many."""
    with (
        place.serve("--config", place.config(), "--metrics") as (_, _, url),
        httpx2.Client(base_url=url.removesuffix("/mcp"), trust_env=False) as http,
    ):
        use(url)
        http.get("/api/entities/time/get_current_time")
        http.get("/no/such/path")
        page = http.get("/metrics")

    counts = {
        (
            sample.name,
            sample.labels.get("http_route"),
            sample.labels.get("http_response_status_code"),
        )
        for sample in series(page.text)
        if sample.value and sample.name.endswith("_count")
    }
    request = "http_server_request_duration_seconds_count"
    assert page.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert {
        ("gateway_search_duration_seconds_count", None, None),
        ("gateway_tool_duration_seconds_count", None, None),
        (request, "/mcp", "200"),
        (request, "/api/entities/{id}", "200"),
        (request, "", "404"),
    } <= counts


def test_spans_and_metrics_are_exported_to_the_configured_collector(place: Place) -> None:
    """Remaining data is exported at the end."""
    collector = Collector()
    with collector.listening():
        variables = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
            "OTEL_EXPORTER_OTLP_HEADERS": "x-key=abc",
        }
        config = place.config()
        with place.serve("--config", config, **variables, **ONLY_AT_THE_END) as (_, _, url):
            use(url)
            before = [*collector.spans]

    assert [] == before
    assert {"retrieval catalog", "execute_tool get_current_time"} <= {*collector.spans}
    assert {
        "gateway.search.duration",
        "gateway.tool.duration",
        "http.server.request.duration",
    } <= collector.metrics
    assert ({"tool-gateway"}, {"abc"}) == (collector.services, collector.keys)


def test_serve_over_pipes_exports_spans_alone(place: Place) -> None:
    """Nothing but MCP messages is printed to standard output."""
    collector = Collector()
    variables = {"OTEL_BSP_SCHEDULE_DELAY": "50", "OTEL_SERVICE_NAME": "mine"}

    async def talk(endpoint: str) -> bool:
        more = {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": endpoint, **variables}
        async with over_pipes(place, place.config(), **more) as client:
            await search_and_call(client)
            return await collector.arrived("execute_tool get_current_time")

    with collector.listening():
        arrived = asyncio.run(talk(f"{collector.url}/v1/traces"))

    assert arrived
    assert ({"mine"}, set()) == (collector.services, collector.metrics)


def test_serve_over_pipes_prints_console_telemetry_to_standard_error(place: Place) -> None:
    """Each line of standard output is a message of the protocol, even after the client has left."""
    signals = ("TRACES", "METRICS", "LOGS")
    at_once = {"OTEL_BSP_SCHEDULE_DELAY": "50", "OTEL_METRIC_EXPORT_INTERVAL": "50"}
    variables = {f"OTEL_{signal}_EXPORTER": "console" for signal in signals} | at_once
    client = {"clientInfo": {"name": "test", "version": "1"}, "capabilities": {}}
    begin = {"method": "initialize", "params": {"protocolVersion": "2025-06-18", **client}}
    search = {"name": "search_tools", "arguments": {"query": "time"}}
    requests = (
        {"id": 1, **begin},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": search},
    )
    config = place.config({})
    with subprocess.Popen(
        [sys.executable, "-m", "gateway", "serve", "--strategy", "graph", "--config", config],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={"PATH": str(BIN), "GATEWAY_CACHE_DIR": str(place.cache), **variables},
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for request in requests:
            process.stdin.write(json.dumps({"jsonrpc": "2.0", **request}) + "\n")
        process.stdin.flush()
        answers = [json.loads(process.stdout.readline()) for _ in range(2)]
        others, console = process.communicate(timeout=120)

    assert ([1, 2], "") == ([answer["id"] for answer in answers], others)
    assert '"name": "retrieval catalog"' in console
    assert '"name": "gateway.search.duration"' in console


def test_serve_reports_a_telemetry_exporter_that_is_not_installed_before_serving(
    place: Place,
) -> None:
    """Otherwise the missing telemetry would be noticed late."""
    serve = ("serve", "--http", "--port", "0", "--config", place.config({}))
    without = WITHOUT_PACKAGE.format("opentelemetry.exporter.prometheus")
    page = child("-c", without, *serve, "--metrics", cwd=place.folder, env={})
    # Other variables would stay set for all tests.
    own = dict.fromkeys(("OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_SERVICE_NAME"), "")
    spans = place.run(*serve, env={"OTEL_TRACES_EXPORTER": "nothing", **own})

    assert (2, 2) == (page.code, spans.code)
    assert 'pip install "tool-gateway[metrics]"' in page.err
    assert "'nothing' not found" in spans.err


def test_serve_over_pipes_refuses_the_option_metrics(place: Place) -> None:
    ran = place.run("serve", "--metrics", "--config", place.config({}))

    assert (2, True) == (ran.code, "--metrics: only for HTTP, so add --http" in ran.err)


def test_serve_keeps_the_telemetry_providers_of_an_agent(place: Place) -> None:
    """An OpenTelemetry agent has set up exports already, so only the metrics page is added."""
    script = """
from opentelemetry import metrics
from opentelemetry.sdk.metrics import MeterProvider
provider = MeterProvider(shutdown_on_exit=False)
metrics.set_meter_provider(provider)
from gateway.serve.exporters import start_exporters
assert start_exporters(with_page=False) is None
assert start_exporters(with_page=True) is not None
print(metrics.get_meter_provider() is provider)
"""
    ran = child("-c", script, cwd=place.folder, env={"OTEL_METRICS_EXPORTER": "nothing"})

    assert (0, "True\n") == (ran.code, ran.out)


def test_span_processor_is_added_to_the_telemetry_provider_of_an_agent(place: Place) -> None:
    """Without such a provider, a provider without exporters is created."""
    script = """
import os, sys
from opentelemetry import trace
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from gateway.serve.exporters import start_exporters
class Processor(SpanProcessor):
    def on_end(self, span):
        print(span.name)
# A provider is for the whole process: a child has none yet.
which = "none" if os.fork() == 0 else "agent"
if which == "agent":
    assert os.wait()[1] == 0
provider = TracerProvider()
if which == "agent":
    trace.set_tracer_provider(provider)
assert start_exporters(with_page=False, processor=Processor()) is None
assert (trace.get_tracer_provider() is provider) == (which == "agent")
trace.get_tracer("t").start_span(which).end()
"""
    ran = child("-c", script, cwd=place.folder, env={})

    assert (0, "none\nagent\n") == (ran.code, ran.out), ran.err


def test_open_console_stream_does_not_delay_the_shutdown(place: Place) -> None:
    """The server ends the stream regularly; a broken stream would raise."""
    with place.serve("--config", place.config({})) as (process, messages, url):
        token = (
            next(line for line in messages if "note: console" in line).split("token=")[1].strip()
        )
        events = url.replace("/mcp", "/console/activity/events")
        headers = {"Authorization": f"Bearer {token}"}
        with httpx2.stream("GET", events, headers=headers, trust_env=False) as stream:
            lines = stream.iter_lines()
            begin = next(lines)
            process.terminate()
            others = [*lines]

    assert (200, ":") == (stream.status_code, begin)
    # The first index build may end meanwhile.
    assert {line.partition(":")[0] for line in others} <= {"", "event", "data"}
