"""Response bodies: their models, with the field names that clients of registries know.

Every row bears three numbers. ``relevance_score`` is for display: 1 is the best of this response.
``confidence`` and ``similarity_score`` are absolute and comparable between responses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from gateway.types import JsonObject, Status

SearchMode = Literal["hybrid", "vector", "lexical-only", "graph", "browse", "empty"]
Share = Annotated[float, Field(ge=0, le=1)]
Schema = Annotated[JsonObject, Field(serialization_alias="inputSchema")]


class _Response(BaseModel):
    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True, serialize_by_alias=True)


class Row(_Response):
    """The fields of every row of a search."""

    id: str
    """In the catalog; see `/api/entities/{id}`."""
    path: str
    title: str
    description: str
    tags: Sequence[str]
    status: Status
    is_enabled: bool
    relevance_score: Share
    """For display: 1 is the best of this response."""
    similarity_score: float | None
    """The cosine, -1 to 1; null without vectors."""
    confidence: Share
    """How likely it serves the query; comparable between searches."""
    match_context: str
    """The text to show of it."""
    metadata: JsonObject
    """As far as `metadata_fields` asks for it."""


class MatchingTool(_Response):
    """A tool of a matched server that holds words of the query."""

    id: str
    tool_name: str
    description: str
    relevance_score: Share
    """The share of the query that it holds: a scale of its own."""
    match_context: str


class ServerRow(Row):
    """A server."""

    server_name: str
    num_tools: int
    """Tools of it that you may find."""
    endpoint_url: str | None
    """Where it is reached, if its entry says."""
    matching_tools: Sequence[MatchingTool]


class VirtualServerRow(ServerRow):
    """A table of aliases that is used as a server."""

    backend_count: int
    backend_paths: Sequence[str]


class AgentRow(Row):
    """An agent."""

    agent_name: str
    agent_card: JsonObject | None
    """Its card, if the catalog holds one and `metadata_fields` leaves it whole."""


class SkillRow(Row):
    """A skill."""

    skill_name: str
    skill_md_url: str | None
    author: str | None
    version: str | None


class CustomRow(Row):
    """A thing of another kind."""

    entity_type: str
    name: str


class ToolRow(_Response):
    """A tool: found itself, or lifted from a matched server."""

    id: str
    tool_name: str
    name: str
    """What a model calls it."""
    server_name: str
    server_path: str
    description: str
    tags: Sequence[str]
    status: Status
    is_enabled: bool
    input_schema: Schema
    relevance_score: Share
    similarity_score: float | None
    confidence: Share | None
    """Null of a lifted tool."""
    match_context: str
    lifted: bool
    """Whether it is here only because its server matched and it holds words of the query."""


class RankedResult(_Response):
    """One entity of the ranking."""

    rank: int
    """From 1."""
    id: str
    kind: str
    name: str
    server: str
    description: str
    score: float
    """The score of the ranking: comparable within this response alone."""
    relevance_score: Share
    similarity_score: float | None
    confidence: Share


class Receipt(_Response):
    """A record of the search without its query and results: keep it as evidence."""

    id: str
    time: str
    """UTC, RFC 3339."""
    duration_ms: float
    stop_reason: Literal["results_returned", "no_match"]
    eligible: int
    """Entities that passed the filters."""
    candidates: int
    """Entities that were ranked."""
    returned: int
    returned_by_kind: Mapping[str, int]
    index: int
    """The version of the index that answered."""
    request_hash: str
    """Equal requests to one server process have equal hashes, keyed by a random secret."""
    result_hash: str
    """SHA-256 of the ids, in order."""


class DiagnosticNote(_Response):
    """A diagnostic of the search or of the index."""

    stage: str
    code: str


class SearchResponse(_Response):
    """The answer to a search. `results` is the ranking; the groups hold the same entities."""

    query: str
    search_mode: SearchMode
    """What really ranked."""
    ranking: str
    confidence: Share
    """Of the best result; 0 without one."""
    results: Sequence[RankedResult]
    servers: Sequence[ServerRow] = ()
    tools: Sequence[ToolRow] = ()
    agents: Sequence[AgentRow] = ()
    skills: Sequence[SkillRow] = ()
    virtual_servers: Sequence[VirtualServerRow] = ()
    custom: Sequence[CustomRow] = ()
    """Prompts and resources too, where they were asked for."""
    total_servers: int
    total_tools: int
    total_agents: int
    total_skills: int
    total_virtual_servers: int
    total_custom: int
    diagnostics: Sequence[DiagnosticNote]
    discovery_receipt: Receipt


class TagCounts(_Response):
    """The tags of what you may find."""

    tags: Sequence[str]
    """Sorted, in small letters."""
    counts: Mapping[str, int]
    """How many entities have each."""


class HintsView(_Response):
    """Other words by which an entity is found."""

    aliases: Sequence[str]
    keywords: Sequence[str]
    categories: Sequence[str]
    tags: Sequence[str]
    examples: Sequence[str]


class EntityView(_Response):
    """One entity of the catalog."""

    id: str
    kind: str
    name: str
    namespace: str
    title: str
    description: str
    status: Status
    enabled: bool
    hints: HintsView
    scopes: Sequence[str]
    parent: str
    metadata: JsonObject
    listed: bool
    """Whether a server lists it: then it is changed there, not here."""
    digest: str
    """Changes when anything that is searched changes."""


class EntityPage(_Response):
    """A page of entities."""

    entities: Sequence[EntityView]
    next: str = ""
    """The `after` of the next page; empty on the last one."""


class EntityList(_Response):
    """Entities that hold the words, best first; or all of them, by id."""

    entities: Sequence[EntityView]
    total: int
    search_mode: SearchMode


class IndexStatus(_Response):
    """The size and state of the index."""

    generation: int
    """Counts changes of the catalog."""
    entities: int
    by_kind: Mapping[str, int]
    vectors: int
    graph_nodes: int
    graph_edges: int
    strategy: str
    model: str
    """Of the vectors; empty without any."""
    duration_s: float
    """How long the last build took."""
    rebuilding: bool
    """Whether a part of it is being built, such as vectors."""
    diagnostics: Sequence[DiagnosticNote]
    details: Sequence[str] = ()
    """The details of the diagnostics, for callers with the scope `catalog:admin`."""


class RebuildStarted(_Response):
    """A rebuild is under way; `/api/index` says when it is done."""

    rebuilding: bool = True


class HealthStatus(_Response):
    """Whether the server answers."""

    status: Literal["ok", "starting"]
    """`starting` until the first index is there: the first search waits for it."""
    version: str
