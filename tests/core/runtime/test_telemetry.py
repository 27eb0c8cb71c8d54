"""Spans and metrics of a gateway (rule 10 in `tests/requirements.py`), which omit contents of
users.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import replace

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import (
    HistogramDataPoint,
    MetricExporter,
    MetricExportResult,
    PeriodicExportingMetricReader,
)
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import StatusCode

from gateway.errors import UpstreamTimeoutError
from gateway.gateway import Gateway
from gateway.options import Options, UpstreamOptions
from gateway.runtime.telemetry import Telemetry
from gateway.runtime.telemetry_names import CONTENT_ATTRIBUTES, METRICS
from gateway.testing import HashingEmbedder
from gateway.types import ToolDefinition
from tests.conftest import PATIENT, InstallPlugin, OpenGateway
from tests.fakes import Shelf, TableNormalizer, tool
from tests.metrics import Watch, counted, documented, recorded

CANARY = "canary-7f3a"
UNCHANGING = """
from gateway.hookspecs import hookimpl
from gateway.search.query import Correction

def correct(index, query, mask=None):
    return Correction(text=query)

@hookimpl
def register_query_forms():
    return {"corrected": lambda: correct}
"""


@pytest.fixture
def watch() -> Watch:
    """Return telemetry providers that record spans and metrics."""
    return Watch()


def watched(
    open_gateway: OpenGateway, watch: Watch, tools: Sequence[ToolDefinition], **options: object
) -> Gateway:
    arguments: dict[str, object] = {
        "strategy": "auto",
        "embedder": HashingEmbedder(),
        "normalizer": TableNormalizer({f"лист {CANARY}": f"email {CANARY}"}),
        "tracer_provider": watch.tracer,
        "meter_provider": watch.meter,
    }
    return open_gateway(tools, **(arguments | options))


@pytest.fixture
def gateway(
    open_gateway: OpenGateway, watch: Watch, catalog: tuple[ToolDefinition, ...]
) -> Gateway:
    """Return a gateway whose spans and metrics *watch* records."""
    return watched(open_gateway, watch, catalog)


async def exercise(gateway: Gateway) -> None:
    """Use all functions of *gateway* once, with the canary in all texts of users."""

    def fail_well(text: str) -> str:
        """Fail."""
        raise ValueError(text)

    gateway.add_tool(fail_well)
    for _ in range(2):
        await gateway.search(f"лист {CANARY}", context={"a": CANARY}, context_summary=CANARY)
    await gateway.invoke("send_email", {"text": CANARY}, call_id="call_1")
    await gateway.invoke("fail_well", {"text": CANARY})


@pytest.mark.requirement("auto:rule-10")
async def test_search_is_a_tree_of_spans(gateway: Gateway, watch: Watch) -> None:
    """Rule 10: spans of rewriting and embedding have the search as parent, on any loop."""
    await gateway.report()
    watch.spans.clear()

    await gateway.search(f"лист {CANARY}")

    search = watch.of("retrieval catalog")
    model = gateway.embedder.info.model_id if gateway.embedder else ""
    children = [watch.of("chat table"), watch.of(f"embeddings {model}")]
    assert search.context is not None
    assert {search.context.span_id} == {span.parent.span_id for span in children if span.parent}
    assert 3 == len(watch.finished)
    assert {
        "gen_ai.operation.name": "retrieval",
        "gen_ai.data_source.id": "catalog",
        "gen_ai.request.top_k": 5,
        "gateway.search.strategy": "auto",
        "gateway.search.mode": "hybrid",
        "gateway.search.eligible": 12,
        "gateway.search.matches": 5,
        "gateway.cache.hit": False,
    } == dict(search.attributes or {})


@pytest.mark.requirement("auto:rule-10")
async def test_first_index_build_is_counted_once_with_its_embedding(
    gateway: Gateway, watch: Watch
) -> None:
    """Rule 10 includes index builds. The first search starts one build, not two."""
    await gateway.search("a")

    attributes = [watch.of(f"gateway.index.{step}").attributes or {} for step in ("build", "embed")]
    assert [12, 12] == [attribute_set["gateway.index.entities"] for attribute_set in attributes]
    assert [0, 24] == [attribute_set["gateway.index.embedded"] for attribute_set in attributes]
    embed = watch.of("gateway.index.embed")
    assert [24] == [
        (span.attributes or {}).get("gateway.embedding.texts")
        for span in watch.finished
        if embed.context and span.parent and span.parent.span_id == embed.context.span_id
    ]
    assert [1, 1] == [
        point.count
        for metric, point in recorded(watch.reader)
        if metric.name in {"gateway.index.build.duration", "gateway.index.embed.duration"}
        and isinstance(point, HistogramDataPoint)
    ]


@pytest.mark.requirement("auto:rule-10")
async def test_search_records_duration_ranking_and_tokens(
    open_gateway: OpenGateway,
    watch: Watch,
    catalog: tuple[ToolDefinition, ...],
    install_plugin: InstallPlugin,
) -> None:
    """Rule 10. A cache hit costs no tokens."""
    install_plugin("unchanging", UNCHANGING)
    options = replace(PATIENT, plugins=("unchanging",))
    gateway = watched(open_gateway, watch, catalog, options=options)
    await gateway.report()
    reader = watch.reader
    before = counted(reader, "gen_ai.client.token.usage", "gen_ai.operation.name")

    first = await gateway.search(f"лист {CANARY}")
    await gateway.search(f"лист {CANARY}")

    usage = counted(reader, "gen_ai.client.token.usage", "gen_ai.operation.name")
    durations = {
        point.attributes.get("gateway.cache.hit"): point.attributes.get("gateway.search.mode")
        for metric, point in recorded(reader)
        if metric.name == "gateway.search.duration" and point.attributes
    }
    assert {False: "hybrid", True: "hybrid"} == durations
    assert first.counts.tokens == usage["embeddings"] - before["embeddings"] > 0
    assert 5 == usage["chat"]
    assert {"match": 5, "prerequisite": 0} == {
        kind: value
        for kind, value in counted(reader, "gateway.search.results", "gateway.match.kind").items()
        if kind in {"match", "prerequisite"}
    }
    assert {"hit": 1, "miss": 4} == counted(
        reader, "gateway.cache.requests", "gateway.cache.result"
    )
    stages = {"vector", "lexical", "graph", "embed", "normalize", "spelling", "confidence"}
    assert stages == set(counted(reader, "gateway.search.stage.duration", "gateway.search.stage"))


@pytest.mark.requirement("auto:rule-10")
async def test_only_documented_names_and_attributes_are_exported(
    gateway: Gateway, watch: Watch
) -> None:
    gateway.add_server("dead", command="no-such-program")

    await exercise(gateway)

    ours = [span for span in watch.finished if span.instrumentation_scope is not None]
    kinds = {span.name.partition(" ")[0] for span in ours}
    builds = {"gateway.index.build", "gateway.index.embed"}
    assert {"retrieval", "embeddings", "chat", "execute_tool", *builds} == kinds
    rows = documented()
    for span in ours:
        row = rows[span.name.partition(" ")[0]]
        assert row.cells[0] == span.kind.name.lower()
        assert (span.attributes or {}).keys() <= row.attributes
    for metric, point in recorded(watch.reader):
        assert (point.attributes or {}).keys() <= rows[metric.name].attributes


@pytest.mark.requirement("auto:rule-10")
async def test_queries_arguments_and_results_are_not_exported(
    gateway: Gateway, watch: Watch
) -> None:
    """Spans, events, statuses and metrics omit them."""
    await exercise(gateway)

    assert CANARY not in watch.written()
    assert "Send an e-mail" not in watch.written()
    assert "called send_email" not in watch.written()


async def test_content_is_exported_if_the_host_enables_it(
    open_gateway: OpenGateway, watch: Watch, catalog: tuple[ToolDefinition, ...]
) -> None:
    """Content is only in the span attributes that the conventions define for it."""
    gateway = watched(open_gateway, watch, catalog, options=Options(capture_content=True))

    await exercise(gateway)

    names = {name for span in watch.finished for name in (span.attributes or {})}
    call = watch.of("execute_tool send_email").attributes or {}
    search = next(span for span in watch.finished if span.name == "retrieval catalog")
    assert set(CONTENT_ATTRIBUTES) <= names
    assert json.dumps({"text": CANARY}) == call["gen_ai.tool.call.arguments"]
    assert "called send_email" == call["gen_ai.tool.call.result"]
    assert f"лист {CANARY}" == (search.attributes or {})["gen_ai.retrieval.query.text"]
    assert all(span.events == () for span in watch.finished)


@pytest.mark.requirement("auto:rule-10")
async def test_call_is_a_span_with_the_models_call_id(gateway: Gateway, watch: Watch) -> None:
    """A failed call has the error type `tool_error`."""
    await exercise(gateway)

    good, bad = watch.of("execute_tool send_email"), watch.of("execute_tool fail_well")
    assert {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "send_email",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": "call_1",
        "gateway.server.name": "shelf",
    } == dict(good.attributes or {})
    assert (StatusCode.ERROR, "tool_error") == (
        bad.status.status_code,
        (bad.attributes or {})["error.type"],
    )
    assert bad.status.description is None
    assert {None, "tool_error"} == set(counted(watch.reader, "gateway.tool.duration", "error.type"))


async def test_failed_call_records_its_error_type(
    open_gateway: OpenGateway, watch: Watch, catalog: tuple[ToolDefinition, ...]
) -> None:
    """The class of an error has few distinct values; its message may contain content."""
    gateway = watched(
        open_gateway, watch, catalog, options=Options(upstream=UpstreamOptions(call_timeout_s=0.05))
    )

    gateway.add_server("slow", server=Shelf([tool("wait")]).server)

    with pytest.raises(UpstreamTimeoutError):
        await gateway.invoke("wait")

    span = watch.of("execute_tool wait")
    assert "UpstreamTimeoutError" == (span.attributes or {})["error.type"]
    assert {"UpstreamTimeoutError"} == set(
        counted(watch.reader, "gateway.tool.duration", "error.type")
    )


async def test_failed_sources_and_quarantined_tools_are_counted(
    open_gateway: OpenGateway, watch: Watch
) -> None:
    gateway = watched(open_gateway, watch, (), strategy="graph")
    gateway.add_server("shelf", server=Shelf([tool("n" * 129), tool("good")]).server)
    gateway.add_server("dead", command="no-such-program")

    await gateway.report()

    assert {"UpstreamError": 1} == counted(watch.reader, "gateway.upstream.failures", "error.type")
    assert {None: 1} == counted(watch.reader, "gateway.tools.quarantined", "none")
    entities = counted(watch.reader, "gateway.index.entities", "gateway.entity.kind")
    assert {"tool": 1, "server": 2} == entities
    states = counted(watch.reader, "gateway.servers", "gateway.server.state")
    assert {"up": 1, "down": 1} == states


async def test_failed_embedding_request_is_a_failed_span(
    open_gateway: OpenGateway, watch: Watch, catalog: tuple[ToolDefinition, ...]
) -> None:
    """The span has the type of the error, without its message."""
    embedder = HashingEmbedder()
    gateway = watched(open_gateway, watch, catalog, embedder=embedder)
    await gateway.report()
    watch.spans.clear()
    embedder.fail_with = RuntimeError(CANARY)

    await gateway.search("a")

    span = watch.of(f"embeddings {embedder.info.model_id}")
    assert StatusCode.ERROR == span.status.status_code
    assert "RuntimeError" == (span.attributes or {})["error.type"]
    assert StatusCode.UNSET == watch.of("retrieval catalog").status.status_code
    assert CANARY not in watch.written()


def test_sdk_receives_unit_description_and_buckets_of_metrics() -> None:
    watch = Watch()
    telemetry = Telemetry(tracer_provider=watch.tracer, meter_provider=watch.meter)
    for name, metric in METRICS.items():
        if metric.kind == "histogram":
            telemetry.record(name, 1)
        elif metric.kind == "counter":
            telemetry.add(name)
    telemetry.observe(lambda: {name: {"a": 1} for name in METRICS})

    received = {
        metric.name: (metric.unit, metric.description, getattr(point, "explicit_bounds", ()))
        for metric, point in recorded(watch.reader)
    }

    assert {name: metric[:3] for name, metric in METRICS.items()} == received


def test_gateway_without_providers_configures_no_telemetry() -> None:
    """Telemetry providers are global, so the test needs its own process."""
    script = """
from opentelemetry.trace import get_tracer_provider
from gateway.runtime.telemetry import Telemetry
before = get_tracer_provider()
search = Telemetry().operation("retrieval", metric="gateway.search.duration", labels={})
with search.within():
    print(search.span.is_recording())
print(before is get_tracer_provider())
"""
    completed = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )

    assert ["False", "True"] == completed.stdout.splitlines()


class Backend:
    """A telemetry backend whose exports fail, or hang until it is released."""

    def __init__(self, *, hangs: bool) -> None:
        self.begun = threading.Event()
        self.released = threading.Event()
        self._hangs = hangs

    def take(self) -> None:
        self.begun.set()
        if not self._hangs:
            raise OSError("the backend is down")
        self.released.wait()


class BackendOfSpans(SpanExporter):
    """Exporter that sends spans to the backend."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self._backend.take()
        return SpanExportResult.SUCCESS


class BackendOfMetrics(MetricExporter):
    """Exporter that sends metrics to the backend."""

    def __init__(self, backend: Backend) -> None:
        super().__init__()
        self._backend = backend

    def export(self, *_data: object, **_options: object) -> MetricExportResult:
        self._backend.take()
        return MetricExportResult.SUCCESS

    def force_flush(self, timeout_millis: float = 0) -> bool:
        return True

    def shutdown(self, timeout_millis: float = 0, **_options: object) -> None:
        """Do nothing."""


@pytest.mark.parametrize("hangs", [True, False])
async def test_failing_telemetry_backend_does_not_affect_searches(
    open_gateway: OpenGateway, catalog: tuple[ToolDefinition, ...], hangs: bool
) -> None:
    """200 searches and calls return the results of a run without telemetry, even with full
    queues.
    """
    spans, metrics = Backend(hangs=hangs), Backend(hangs=hangs)
    tracer = TracerProvider(shutdown_on_exit=False)
    tracer.add_span_processor(
        BatchSpanProcessor(BackendOfSpans(spans), max_queue_size=16, max_export_batch_size=4)
    )
    reader = PeriodicExportingMetricReader(BackendOfMetrics(metrics), export_interval_millis=20)
    meter = MeterProvider([reader], shutdown_on_exit=False)
    plain = open_gateway(catalog, strategy="auto", embedder=HashingEmbedder())
    traced = open_gateway(
        catalog,
        strategy="auto",
        embedder=HashingEmbedder(),
        tracer_provider=tracer,
        meter_provider=meter,
    )
    try:
        for number in range(200):
            expected, actual = [
                await gateway.search(f"send an e-mail {number}") for gateway in (plain, traced)
            ]
            assert expected == actual
            assert "called send_email" == (await traced.invoke("send_email")).text
        assert spans.begun.wait(120)
        assert metrics.begun.wait(120)
    finally:
        for gateway in (spans, metrics):
            gateway.released.set()
        tracer.shutdown()
        meter.shutdown()


def test_telemetry_provider_set_later_receives_later_metrics() -> None:
    """The host may configure OpenTelemetry after creating a gateway."""
    script = """
from gateway.runtime.telemetry import Telemetry
telemetry = Telemetry()
print(telemetry.operation("retrieval", "catalog", labels={}).is_recording)
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
trace.set_tracer_provider(TracerProvider(shutdown_on_exit=False))
search = telemetry.operation("retrieval", metric="gateway.search.duration", labels={})
with search.within():
    print(search.span.is_recording(), trace.get_current_span() is search.span)
"""
    completed = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )

    assert ["False", "True True"] == completed.stdout.splitlines()
