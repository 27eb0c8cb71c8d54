"""Metrics and names of spans and attributes, on which dashboards depend (`docs/telemetry.md`).

Names with the prefixes ``gen_ai.``, ``http.``, ``server.``, ``url.`` and ``error.`` are from
OpenTelemetry's semantic conventions 1.41. Durations are in seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

SCOPE = "tool-gateway"
SCHEMA_URL = "https://opentelemetry.io/schemas/1.41.1"
"""Last schema of OpenTelemetry that defines the ``gen_ai.`` attributes."""
OTHER = "_OTHER"
"""Attribute value for unknown or private names, as in OpenTelemetry's conventions."""
CLIENT_SPANS = frozenset({"retrieval", "embeddings", "chat"})
"""First words of the names of spans for requests to a service."""

_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
_HTTP_SECONDS = (
    0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0
)  # fmt: skip
"""Bucket boundaries, in seconds, that the HTTP conventions recommend."""
_DOUBLING = tuple(0.01 * 2**step for step in range(14))
_TOKENS = tuple(float(4**step) for step in range(14))
_ANSWERS = (50.0, 100.0, 200.0, 300.0, 400.0, 600.0, 800.0, 1000.0, 1500.0, 2000.0, 4000.0)
_SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)
_COUNTS = (0.0, 1.0, 2.0, 3.0, 5.0, 8.0, 10.0, 20.0, 50.0)


class Metric(NamedTuple):
    """A metric: a histogram if it has buckets, a gauge if it has a label, else a counter."""

    unit: str
    description: str
    buckets: tuple[float, ...] = ()
    label: str | None = None
    """Attribute that distinguishes the values of a gauge. Empty for a gauge with one value, None
    for other metrics."""

    @property
    def kind(self) -> Literal["histogram", "gauge", "counter"]:
        """Kind of instrument in OpenTelemetry."""
        return "histogram" if self.buckets else "counter" if self.label is None else "gauge"


METRICS: Mapping[str, Metric] = {
    "gateway.search.duration": Metric("s", "One search, cache hits included.", _SECONDS),
    "gateway.search.stage.duration": Metric("s", "One stage of a search, if not cached.", _SECONDS),
    "gateway.search.results": Metric("{entity}", "Entities in each list of a result.", _COUNTS),
    "gateway.search.fallbacks": Metric("{fallback}", "Searches without the vectors they need."),
    "gateway.search.weak_results": Metric("{search}", "Searches with no match or a doubtful one."),
    "gateway.search.answer.tokens": Metric("{token}", "A search's answer to a model.", _ANSWERS),
    "gateway.index.build.duration": Metric("s", "One index build, listings included.", _DOUBLING),
    "gateway.index.embed.duration": Metric("s", "Embedding of a build's new texts.", _DOUBLING),
    "gateway.index.entities": Metric("{entity}", "Indexed entities.", label="gateway.entity.kind"),
    "gateway.index.age": Metric("s", "Time since the newest index build.", label=""),
    "gateway.embedding.queue": Metric(
        "{text}", "Texts and queries without a vector yet.", label="gateway.embedding.role"
    ),
    "gateway.servers": Metric("{server}", "MCP servers.", label="gateway.server.state"),
    "gateway.approvals.pending": Metric("{definition}", "Definitions to be approved.", label=""),
    "gateway.cache.requests": Metric("{request}", "Look-ups in a process-local cache."),
    "gateway.upstream.failures": Metric("{failure}", "Sources that could not be listed."),
    "gateway.store.failures": Metric("{failure}", "Failed reads and writes of a store."),
    "gateway.tools.quarantined": Metric("{tool}", "Tools with a definition that cannot be used."),
    "gateway.tool.duration": Metric("s", "One call of a tool or meta-tool.", _DOUBLING),
    "gateway.chat.turns": Metric("{turn}", "Requests to the model in one call.", _COUNTS),
    "gateway.chat.definition.share": Metric("1", "Share of definition tokens sent.", _SHARES),
    "gateway.chat.tokens.saved": Metric("{token}", "Tokens saved, compared to all schemas."),
    "gateway.chat.prefix.stability": Metric("1", "Bytes that a prompt cache can reuse.", _SHARES),
    "http.server.request.duration": Metric(
        "s", "One request to the served gateway.", _HTTP_SECONDS
    ),
    "gen_ai.client.operation.duration": Metric("s", "One request to a model.", _DOUBLING),
    "gen_ai.client.token.usage": Metric("{token}", "Tokens of one request to a model.", _TOKENS),
}


class ContentAttributes(NamedTuple):
    """Names of attributes that contain content of users and tools."""

    query: str = "gen_ai.retrieval.query.text"
    documents: str = "gen_ai.retrieval.documents"
    arguments: str = "gen_ai.tool.call.arguments"
    result: str = "gen_ai.tool.call.result"


CONTENT_ATTRIBUTES = ContentAttributes()
"""The attribute names, used only if the host enables content capture."""
