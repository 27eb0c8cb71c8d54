"""The names of spans, metrics and attributes. Dashboards depend on them.

``gen_ai.*`` names are OpenTelemetry's (semantic conventions 1.41, still moving: keep them here);
all others are ``gateway.*``. Durations are seconds. Attributes are few and of few values.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple, TypeAlias

SCOPE = "tool-gateway"
SCHEMA_URL = "https://opentelemetry.io/schemas/1.41.1"

Attributes: TypeAlias = Mapping[str, str | int | float | bool]

_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
_DOUBLING = tuple(0.01 * 2**step for step in range(14))
_TOKENS = tuple(float(4**step) for step in range(14))
_SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)
_COUNTS = (0.0, 1.0, 2.0, 3.0, 5.0, 8.0, 10.0, 20.0, 50.0)


class Metric(NamedTuple):
    """One instrument."""

    kind: Literal["histogram", "counter"]
    unit: str
    description: str
    attributes: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()


METRICS: Mapping[str, Metric] = {
    "gateway.search.duration": Metric(
        "histogram",
        "s",
        "One search, cache hits included.",
        ("gateway.search.strategy", "gateway.search.mode", "gateway.cache.hit", "error.type"),
        _SECONDS,
    ),
    "gateway.search.stage.duration": Metric(
        "histogram",
        "s",
        "One stage of a search that was not cached.",
        ("gateway.search.stage",),
        _SECONDS,
    ),
    "gateway.search.results": Metric(
        "histogram",
        "{entity}",
        "How many entities each list of a result holds.",
        ("gateway.match.kind",),
        _COUNTS,
    ),
    "gateway.search.fallbacks": Metric(
        "counter",
        "{fallback}",
        "Searches that wanted vectors and were answered by the graph.",
        ("gateway.fallback.reason",),
    ),
    "gateway.index.build.duration": Metric(
        "histogram",
        "s",
        "One build of the index, listing the sources included.",
        ("error.type",),
        _DOUBLING,
    ),
    "gateway.index.entities": Metric(
        "histogram",
        "{entity}",
        "How many entities an index build found.",
        (),
        (10.0, 100.0, 1000.0, 10000.0, 100000.0),
    ),
    "gateway.cache.requests": Metric(
        "counter",
        "{request}",
        "Look-ups in a process-local cache.",
        ("gateway.cache.name", "gateway.cache.result"),
    ),
    "gateway.upstream.failures": Metric(
        "counter", "{failure}", "Sources that could not be listed.", ("error.type",)
    ),
    "gateway.usage.failures": Metric(
        "counter",
        "{failure}",
        "Times that the ledger of calls could not be read or written.",
        ("error.type",),
    ),
    "gateway.tools.quarantined": Metric(
        "counter", "{tool}", "Tools that were left out because their definition cannot be used."
    ),
    "gateway.chat.turns": Metric(
        "histogram", "{turn}", "Requests to the model within one call of the wrapper.", (), _COUNTS
    ),
    "gateway.chat.definition.share": Metric(
        "histogram",
        "1",
        "Tokens of tool definitions sent, against sending every schema.",
        (),
        _SHARES,
    ),
    "gateway.chat.prefix.stability": Metric(
        "histogram",
        "1",
        "The share of the requests' bytes that a prompt cache could know.",
        (),
        _SHARES,
    ),
    "gen_ai.execute_tool.duration": Metric(
        "histogram",
        "s",
        "One tool call, ours or an upstream's.",
        ("gen_ai.tool.name", "error.type"),
        _DOUBLING,
    ),
    "gen_ai.client.operation.duration": Metric(
        "histogram",
        "s",
        "One request to an embedding model or to the normalizer's chat model.",
        ("gen_ai.operation.name", "gen_ai.provider.name", "error.type"),
        _DOUBLING,
    ),
    "gen_ai.client.token.usage": Metric(
        "histogram",
        "{token}",
        "Tokens that a model reported for such a request.",
        ("gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.token.type"),
        _TOKENS,
    ),
}
"""Every metric, by name."""


class SpanInfo(NamedTuple):
    """One kind of span."""

    description: str
    attributes: tuple[str, ...]
    kind: Literal["internal", "client"] = "internal"


SPANS: Mapping[str, SpanInfo] = {
    "retrieval": SpanInfo(
        "One search. Named `retrieval catalog`.",
        (
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
        "client",
    ),
    "embeddings": SpanInfo(
        "One request to the embedder. Named `embeddings {model}`.",
        (
            "gen_ai.operation.name",
            "gen_ai.provider.name",
            "gen_ai.request.model",
            "gen_ai.embeddings.dimension.count",
            "gen_ai.usage.input_tokens",
            "gateway.embedding.texts",
            "error.type",
        ),
        "client",
    ),
    "chat": SpanInfo(
        "One request to the normalizer's chat model. Named `chat {model}`.",
        (
            "gen_ai.operation.name",
            "gen_ai.provider.name",
            "gen_ai.request.model",
            "gen_ai.usage.input_tokens",
            "gen_ai.usage.output_tokens",
            "gateway.search.stage",
            "error.type",
        ),
        "client",
    ),
    "execute_tool": SpanInfo(
        "One tool call. Named `execute_tool {tool}`.",
        (
            "gen_ai.operation.name",
            "gen_ai.tool.name",
            "gen_ai.tool.type",
            "gen_ai.tool.call.id",
            "error.type",
        ),
    ),
    "invoke_agent": SpanInfo(
        "One call of the wrapper: the model's turns and our tool calls.",
        (
            "gen_ai.operation.name",
            "gateway.chat.turns",
            "gateway.chat.searches",
            "gateway.chat.errors",
            "gateway.chat.definition_tokens",
            "gateway.chat.cached_tokens",
            "error.type",
        ),
    ),
    "gateway.index.build": SpanInfo(
        "One build of the index.",
        (
            "gateway.index.entities",
            "gateway.index.embedded",
            "gateway.index.graph_edges",
            "error.type",
        ),
    ),
}
"""Every kind of span, by the first word of its name."""


class ContentAttributes(NamedTuple):
    """The attributes that hold content of users and tools."""

    query: str = "gen_ai.retrieval.query.text"
    documents: str = "gen_ai.retrieval.documents"
    arguments: str = "gen_ai.tool.call.arguments"
    result: str = "gen_ai.tool.call.result"


CONTENT_ATTRIBUTES = ContentAttributes()
"""Set only when the host asks for content."""
