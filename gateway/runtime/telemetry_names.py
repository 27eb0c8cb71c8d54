"""Every metric, and the names that are used in several places.

* Dashboards depend on the names; `docs/telemetry.md` lists them with all attributes.
* Names that begin with ``gen_ai.``, ``http.``, ``server.``, ``url.`` or ``error.`` are
  OpenTelemetry's, as the semantic conventions 1.41 have them (later ones moved ``gen_ai.``
  elsewhere); all others are ours.
* Durations are seconds. Attributes are few and of few values.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

SCOPE = "tool-gateway"
SCHEMA_URL = "https://opentelemetry.io/schemas/1.41.1"
"""The last schema that defines ``gen_ai.``."""
OTHER = "_OTHER"
"""What the conventions call a value that is not known, or that nobody may see."""
CLIENT_SPANS = frozenset({"retrieval", "embeddings", "chat"})
"""Kinds of spans that are requests to a service, by the first word of their names."""
MetricKind = Literal["histogram", "counter", "gauge"]

_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
_HTTP_SECONDS = (
    0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0
)  # fmt: skip
"""As the conventions of HTTP advise."""
_DOUBLING = tuple(0.01 * 2**step for step in range(14))
_TOKENS = tuple(float(4**step) for step in range(14))
_ANSWER_TOKENS = (50.0, 100.0, 200.0, 300.0, 400.0, 600.0, 800.0, 1000.0, 1500.0, 2000.0, 4000.0)
_SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)
_COUNTS = (0.0, 1.0, 2.0, 3.0, 5.0, 8.0, 10.0, 20.0, 50.0)


class Metric(NamedTuple):
    """One instrument."""

    kind: MetricKind
    unit: str
    description: str
    buckets: tuple[float, ...] = ()
    """Of a histogram."""
    label: str = ""
    """The attribute of a gauge; "" if it has none."""


METRICS: Mapping[str, Metric] = {
    "gateway.search.duration": Metric(
        "histogram", "s", "One search, cache hits included.", _SECONDS
    ),
    "gateway.search.stage.duration": Metric(
        "histogram", "s", "One stage of a search that was not cached.", _SECONDS
    ),
    "gateway.search.results": Metric(
        "histogram", "{entity}", "How many entities each list of a result holds.", _COUNTS
    ),
    "gateway.search.fallbacks": Metric(
        "counter", "{fallback}", "Searches that wanted vectors and were answered by the graph."
    ),
    "gateway.search.weak_results": Metric(
        "counter", "{search}", "Searches with no match, or with matches of low confidence."
    ),
    "gateway.search.answer.tokens": Metric(
        "histogram", "{token}", "Estimated tokens of a search's answer to a model.", _ANSWER_TOKENS
    ),
    "gateway.index.build.duration": Metric(
        "histogram", "s", "One build of the index, listing the sources included.", _DOUBLING
    ),
    "gateway.index.embed.duration": Metric(
        "histogram", "s", "Embedding the texts that a build found without a vector.", _DOUBLING
    ),
    "gateway.index.entities": Metric(
        "gauge", "{entity}", "Entities in the index.", label="gateway.entity.kind"
    ),
    "gateway.index.age": Metric("gauge", "s", "Time since the newest index build."),
    "gateway.embedding.queue": Metric(
        "gauge",
        "{text}",
        "Texts that wait for a vector; of queries, requests.",
        label="gateway.embedding.role",
    ),
    "gateway.servers": Metric(
        "gauge", "{server}", "MCP servers, by whether they answer.", label="gateway.server.state"
    ),
    "gateway.approvals.pending": Metric(
        "gauge", "{definition}", "Definitions that changed and wait for an approval."
    ),
    "gateway.cache.requests": Metric("counter", "{request}", "Look-ups in a process-local cache."),
    "gateway.upstream.failures": Metric(
        "counter", "{failure}", "Sources that could not be listed."
    ),
    "gateway.store.failures": Metric(
        "counter", "{failure}", "Times that a store could not be read or written."
    ),
    "gateway.tools.quarantined": Metric(
        "counter", "{tool}", "Tools that were left out because their definition cannot be used."
    ),
    "gateway.tool.duration": Metric(
        "histogram", "s", "One tool call, ours or an upstream's.", _DOUBLING
    ),
    "gateway.chat.turns": Metric(
        "histogram", "{turn}", "Requests to the model within one call of the wrapper.", _COUNTS
    ),
    "gateway.chat.definition.share": Metric(
        "histogram", "1", "Tokens of tool definitions sent, against sending every schema.", _SHARES
    ),
    "gateway.chat.tokens.saved": Metric(
        "counter", "{token}", "Estimated tokens that sending every schema would have cost more."
    ),
    "gateway.chat.prefix.stability": Metric(
        "histogram",
        "1",
        "The share of the requests' bytes that a prompt cache could know.",
        _SHARES,
    ),
    "http.server.request.duration": Metric(
        "histogram", "s", "One request to the served gateway, until its answer ends.", _HTTP_SECONDS
    ),
    "gen_ai.client.operation.duration": Metric(
        "histogram", "s", "One request to a model: a turn, a rewriting, an embedding.", _DOUBLING
    ),
    "gen_ai.client.token.usage": Metric(
        "histogram", "{token}", "Tokens that a model reported for such a request.", _TOKENS
    ),
}
"""Every metric, by name."""


class ContentAttributes(NamedTuple):
    """The attributes that hold content of users and tools."""

    query: str = "gen_ai.retrieval.query.text"
    documents: str = "gen_ai.retrieval.documents"
    arguments: str = "gen_ai.tool.call.arguments"
    result: str = "gen_ai.tool.call.result"


CONTENT_ATTRIBUTES = ContentAttributes()
"""Set only when the host asks for content."""
