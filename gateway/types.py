"""The values that cross module borders.

* Frozen, slotted, keyword-only; collections are tuples and mappings. A change is `replace()`.
* What differs between kinds of entities is a table in `catalog/kinds.py`, never a class.
* Text that came from an upstream stays data: nothing here interprets it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

JsonObject: TypeAlias = Mapping[str, object]
"""A JSON object as `json.loads` gives it."""

BuiltinKind = Literal["tool", "server", "virtual_server", "agent", "skill", "prompt", "resource"]
Kind: TypeAlias = str
"""A `BuiltinKind`, or a kind that the host declares."""
Status = Literal["active", "draft", "deprecated"]
Strategy = Literal["graph", "embeddings", "auto"]
RankingPolicy = Literal["strategy", "hybrid", "weighted", "legacy", "lexical"]
"""How one search weighs its evidence: as the gateway's strategy says, or by one of
`gateway.search.policies`."""
RankingMode = Literal["browse", "empty", "graph", "vector", "hybrid", "lexical"]
"""What really ranked: *browse* no query, *empty* no catalog, *graph* words and graph only,
*vector* vectors alone, *hybrid* vectors with other evidence, *lexical* words alone."""
Stage = Literal[
    "catalog", "store", "normalize", "embed", "vector", "lexical", "graph", "confidence", "invoke"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostic:
    """A note that an optional stage leaves instead of raising."""

    stage: Stage
    code: str
    """A stable code of `CODES`."""
    detail: str = ""
    """Which thing and why; for people, without queries, arguments or secrets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hints:
    """What a host knows of a tool beyond its definition. None means unknown."""

    aliases: tuple[str, ...] = ()
    """Other names people use for it, in any language."""
    keywords: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    """Labels to filter by, compared without case."""
    examples: tuple[str, ...] = ()
    """Requests that this tool serves, as a user would say them."""
    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    enabled: bool = True
    """A disabled tool is neither found nor called."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDefinition:
    """A tool, a resource or a prompt as its source describes it."""

    name: str
    """The source's own name, unchanged: what a call sends back. Of a resource: URI or template."""
    title: str = ""
    description: str = ""
    input_schema: JsonObject = field(default_factory=dict)
    """A JSON Schema of type object: what a prompt or a template must be filled with, too."""
    output_schema: JsonObject | None = None
    hints: Hints = field(default_factory=Hints)
    kind: Kind = "tool"
    details: JsonObject = field(default_factory=dict)
    """What else a source says of a resource or a prompt, for who lists it; empty for a tool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity:
    """One thing of the catalog."""

    id: str
    """``server/name``; ``kind:server/name`` of what is no tool. Stable across restarts."""
    kind: Kind = "tool"
    exposed_name: str
    """What a model sees of a tool: at most 64 characters of ``[A-Za-z0-9_-]``. Of a resource or a
    prompt: its address here; of anything else its id. Unique in the catalog."""
    server: str
    definition: ToolDefinition
    status: Status = "active"
    scopes: frozenset[str] = frozenset()
    """A caller needs all of these; empty means anyone."""
    trusted: bool = False
    """True if the host itself wrote the definition (a Python function, an own file)."""
    digest: str = ""
    """SHA-256 hex of the canonical definition and hints; changes when anything searched changes."""
    parent: str = ""
    """The id of what it belongs to: a tool's server."""
    metadata: JsonObject = field(default_factory=dict)
    """What else an entry of the catalog says of itself."""

    @property
    def name(self) -> str:
        """The source's own name."""
        return self.definition.name

    @property
    def description(self) -> str:
        """The source's description; may be empty."""
        return self.definition.description

    @property
    def hints(self) -> Hints:
        """The merged search hints."""
        return self.definition.hints

    @property
    def required(self) -> tuple[str, ...]:
        """The required argument names, in the schema's order."""
        names = self.definition.input_schema.get("required")
        return tuple(map(str, names)) if isinstance(names, (list, tuple)) else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """Who may be found. Applied before any retriever sees the catalog."""

    kinds: frozenset[Kind] = frozenset({"tool"})
    statuses: frozenset[Status] = frozenset({"active"})
    tags: frozenset[str] = frozenset()
    """All of these, compared without case."""
    servers: frozenset[str] = frozenset()
    """One of these; empty means any."""
    scopes: frozenset[str] = frozenset()
    """What the caller holds."""
    include_disabled: bool = False
    healthy_only: bool = False
    """Leave out who hangs on a server that cannot be reached just now."""
    without: frozenset[str] = frozenset()
    """None of these: servers by name, entities by id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest:
    """One search, checked and ready for the pipeline."""

    queries: tuple[str, ...]
    """As the user said it; several means one for each step of a task. Empty means browse."""
    context: str = ""
    """Flattened context and its summary: read by the retrievers, never by confidence."""
    limit: int = 5
    filters: Filters = field(default_factory=Filters)
    ranking: RankingPolicy = "strategy"
    spread: bool = False
    """Whether kinds leave places to each other; see `gateway.search.spread`."""
    places: int = 0
    """So many of *limit* are chosen for display, 0 is all; see `gateway.search.grouped`."""
    tenant: str = ""
    """For whom; whose calls count as own where use has a say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PathStep:
    """One edge of the graph on the way to a supplement."""

    subject: str
    """An entity's id, or a node of the graph that is none."""
    predicate: str
    object: str
    """As the subject."""
    source: str = ""
    """File and line the edge came from, ``file:line``; empty for a derived edge."""
    declared: bool = False
    """True if the host wrote the edge."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Why something was found. Every number is None where its stage did not speak."""

    vector: float | None = None
    """Best cosine over the query texts, -1 to 1."""
    lexical: float | None = None
    """Share of the query's words that the entity holds, weighted by rarity, 0 to 1."""
    graph: float | None = None
    """Share of the query's words that the entity's graph node holds, 0 to 1."""
    words: tuple[str, ...] = ()
    """The query words that met."""
    path: tuple[PathStep, ...] = ()
    """The edges from a primary match to this supplement."""
    exact_name: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """One found entity."""

    id: str
    name: str
    """The exposed name: what a model calls."""
    server: str
    description: str
    required: tuple[str, ...] = ()
    score: float
    """The ranking's own number, best first within one list; not comparable between queries."""
    confidence: float
    """Calibrated, 0 to 1, comparable between queries and ranking modes."""
    evidence: Evidence = field(default_factory=Evidence)
    direct: bool = True
    """Whether it may become a proxy tool: a match, or a supplement inside the semantic window."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """How much work one search was."""

    eligible: int = 0
    """Entities that passed the filters."""
    candidates: int = 0
    """Entities in the re-scoring pool."""
    window: int = 0
    """Entities that a supplement may come from."""
    graph_nodes: int = 0
    """Graph nodes visited by expansion."""
    embedded_texts: int = 0
    """Texts sent to the embedder by this search; 0 on a cache hit."""
    tokens: int = 0
    """Tokens that the embedder reported for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """What a search gives, in every case. Nothing found is not the same as could not look."""

    matches: tuple[Match, ...] = ()
    prerequisites: tuple[Match, ...] = ()
    """What must be called before a match, by hard edges; the first match's first. One that is a
    match itself is listed too, if a better match needs it."""
    related: tuple[Match, ...] = ()
    next_steps: tuple[Match, ...] = ()
    mode: RankingMode
    diagnostics: tuple[Diagnostic, ...] = ()
    counts: Counts = field(default_factory=Counts)
    normalized: tuple[str, ...] = ()
    """The English form of each query that normalization changed, else the query itself."""
    stages: Mapping[str, float] = field(default_factory=dict, compare=False)
    """Seconds spent in each stage, by name."""
    nearest: Match | None = None
    """Where nothing serves the request: what came nearest all the same."""
    unmatched: tuple[str, ...] = ()
    """Where nothing serves the request: its words that no entity holds."""
    servers: tuple[str, ...] = ()
    """Where nothing serves the request: which servers there are, by name."""
    displays: tuple[float, ...] = ()
    """Of matches that were chosen for display: the score of each for people, from 0 to 1."""
    cached: bool = field(default=False, compare=False)
    """True if this result came from the result cache."""

    @property
    def shown(self) -> tuple[Match, ...]:
        """All lists as one: each match with its prerequisites after it, related, next steps.

        Each entity once, where it is named first: a match that a better one needs moves up.
        """
        after: dict[str, list[Match]] = {}
        for each in self.prerequisites:
            path = each.evidence.path
            after.setdefault(path[0].subject if path else "", []).append(each)
        ordered = [one for match in self.matches for one in (match, *after.pop(match.id, ()))]
        left = [one for found in after.values() for one in found]
        every = (*ordered, *left, *self.related, *self.next_steps)
        first = {each.id: each for each in reversed(every)}
        return tuple(first[key] for key in dict.fromkeys(each.id for each in every))

    @property
    def degraded(self) -> bool:
        """True if a stage that should have worked did not."""
        return any(note.code in DEGRADING for note in self.diagnostics)


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """One block of a tool's answer, whole."""

    type: str
    """``text``, ``image``, ``audio``, ``resource``, ``resource_link`` or what the upstream says."""
    text: str = ""
    """The text of a text block or of an embedded text resource."""
    data: JsonObject = field(default_factory=dict)
    """The block as JSON, nothing dropped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InvokeResult:
    """What a tool answered."""

    tool_id: str
    content: tuple[Content, ...] = ()
    structured: object = None
    is_error: bool = False
    """True if the tool said that it failed; the content then says why."""

    @property
    def text(self) -> str:
        """All text blocks, one after another."""
        return "\n".join(block.text for block in self.content if block.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptMessage:
    """One message of a prompt."""

    role: str
    """``user`` or ``assistant``."""
    content: Content


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptResult:
    """A prompt, filled in."""

    description: str = ""
    messages: tuple[PromptMessage, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexReport:
    """What one index build did."""

    generation: int
    """Counts catalog changes; equal generations mean equal catalogs."""
    entities: int = 0
    tools: int = 0
    vectors: int = 0
    embedded_texts: int = 0
    """Texts really sent to the embedder; the others came from the store."""
    tokens: int = 0
    graph_nodes: int = 0
    graph_edges: int = 0
    duration_s: float = 0.0
    saved: bool = False
    """Whether the index was not made but read, as it was saved by an earlier process."""
    diagnostics: tuple[Diagnostic, ...] = ()


CODES: Mapping[str, str] = {
    "config_warning": "A configuration file says something that is not understood or cannot work.",
    "source_load_failed": "A source could not be listed; its tools are missing, the others work.",
    "source_stale": "A source could not be listed again; its tools are those of before.",
    "catalog_unavailable": "The catalog store failed; tool lists live in memory only.",
    "registry_unavailable": "The registry of servers could not be read.",
    "registry_stale": "The registry's last answer was used, which is older than a day.",
    "registry_truncated": "The registry offers more than its limits allow, or stopped under way.",
    "registry_entry_skipped": "One entry of the registry cannot be read; the others are used.",
    "tool_quarantined": "One tool's definition cannot be used; the rest of its source lives.",
    "tool_changed": "A tool's definition is not the one that was approved.",
    "tool_suspicious": "A tool's definition looks like an attack on a model.",
    "server_changed": "A configured server's command line or address is not the approved one.",
    "listing_truncated": "A source offered more pages or tools than its limits allow.",
    "listing_incomplete": "A server's resources or prompts could not be listed; its tools work.",
    "name_qualified": "Two sources offer this name; both are exposed with their server's name.",
    "store_unavailable": "A store failed: vectors live in memory only, or an index is not saved.",
    "store_rebuilt": "A store's file was corrupt: it was set aside, and what it held made anew.",
    "embedder_missing": "The strategy wants vectors but no embedder was given.",
    "embedding_failed": "The embedder raised.",
    "vectors_incomplete": "Some entities have no vector: only words and graph can find them.",
    "query_vector_unusable": "The query's vector was zero, not finite or of the wrong length.",
    "query_mended": "Misspelt words of the query were mended; the words as typed count too.",
    "query_normalized": "The query was rewritten in English.",
    "query_tagged": "Tags in the query were taken out of it and are filters.",
    "query_normalization_failed": "The normalizer failed; the original query was used.",
    "query_truncated": "The query was longer than the cap; its beginning was used.",
    "context_ignored": "The context could not be read as JSON and was left out.",
    "limit_clamped": "The limit was above the maximum and was lowered to it.",
    "lexical_fallback": "Vectors were wanted but not usable; words alone ranked.",
    "graph_fallback": "Vectors were wanted but not usable; the graph answered.",
    "graph_unavailable": "No usable graph; supplements are missing.",
    "graph_document_invalid": "A graph document of the host could not be read; the others work.",
    "low_confidence_results": "Nothing found is likely to be what was asked for.",
    "no_match": "Nothing in the catalog is likely to serve the request; `nearest` is closest.",
    "unknown_tag": "No entity that may be found has this tag; near ones are named.",
    "unknown_tool": "A tool id that was asked for is not in the catalog.",
}
"""Every diagnostic code and what it means."""

DEGRADING = frozenset(
    {
        "embedding_failed",
        "graph_fallback",
        "lexical_fallback",
        "graph_unavailable",
        "query_normalization_failed",
        "query_vector_unusable",
        "source_load_failed",
        "vectors_incomplete",
    }
)
"""Codes of results that are not worth keeping: the next request tries again."""
