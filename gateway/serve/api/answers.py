"""What a client is answered, as types that are documented. Field names are those that clients of
registries know.

Every row bears three numbers. ``relevance_score`` is for people: 1 is the best of this answer.
``confidence`` and ``similarity_score`` are absolute and mean the same in every answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from gateway.types import JsonObject, Status

TOLD = ConfigDict(use_attribute_docstrings=True)
SearchMode = Literal["hybrid", "vector", "lexical-only", "graph", "browse", "empty"]
Share = Annotated[float, Field(ge=0, le=1)]
Schema = Annotated[JsonObject, Field(serialization_alias="inputSchema")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What every row of a search says."""

    __pydantic_config__ = TOLD

    id: str
    """In the catalog; see `/api/entities/{id}`."""
    path: str
    title: str
    description: str
    tags: Sequence[str]
    status: Status
    is_enabled: bool
    relevance_score: Share
    """For people: 1 is the best of this answer."""
    similarity_score: float | None
    """The cosine, -1 to 1; null where vectors did not speak."""
    confidence: Share
    """How likely it is what was asked for; comparable between searches."""
    match_context: str
    """What to show of it."""
    metadata: JsonObject
    """As far as `metadata_fields` asks for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchingTool:
    """A tool of a matched server that the query speaks of."""

    __pydantic_config__ = TOLD

    id: str
    tool_name: str
    description: str
    relevance_score: Share
    """How much of the query it holds: a scale of its own."""
    match_context: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerRow(Row):
    """A server."""

    __pydantic_config__ = TOLD

    server_name: str
    num_tools: int
    """Tools of it that you may find."""
    endpoint_url: str | None
    """Where it is reached, if its entry says."""
    matching_tools: Sequence[MatchingTool]


@dataclass(frozen=True, slots=True, kw_only=True)
class VirtualServerRow(ServerRow):
    """A table of aliases that is used as a server."""

    __pydantic_config__ = TOLD

    backend_count: int
    backend_paths: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRow(Row):
    """An agent."""

    __pydantic_config__ = TOLD

    agent_name: str
    agent_card: JsonObject | None
    """Its card, if the catalog holds one and `metadata_fields` leaves it whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillRow(Row):
    """A skill."""

    __pydantic_config__ = TOLD

    skill_name: str
    skill_md_url: str | None
    author: str | None
    version: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomRow(Row):
    """A thing of another kind."""

    __pydantic_config__ = TOLD

    entity_type: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRow:
    """A tool: found itself, or lifted from a matched server."""

    __pydantic_config__ = TOLD

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One entity of the ranking."""

    __pydantic_config__ = TOLD

    rank: int
    """From 1."""
    id: str
    kind: str
    name: str
    server: str
    description: str
    score: float
    """What it was ranked by: comparable within this answer alone."""
    relevance_score: Share
    similarity_score: float | None
    confidence: Share


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What this search was, without what was asked or found: keep it as evidence."""

    __pydantic_config__ = TOLD

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
    """Which state of the index answered."""
    request_hash: str
    """Equal requests of one server's life have equal hashes; nobody can look one up."""
    result_hash: str
    """SHA-256 of the ids, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """Something that is amiss, or was done to the query."""

    __pydantic_config__ = TOLD

    stage: str
    code: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouped:
    """What was found. `results` is the ranking; the groups hold the same entities."""

    __pydantic_config__ = TOLD

    query: str
    search_mode: SearchMode
    """What really ranked."""
    ranking: str
    confidence: Share
    """Of the best result; 0 without one."""
    results: Sequence[Result]
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
    diagnostics: Sequence[Note]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found(Grouped):
    """The answer to a search. `results` is the ranking; the groups hold the same entities."""

    __pydantic_config__ = TOLD

    discovery_receipt: Receipt


@dataclass(frozen=True, slots=True, kw_only=True)
class Tags:
    """The tags of what you may find."""

    __pydantic_config__ = TOLD

    tags: Sequence[str]
    """Sorted, in small letters."""
    counts: Mapping[str, int]
    """How many entities have each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hinted:
    """What else an entity is found by."""

    __pydantic_config__ = TOLD

    aliases: Sequence[str]
    keywords: Sequence[str]
    categories: Sequence[str]
    tags: Sequence[str]
    examples: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Thing:
    """One entity of the catalog."""

    __pydantic_config__ = TOLD

    id: str
    kind: str
    name: str
    namespace: str
    title: str
    description: str
    status: Status
    enabled: bool
    hints: Hinted
    scopes: Sequence[str]
    parent: str
    metadata: JsonObject
    listed: bool
    """Whether a server lists it: then it is changed there, not here."""
    digest: str
    """Changes when anything that is searched changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Things:
    """A page of entities."""

    __pydantic_config__ = TOLD

    entities: Sequence[Thing]
    next: str = ""
    """What the next page is asked for with, as `after`; empty on the last one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """Entities that hold the words, best first; or all of them, by id."""

    __pydantic_config__ = TOLD

    entities: Sequence[Thing]
    total: int
    search_mode: SearchMode


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """What the index is made of."""

    __pydantic_config__ = TOLD

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
    """Something of it is being made, such as vectors; the numbers are those of now."""
    diagnostics: Sequence[Note]
    details: Sequence[str] = ()
    """What the diagnostics are about: with the scope `catalog:admin`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilding:
    """A rebuild is under way; `/api/index` says when it is done."""

    __pydantic_config__ = TOLD

    rebuilding: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """Whether the server answers."""

    __pydantic_config__ = TOLD

    status: Literal["ok", "starting"]
    """`starting` until the first index is there: the first search waits for it."""
    version: str
