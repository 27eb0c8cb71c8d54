"""Request bodies, parameters and responses of the API."""

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
from gateway.types import JsonObject, PathStep, Scoring, Status
from gateway.types.entities import MAX_SEARCH_TEXT_CHARS

_QUERY_OR_TAGS: JsonDict = {
    "anyOf": [
        {"required": ["query"], "properties": {"query": {"pattern": r"\S"}}},
        {"required": ["tags"], "properties": {"tags": {"minItems": 1}}},
    ]
}
MAX_RESULTS = 50

_END = r"$(?!\n)"
"""End of a pattern. Python's ``$`` also matches before a final newline, JSON Schema's does not."""
_NAME = r"\w[\w .,:;@+/()&'#!?*=~%-]{0,255}"
_SPACE = r"[A-Za-z0-9_.-]{1,64}"
_KIND = r"(?!(?:tool|prompt|resource)(?![a-z0-9_-]))[a-z][a-z0-9_-]{0,63}"
ENTRY_ID = re.compile(f"(?P<kind>{_KIND}):(?P<namespace>{_SPACE})/(?P<name>{_NAME})")
_STEP = rf"[\w-]{{1,{MAX_SEGMENT}}}"


def _whole(value: object) -> object:
    """Convert 36.0 to 36, which JSON Schema treats alike."""
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
    """Base class of request bodies and request parameters."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, use_attribute_docstrings=True, regex_engine="python-re"
    )


class _Body(Request):
    # Query parameters are strings, so only bodies are strict.
    model_config = ConfigDict(strict=True)


class Visibility(BaseModel):
    """Options that also return draft, deprecated or disabled entities.

    Enabled entities with the status active or beta are always returned.
    """

    include_draft: bool = False
    include_deprecated: bool = False
    include_disabled: bool = False


class SemanticSearch(Visibility, _Body):
    """A search of the catalog. Without a query, it lists the entities that have the tags."""

    model_config = ConfigDict(json_schema_extra=_QUERY_OR_TAGS)

    query: Query = ""
    """Search query in any language. Words of the form `#tag` are tags. The query may be empty if
    `tags` is not empty."""
    entity_types: Words | None = None
    """Kinds to search: `mcp_server`, `virtual_server`, `a2a_agent`, `skill`, `tool`, `prompt`,
    `resource` or a custom kind. Null searches all kinds except prompts and resources."""
    tags: Words = []
    """Tags that an entity must have, all of them, compared without case."""
    max_results: Limit = 10
    metadata_fields: Annotated[list[DotPath], Field(max_length=MAX_PATHS)] | None = None
    """Dot paths of the metadata fields to return. Null returns all metadata, an empty list returns
    none."""
    ranking: Ranking | None = None
    """Ranking policy of the search. Null uses the default of the server."""
    explain: bool = False
    """True to return the parts of each score, and to log them on the server."""


class EntityHints(_Body):
    """Additional words and texts by which searches find an entity."""

    aliases: Shorts = []
    keywords: Shorts = []
    categories: Shorts = []
    tags: Shorts = []
    examples: Shorts = []
    """Example requests that the entity serves, in the words of a user."""
    search_text: SearchText = ""
    """Text that searches use instead of the description. Models never see it."""


class EntityBody(_Body):
    """An entity without its kind, namespace and name, which its id contains."""

    title: Short = ""
    description: Annotated[str, Field(max_length=8192)] = ""
    status: Status = "active"
    enabled: bool = True
    hints: EntityHints = EntityHints()
    scopes: Words = []
    """Scopes required to see the entity. You must have all of them yourself."""
    metadata: dict[str, JsonValue] = {}
    """Additional data of the entity as JSON, at most 65,536 characters."""
    parent: Annotated[str, Field(max_length=512)] = ""
    """Id of the entity that contains this one, such as a server. Empty without such an entity."""


class NewEntity(EntityBody):
    """An entity to add. Its id will be `kind:namespace/name`."""

    kind: Annotated[str, Field(pattern=f"^{_KIND}{_END}")]
    """`server`, `virtual_server`, `agent`, `skill` or a custom kind."""
    name: Annotated[str, Field(pattern=f"^{_NAME}{_END}")]
    namespace: Annotated[str, Field(pattern=f"^{_SPACE}{_END}")] = "catalog"


class EntityChange(_Body):
    """Changes of an entity. Fields that are omitted or null stay as they are.

    Embeddings are computed again only if tags, search text or examples change.
    """

    status: Status | None = None
    enabled: bool | None = None
    tags: Words | None = None
    scopes: Words | None = None
    """Scopes required to see the entity. If a server lists the entity, these scopes and tags are
    added to those of the server's listing."""
    search_text: SearchText | None = None
    """Text that searches use instead of the description. A blank text removes it."""
    examples: Shorts | None = None
    """Example requests that the entity serves, in the words of a user."""


class PageQuery(Request):
    """Parameter that selects a page of a list."""

    cursor: Annotated[str, Field(max_length=8192)] = ""
    """The `metadata.nextCursor` of the previous page. All other parameters except `limit` must stay
    the same."""


class EntityPageQuery(Visibility, PageQuery):
    """Parameters of the list of entities."""

    kind: Annotated[str, Field(pattern=rf"^[a-z][a-z0-9_-]{{0,63}}{_END}")] | None = None
    """Kind of the entities to list. If it is omitted, all kinds are listed."""
    tags: Words = []
    """Tags that an entity must have. Repeat the parameter for several tags."""
    limit: Annotated[int, Field(ge=1, le=500)] = 100


class EntityQuery(PageQuery):
    """Parameters of the lists of servers and agents."""

    query: Query = ""
    """Text that an entity must contain, compared without case. An empty text lists all entities."""
    tags: Words = []
    """Tags that an entity must have. Repeat the parameter for several tags."""
    limit: Limit = MAX_RESULTS


class SkillQuery(EntityQuery):
    """Parameters of the search for skills."""

    query: Query = Field(alias="q")
    """Text that a skill must contain, compared without case. The best matches come first."""
    limit: Limit = 10


SearchMode = Literal["hybrid", "vector", "lexical-only", "graph", "browse", "empty"]
Share = Annotated[float, Field(ge=0, le=1)]


class Response(BaseModel):
    """Base class of response bodies and their parts."""

    model_config = ConfigDict(
        frozen=True, from_attributes=True, use_attribute_docstrings=True, serialize_by_alias=True
    )


class _Scored(Response):
    id: str
    """Id of the entity in the catalog, as in `/api/entities/{id}`."""
    description: str
    relevance_score: Share
    """Score for display, 0 to 1. The best result of this response has 1."""


class RankedResult(_Scored):
    """One entity in the ranking of a search."""

    rank: int
    """Position in the ranking, starting at 1."""
    kind: str
    name: str
    server: str
    score: float
    """Score that the ranking policy computed. Comparable only within this response."""
    rrf_score: float | None = None
    """Score of rank fusion: the sum of 1/(60 + rank) over the fused lists. Null without `explain`,
    or if no lists were fused."""
    scoring: Scoring | None = None
    """Parts of the score. Null without `explain`, or if no ranking policy computed the score."""
    similarity_score: float | None
    """Cosine similarity of the query and the entity, -1 to 1. Null if it was not computed."""
    confidence: Share
    """Probability that the entity serves the query, 0 to 1. Comparable between searches."""


class Supplement(Response):
    """A tool that the graph adds to the results."""

    id: str
    """Id of the entity in the catalog, as in `/api/entities/{id}`."""
    kind: str
    name: str
    """Name under which models call the tool."""
    server: str
    description: str
    confidence: Share
    """Probability that the tool itself serves the query, 0 to 1."""
    path: Sequence[PathStep]
    """Edges that lead from a result to the tool."""


class MatchingTool(_Scored):
    """A tool of a matched server that contains words of the query."""

    tool_name: str
    relevance_score: Share
    """Share of the query words that the tool contains, 0 to 1. Not comparable with the scores of
    results."""
    match_context: str


class _Row(_Scored):
    tags: Sequence[str]
    status: Status
    is_enabled: bool
    similarity_score: float | None
    """Cosine similarity of the query and the entity, -1 to 1. Null if it was not computed."""
    match_context: str
    """Description of the entity, to show next to the result."""


class ToolRow(_Row):
    """A tool that the search found, or that was added because its server matched."""

    tool_name: str
    name: str
    """Name under which models call the tool."""
    server_name: str
    server_path: str
    input_schema: Annotated[JsonObject, Field(serialization_alias="inputSchema")]
    confidence: Share | None
    """Probability that the tool serves the query. Null if `lifted`."""
    lifted: bool
    """True if the search did not find the tool itself. It was added because its server matched and
    it contains words of the query."""


class Row(_Row):
    """Fields of a search result of any kind except tool."""

    path: str
    title: str
    confidence: Share
    """Probability that the entity serves the query, 0 to 1. Comparable between searches."""
    metadata: JsonObject
    """Metadata of the entity, limited to the paths in `metadata_fields` of the request."""


class ServerRow(Row):
    """An MCP server."""

    server_name: str
    num_tools: int
    """Number of the server's tools that you may find."""
    endpoint_url: str | None
    """Address of the server. Null if its catalog entry does not contain one."""
    matching_tools: Sequence[MatchingTool]


class VirtualServerRow(ServerRow):
    """A virtual server: aliases of tools that are used as one server."""

    entity_type: str
    tool_count: int
    """Equal to `num_tools`."""
    backend_count: int
    backend_paths: Sequence[str]


class AgentRow(Row):
    """An agent."""

    agent_name: str
    agent_card: JsonObject | None
    """The agent card. Null if the catalog has no card, or if `metadata_fields` is set."""


class SkillRow(Row):
    """A skill."""

    skill_name: str
    skill_md_url: str | None
    author: str | None
    version: str | None


class CustomRow(Row):
    """An entity of any other kind."""

    entity_type: str
    name: str


class DiagnosticNote(Response):
    """A diagnostic of the search or of the index."""

    stage: str
    code: str


class HintsView(Response):
    """Additional words and texts by which searches find an entity."""

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
    """Digest of the definition, hints and metadata. The search text does not affect it."""
    details: JsonObject = Field(validation_alias=AliasPath("definition", "details"), exclude=True)
    relevance_score: float | None = None
    """Score in a search for skills: the sum of 0.5 if the name or title contains the text, 0.3 for
    the description, 0.2 for tags and 0.1 for metadata. Null in other lists, and if `q` is empty."""

    @computed_field  # type: ignore[prop-decorator]  # (mypy knows no decorated property)
    @property
    def listed(self) -> bool:
        """True if a server lists the entity. It can then be changed only with PATCH."""
        is_own = self.kind not in LISTED and FRONT not in self.details
        return not is_own or self.id != entry_id(self.kind, self.namespace, self.name)
