"""Spans and metrics, by the OpenTelemetry API alone. The one home of every name.

* Importing this configures nothing; without a provider every call is a no-op.
* ``gen_ai.*`` names are OpenTelemetry's (semantic conventions 1.41, still moving: keep them here);
  everything else is ``gateway.*``. Durations are seconds. Attributes are few and of few values.
* No query, argument, result or description goes out unless the host asked for content.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import Token
from typing import Literal, NamedTuple, TypeAlias

from opentelemetry import metrics, trace
from opentelemetry.context import Context, attach, detach
from opentelemetry.metrics import Counter, Histogram
from opentelemetry.trace import SpanKind, Status, StatusCode

from gateway.config import VERSION
from gateway.values import dataclass

SCOPE = "tool-gateway"
SCHEMA_URL = "https://opentelemetry.io/schemas/1.41.1"

Attributes: TypeAlias = Mapping[str, str | int | float | bool]
Span: TypeAlias = trace.Span
TracerProvider: TypeAlias = trace.TracerProvider
MeterProvider: TypeAlias = metrics.MeterProvider

_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
_DOUBLING = tuple(0.01 * 2**step for step in range(14))
_TOKENS = tuple(float(4**step) for step in range(14))
_SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)
_COUNTS = (0.0, 1.0, 2.0, 3.0, 5.0, 8.0, 10.0, 20.0, 50.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One instrument."""

    kind: Literal["histogram", "counter"]
    unit: str
    description: str
    attributes: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()


METRICS: Mapping[str, Metric] = {
    "gateway.search.duration": Metric(
        kind="histogram",
        unit="s",
        description="One search, cache hits included.",
        attributes=(
            "gateway.search.strategy",
            "gateway.search.mode",
            "gateway.cache.hit",
            "error.type",
        ),
        buckets=_SECONDS,
    ),
    "gateway.search.stage.duration": Metric(
        kind="histogram",
        unit="s",
        description="One stage of a search that was not cached.",
        attributes=("gateway.search.stage",),
        buckets=_SECONDS,
    ),
    "gateway.search.results": Metric(
        kind="histogram",
        unit="{entity}",
        description="How many entities each list of a result holds.",
        attributes=("gateway.match.kind",),
        buckets=_COUNTS,
    ),
    "gateway.search.fallbacks": Metric(
        kind="counter",
        unit="{fallback}",
        description="Searches that wanted vectors and were answered by the graph.",
        attributes=("gateway.fallback.reason",),
    ),
    "gateway.index.build.duration": Metric(
        kind="histogram",
        unit="s",
        description="One build of the index, listing the sources included.",
        attributes=("error.type",),
        buckets=_DOUBLING,
    ),
    "gateway.index.entities": Metric(
        kind="histogram",
        unit="{entity}",
        description="How many entities an index build found.",
        buckets=(10.0, 100.0, 1000.0, 10_000.0, 100_000.0),
    ),
    "gateway.cache.requests": Metric(
        kind="counter",
        unit="{request}",
        description="Look-ups in a process-local cache.",
        attributes=("gateway.cache.name", "gateway.cache.result"),
    ),
    "gateway.upstream.failures": Metric(
        kind="counter",
        unit="{failure}",
        description="Sources that could not be listed.",
        attributes=("error.type",),
    ),
    "gateway.usage.failures": Metric(
        kind="counter",
        unit="{failure}",
        description="Times that the ledger of calls could not be read or written.",
        attributes=("error.type",),
    ),
    "gateway.tools.quarantined": Metric(
        kind="counter",
        unit="{tool}",
        description="Tools that were left out because their definition cannot be used.",
    ),
    "gateway.chat.turns": Metric(
        kind="histogram",
        unit="{turn}",
        description="Requests to the model within one call of the wrapper.",
        buckets=_COUNTS,
    ),
    "gateway.chat.definition.share": Metric(
        kind="histogram",
        unit="1",
        description="Tokens of tool definitions sent, against sending every schema.",
        buckets=_SHARES,
    ),
    "gateway.chat.prefix.stability": Metric(
        kind="histogram",
        unit="1",
        description="The share of the requests' bytes that a prompt cache could know.",
        buckets=_SHARES,
    ),
    "gen_ai.execute_tool.duration": Metric(
        kind="histogram",
        unit="s",
        description="One tool call, ours or an upstream's.",
        attributes=("gen_ai.tool.name", "error.type"),
        buckets=_DOUBLING,
    ),
    "gen_ai.client.operation.duration": Metric(
        kind="histogram",
        unit="s",
        description="One request to an embedding model or to the normalizer's chat model.",
        attributes=("gen_ai.operation.name", "gen_ai.provider.name", "error.type"),
        buckets=_DOUBLING,
    ),
    "gen_ai.client.token.usage": Metric(
        kind="histogram",
        unit="{token}",
        description="Tokens that a model reported for such a request.",
        attributes=("gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.token.type"),
        buckets=_TOKENS,
    ),
}
"""Every metric, by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanKindOf:
    """One kind of span."""

    description: str
    attributes: tuple[str, ...]
    kind: SpanKind = SpanKind.INTERNAL


SPANS: Mapping[str, SpanKindOf] = {
    "retrieval": SpanKindOf(
        description="One search. Named `retrieval catalog`.",
        attributes=(
            "gen_ai.operation.name",
            "gen_ai.data_source.id",
            "gen_ai.retrieval.top_k",
            "gateway.search.strategy",
            "gateway.search.mode",
            "gateway.search.eligible",
            "gateway.search.matches",
            "gateway.cache.hit",
            "error.type",
        ),
        kind=SpanKind.CLIENT,
    ),
    "embeddings": SpanKindOf(
        description="One request to the embedder. Named `embeddings {model}`.",
        attributes=(
            "gen_ai.operation.name",
            "gen_ai.provider.name",
            "gen_ai.request.model",
            "gen_ai.embeddings.dimension.count",
            "gen_ai.usage.input_tokens",
            "gateway.embedding.texts",
            "error.type",
        ),
        kind=SpanKind.CLIENT,
    ),
    "chat": SpanKindOf(
        description="One request to the normalizer's chat model. Named `chat {model}`.",
        attributes=(
            "gen_ai.operation.name",
            "gen_ai.provider.name",
            "gen_ai.request.model",
            "gen_ai.usage.input_tokens",
            "gen_ai.usage.output_tokens",
            "gateway.search.stage",
            "error.type",
        ),
        kind=SpanKind.CLIENT,
    ),
    "execute_tool": SpanKindOf(
        description="One tool call. Named `execute_tool {tool}`.",
        attributes=(
            "gen_ai.operation.name",
            "gen_ai.tool.name",
            "gen_ai.tool.type",
            "gen_ai.tool.call.id",
            "error.type",
        ),
    ),
    "invoke_agent": SpanKindOf(
        description="One call of the wrapper: the model's turns and our tool calls.",
        attributes=(
            "gen_ai.operation.name",
            "gateway.chat.turns",
            "gateway.chat.searches",
            "gateway.chat.errors",
            "gateway.chat.definition_tokens",
            "gateway.chat.cached_tokens",
            "error.type",
        ),
    ),
    "gateway.index.build": SpanKindOf(
        description="One build of the index.",
        attributes=(
            "gateway.index.entities",
            "gateway.index.embedded",
            "gateway.index.graph_edges",
            "error.type",
        ),
    ),
}
"""Every kind of span, by the first word of its name."""


class ContentAttributes(NamedTuple):
    """The attributes that hold what somebody said."""

    query: str = "gen_ai.retrieval.query.text"
    documents: str = "gen_ai.retrieval.documents"
    arguments: str = "gen_ai.tool.call.arguments"
    result: str = "gen_ai.tool.call.result"


CONTENT_ATTRIBUTES = ContentAttributes()
"""Set only when the host asks for content."""


class Telemetry:
    """The spans and instruments of one gateway."""

    def __init__(
        self,
        *,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        capture_content: bool = False,
    ) -> None:
        self.capture_content = capture_content
        provider = tracer_provider or trace.get_tracer_provider()
        self._tracer = provider.get_tracer(SCOPE, VERSION, SCHEMA_URL)
        meter = (meter_provider or metrics.get_meter_provider()).get_meter(
            SCOPE, VERSION, SCHEMA_URL
        )
        self._histograms: dict[str, Histogram] = {}
        self._counters: dict[str, Counter] = {}
        for name, metric in METRICS.items():
            if metric.kind == "counter":
                self._counters[name] = meter.create_counter(name, metric.unit, metric.description)
            else:
                self._histograms[name] = meter.create_histogram(
                    name,
                    metric.unit,
                    metric.description,
                    explicit_bucket_boundaries_advisory=list(metric.buckets) or None,
                )

    def span(
        self, kind: str, target: str = "", attributes: Attributes | None = None
    ) -> AbstractContextManager[Span]:
        """Open a span of *kind*, current within the block; an exception marks it as failed.

        Args:
            kind: A key of `SPANS`.
            target: The second word of the span's name, of few values; may be empty.
            attributes: Those known at creation, which samplers read.
        """
        name = f"{kind} {target}" if target else kind
        given = {**attributes} if attributes else {}
        if not kind.startswith("gateway."):
            given["gen_ai.operation.name"] = kind
        return _Spanned(self._tracer.start_span(name, kind=SPANS[kind].kind, attributes=given))

    def begin(self, kind: str, target: str = "", attributes: Attributes | None = None) -> Span:
        """Start a span that no block bounds; its owner ends it, and may enter it with `within`.

        Args:
            kind: A key of `SPANS` that names an operation.
            target: See `span`.
            attributes: See `span`.
        """
        name = f"{kind} {target}" if target else kind
        given = {"gen_ai.operation.name": kind, **(attributes or {})}
        return self._tracer.start_span(name, kind=SPANS[kind].kind, attributes=given)

    @contextmanager
    def within(self, span: Span) -> Iterator[None]:
        """Make *span* the parent of what the block starts, without ending it."""
        token = attach(trace.set_span_in_context(span))
        try:
            yield
        finally:
            detach(token)

    def timed(
        self, metric: str, attributes: dict[str, str | int | float | bool]
    ) -> AbstractContextManager[None]:
        """Record the block's duration; *attributes* may be filled in while it runs."""
        return _Timed(self._histograms[metric], attributes)

    def record(self, metric: str, value: float, attributes: Attributes | None = None) -> None:
        """Record *value* in the histogram *metric*."""
        self._histograms[metric].record(value, attributes)

    def add(self, metric: str, value: int = 1, attributes: Attributes | None = None) -> None:
        """Add *value* to the counter *metric*."""
        self._counters[metric].add(value, attributes)

    def cache_event(self, name: str, event: str) -> None:
        """Count one look-up in a cache."""
        self.add(
            "gateway.cache.requests",
            attributes={"gateway.cache.name": name, "gateway.cache.result": event},
        )


class _Spanned(AbstractContextManager[Span]):
    """A span's block. A class: a generator costs a search that is remembered a tenth."""

    __slots__ = ("_span", "_token")

    def __init__(self, span: Span) -> None:
        self._span = span
        self._token: Token[Context] | None = None

    def __enter__(self) -> Span:
        # Without a provider a span has no context: nobody's parent need not be made current.
        if self._span.get_span_context().is_valid:
            self._token = attach(trace.set_span_in_context(self._span))
        return self._span

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._token is not None:
            detach(self._token)
        if kind is not None:
            fail(self._span, kind.__name__)
        self._span.end()


class _Timed(AbstractContextManager[None]):
    """A block whose duration is recorded."""

    __slots__ = ("_attributes", "_began", "_histogram")

    def __init__(
        self, histogram: Histogram, attributes: dict[str, str | int | float | bool]
    ) -> None:
        self._histogram = histogram
        self._attributes = attributes
        self._began = time.perf_counter()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self._attributes["error.type"] = kind.__name__
        self._histogram.record(time.perf_counter() - self._began, self._attributes)


def fail(span: Span, error_type: str) -> None:
    """Mark *span* as failed. No message: it could hold what a user said."""
    span.set_attribute("error.type", error_type)
    span.set_status(Status(StatusCode.ERROR))
