"""Bodies and parameters of the API, as pydantic models: what is checked, written and described.

Responses have the field names that clients of registries know. Every row of a search bears three
numbers: ``relevance_score`` is for display, 1 is the best of this response; ``confidence`` and
``similarity_score`` are absolute and comparable between responses.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Literal, TypeAlias

from pydantic import (
    AliasPath,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    computed_field,
)
from pydantic.config import JsonDict

from gateway.catalog.entries import LISTED, MAX_PATH_DEPTH, MAX_PATHS, MAX_SEGMENT, entry_id
from gateway.mcp.skills import FRONT
from gateway.types import JsonObject, Scoring, Status
from gateway.types.entities import MAX_SEARCH_TEXT_CHARS

_QUERY_OR_TAGS: JsonDict = {
    "anyOf": [
        {"required": ["query"], "properties": {"query": {"pattern": r"\S"}}},
        {"required": ["tags"], "properties": {"tags": {"minItems": 1}}},
    ]
}
MAX_RESULTS = 50

_END = r"$(?!\n)"
"""Python's ``$`` lets a newline follow, JSON Schema's does not."""
_NAME = r"\w[\w .,:;@+/()&'#!?*=~%-]{0,255}"
_SPACE = r"[A-Za-z0-9_.-]{1,64}"
_KIND = r"(?!(?:tool|prompt|resource)(?![a-z0-9_-]))[a-z][a-z0-9_-]{0,63}"
"""Every kind but the three that servers list."""
ENTRY_ID = re.compile(f"(?P<kind>{_KIND}):(?P<namespace>{_SPACE})/(?P<name>{_NAME})")
"""The id of a writable entity: kind, namespace, name."""
_STEP = rf"[\w-]{{1,{MAX_SEGMENT}}}"


def _whole(value: object) -> object:
    """Return 36.0 as 36: JSON Schema counts it as an integer."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Ranking = Literal["hybrid", "weighted", "legacy", "lexical", "strategy"]
Word: TypeAlias = Annotated[str, Field(min_length=1, max_length=64)]
Words: TypeAlias = Annotated[list[Word], Field(max_length=50)]
Query: TypeAlias = Annotated[str, Field(max_length=4096)]
Limit: TypeAlias = Annotated[int, Field(ge=1, le=MAX_RESULTS), BeforeValidator(_whole)]
DotPath: TypeAlias = Annotated[
    str, Field(pattern=rf"^{_STEP}(\.{_STEP}){{0,{MAX_PATH_DEPTH - 1}}}{_END}")
]
Short: TypeAlias = Annotated[str, Field(max_length=256)]
Shorts: TypeAlias = Annotated[list[Short], Field(max_length=100)]
SearchText: TypeAlias = Annotated[str, Field(max_length=MAX_SEARCH_TEXT_CHARS)]


class Request(BaseModel):
    """What all bodies and parameters have in common."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, use_attribute_docstrings=True, regex_engine="python-re"
    )


class _Body(Request):
    # Parameters are not strict: all of them are texts.
    model_config = ConfigDict(strict=True)


class Visibility(BaseModel):
    """What is shown besides what is enabled and active or beta."""

    include_draft: bool = False
    include_deprecated: bool = False
    include_disabled: bool = False


class SemanticSearch(Visibility, _Body):
    """A search of the catalog. Without a query it browses what has the tags."""

    model_config = ConfigDict(json_schema_extra=_QUERY_OR_TAGS)

    query: Query = ""
    """What is wanted, in any language; words as `#tag` are tags. May be empty if there are tags."""
    entity_types: Words | None = None
    """Kinds to look for: `mcp_server`, `virtual_server`, `a2a_agent`, `skill`, `tool`, `prompt`,
    `resource` or one of the host's own. None is all but prompts and resources."""
    tags: Words = []
    """All of these, compared without case."""
    max_results: Limit = 10
    metadata_fields: Annotated[list[DotPath], Field(max_length=MAX_PATHS)] | None = None
    """Dot-paths into the metadata that rows are to show; none shows all of it, an empty list
    nothing."""
    ranking: Ranking | None = None
    """How the evidence is weighed; none is as the server is set up."""
    explain: bool = False
    """Whether results say how their scores were made, and the server logs it."""


class EntityHints(_Body):
    """Other words by which an entity is found."""

    aliases: Shorts = []
    keywords: Shorts = []
    categories: Shorts = []
    tags: Shorts = []
    examples: Shorts = []
    """Requests that it serves, as a user would say them."""
    search_text: SearchText = ""
    """What searches read in place of the description; no model is shown it."""


class EntityBody(_Body):
    """An entity without its identity."""

    title: Short = ""
    description: Annotated[str, Field(max_length=8192)] = ""
    status: Status = "active"
    enabled: bool = True
    hints: EntityHints = EntityHints()
    scopes: Words = []
    """A caller needs all of these to find it; you must hold them yourself."""
    metadata: dict[str, JsonValue] = {}
    """Anything else, as JSON of at most 65,536 characters."""
    parent: Annotated[str, Field(max_length=512)] = ""
    """The id of what it belongs to."""


class NewEntity(EntityBody):
    """An entity to add. Its id will be `kind:namespace/name`."""

    kind: Annotated[str, Field(pattern=f"^{_KIND}{_END}")]
    """`server`, `virtual_server`, `agent`, `skill` or one of the host's own."""
    name: Annotated[str, Field(pattern=f"^{_NAME}{_END}")]
    namespace: Annotated[str, Field(pattern=f"^{_SPACE}{_END}")] = "catalog"


class EntityChange(_Body):
    """What changes of an entity; what is left out stays.

    Only tags, a search text and examples embed anything.
    """

    status: Status | None = None
    enabled: bool | None = None
    tags: Words | None = None
    scopes: Words | None = None
    """Of what a server lists, tags and scopes are added to those that it has otherwise."""
    search_text: SearchText | None = None
    """What searches read in place of the description; a blank one takes it back."""
    examples: Shorts | None = None
    """Requests that it serves, as a user would say them."""


class PageQuery(Request):
    """Which page of a list is wanted."""

    cursor: Annotated[str, Field(max_length=8192)] = ""
    """The `metadata.nextCursor` of the page before; the other parameters stay the same."""


class EntityPageQuery(Visibility, PageQuery):
    """Which entities are listed."""

    kind: Annotated[str, Field(pattern=rf"^[a-z][a-z0-9_-]{{0,63}}{_END}")] | None = None
    """None is every kind."""
    tags: Words = []
    """All of these; repeat the parameter."""
    limit: Annotated[int, Field(ge=1, le=500)] = 100


class EntityQuery(PageQuery):
    """Which servers or agents are listed."""

    query: Query = ""
    """A text that they hold somewhere, in any case; none lists all."""
    tags: Words = []
    """All of these; repeat the parameter."""
    limit: Limit = MAX_RESULTS


class SkillQuery(EntityQuery):
    """Which skills are searched for."""

    query: Query = Field(alias="q")
    """A text that they hold somewhere, in any case; the best come first."""
    limit: Limit = 10


SearchMode = Literal["hybrid", "vector", "lexical-only", "graph", "browse", "empty"]
Share = Annotated[float, Field(ge=0, le=1)]


class Response(BaseModel):
    """What all responses have in common."""

    model_config = ConfigDict(
        frozen=True, from_attributes=True, use_attribute_docstrings=True, serialize_by_alias=True
    )


class _Scored(Response):
    id: str
    """In the catalog; see `/api/entities/{id}`."""
    description: str
    relevance_score: Share
    """For display: 1 is the best of this response."""


class RankedResult(_Scored):
    """One entity of the ranking."""

    rank: int
    """From 1."""
    kind: str
    name: str
    server: str
    score: float
    """The score of the ranking: comparable within this response alone."""
    rrf_score: float | None = None
    """The sum of 1/(60 + rank), if lists were fused and `explain` is wanted."""
    scoring: Scoring | None = None
    """How the score was made, if `explain` is wanted and a policy ranked."""
    similarity_score: float | None
    """The cosine, -1 to 1; null without vectors."""
    confidence: Share
    """How likely it serves the query; comparable between searches."""


class MatchingTool(_Scored):
    """A tool of a matched server that holds words of the query."""

    tool_name: str
    relevance_score: Share
    """The share of the query that it holds: a scale of its own."""
    match_context: str


class _Row(_Scored):
    tags: Sequence[str]
    status: Status
    is_enabled: bool
    similarity_score: float | None
    """The cosine, -1 to 1; null without vectors."""
    match_context: str
    """The text to show of it."""


class ToolRow(_Row):
    """A tool: found itself, or lifted from a matched server."""

    tool_name: str
    name: str
    """What a model calls it."""
    server_name: str
    server_path: str
    input_schema: Annotated[JsonObject, Field(serialization_alias="inputSchema")]
    confidence: Share | None
    """Null of a lifted tool."""
    lifted: bool
    """Whether it is here only because its server matched and it holds words of the query."""


class Row(_Row):
    """The fields of every other row of a search."""

    path: str
    title: str
    confidence: Share
    """How likely it serves the query; comparable between searches."""
    metadata: JsonObject
    """As far as `metadata_fields` asks for it."""


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

    entity_type: str
    tool_count: int
    """The same as `num_tools`."""
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


class DiagnosticNote(Response):
    """A diagnostic of the search or of the index."""

    stage: str
    code: str


class HintsView(Response):
    """Other words by which an entity is found."""

    aliases: Sequence[str]
    keywords: Sequence[str]
    categories: Sequence[str]
    tags: Sequence[str]
    examples: Sequence[str]
    search_text: str


class EntityView(Response):
    """One entity of the catalog."""

    id: str
    kind: str
    name: str
    namespace: str = Field(validation_alias="server")
    title: str = Field(validation_alias=AliasPath("definition", "title"))
    description: str
    status: Status
    enabled: bool = Field(validation_alias=AliasPath("hints", "enabled"))
    hints: HintsView
    scopes: Annotated[Sequence[str], BeforeValidator(sorted)]
    parent: str
    metadata: JsonObject
    digest: str
    """Changes when anything that is searched changes but the search text."""
    details: JsonObject = Field(validation_alias=AliasPath("definition", "details"), exclude=True)
    relevance_score: float | None = None
    """In a search for skills: 0.5 for the name that holds the text, 0.3 for the description, 0.2
    for tags and 0.1 for metadata, added up."""

    @computed_field  # type: ignore[prop-decorator]  # (mypy knows no decorated property)
    @property
    def listed(self) -> bool:
        """Whether a server lists it: then only its use is changed here, by PATCH."""
        is_own = self.kind not in LISTED and FRONT not in self.details
        return not is_own or self.id != entry_id(self.kind, self.namespace, self.name)
