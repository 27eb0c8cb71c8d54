"""What spans and metrics are called, and what is done to them. The one home of every name.

``gen_ai.*`` names are OpenTelemetry's (semantic conventions 1.41, still moving: keep them here);
everything else is ``gateway.*``. Durations are seconds. Attributes are few and of few values.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

SCOPE = "tool-gateway"
SCHEMA_URL = "https://opentelemetry.io/schemas/1.41.1"

Attributes: TypeAlias = Mapping[str, str | int | float | bool]

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
    kind: Literal["internal", "client"] = "internal"


SPANS: Mapping[str, SpanKindOf] = {
    "retrieval": SpanKindOf(
        description="One search. Named `retrieval catalog`.",
        attributes=(
            "gen_ai.operation.name",
            "gen_ai.data_source.id",
            "gen_ai.retrieval.top_k",
            "gateway.search.strategy",
            "gateway.search.mode",
            "gateway.index.eligibility",
            "gateway.search.matches",
            "gateway.cache.hit",
            "error.type",
        ),
        kind="client",
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
        kind="client",
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
        kind="client",
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


class TracerProvider(Protocol):
    """Where spans go, such as a `opentelemetry.trace.TracerProvider`."""

    def get_tracer(self, *about: Any, **named: Any) -> Any:
        """Give what starts spans."""


class MeterProvider(Protocol):
    """Where metrics go, such as a `opentelemetry.metrics.MeterProvider`."""

    def get_meter(self, *about: Any, **named: Any) -> Any:
        """Give what makes instruments."""


class Span(Protocol):
    """What is done to a span, such as one of `opentelemetry.trace`."""

    def set_attribute(self, key: str, value: str | float) -> None:
        """Set one attribute."""

    def set_attributes(self, attributes: Attributes) -> None:
        """Set several."""

    def is_recording(self) -> bool:
        """Whether anybody keeps what it is told."""
        ...

    def end(self) -> None:
        """End it."""


class Instruments(Protocol):
    """What spans and metrics are made with; see `gateway.runtime.telemetry.Telemetry`."""

    def span(
        self, kind: str, target: str, attributes: Attributes | None
    ) -> AbstractContextManager[Span]:
        """Open a span, current within the block."""
        ...

    def begin(self, kind: str, target: str, attributes: Attributes | None) -> Span:
        """Start a span that no block bounds."""
        ...

    def within(self, span: Span) -> AbstractContextManager[object]:
        """Make a span current within the block."""
        ...

    def fail(self, span: Span, error_type: str) -> None:
        """Mark a span as failed."""

    def timed(
        self, metric: str, attributes: dict[str, str | int | float | bool]
    ) -> AbstractContextManager[object]:
        """Record the duration of the block."""
        ...

    def record(self, metric: str, value: float, attributes: Attributes | None) -> None:
        """Record a value in a histogram."""

    def add(self, metric: str, value: int, attributes: Attributes | None) -> None:
        """Add to a counter."""
