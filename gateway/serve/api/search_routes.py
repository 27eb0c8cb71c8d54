"""Search over HTTP: one ranking, shown as a list and in the groups of registries."""

from __future__ import annotations

import hashlib
import secrets
import time
import uuid
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import repeat
from typing import Any, Literal

from gateway.catalog.entries import project
from gateway.errors import ConfigError
from gateway.gateway import Gateway
from gateway.manifests.agent_cards import is_card
from gateway.search.rank.display import ToolWords, server_tools, words_of
from gateway.serve.api.catalog_view import SEARCH_MODES, CatalogView, CatalogViews
from gateway.serve.api.models import (
    AgentRow,
    CustomRow,
    DiagnosticNote,
    MatchingTool,
    RankedResult,
    Ranking,
    Response,
    Row,
    SearchMode,
    SemanticSearch,
    ServerRow,
    Share,
    SkillRow,
    ToolRow,
    VirtualServerRow,
)
from gateway.serve.api.operations import ApiCall, operation
from gateway.serve.api.problems import RefusedError
from gateway.types import Entity, Filters, JsonObject, Match, SearchResult
from graphs.lexical.analysis import tokens

_FUSIONS: Mapping[str, Ranking] = {"rrf": "hybrid", "legacy": "legacy"}
MAX_TAGS = 500
_ROOTS = {"virtual_server": "/virtual", "agent": "/agents", "skill": "/skills"}
_SERVERS = frozenset({"server", "virtual_server"})
_GROUPS: Mapping[str, tuple[str, type[Row | ToolRow]]] = {
    "server": ("servers", ServerRow),
    "tool": ("tools", ToolRow),
    "agent": ("agents", AgentRow),
    "skill": ("skills", SkillRow),
    "virtual_server": ("virtual_servers", VirtualServerRow),
}
"""The group of each kind, and the rows in it."""
_CUSTOM = ("custom", CustomRow)
"""The group of every other kind."""


def default_ranking(fusion: str, gateway: Gateway) -> Ranking:
    """Return how evidence is weighed where a search does not say.

    Args:
        fusion: ``rrf`` or ``legacy``. Where there are no vectors to fuse, ``rrf`` is words alone.
        gateway: The searched gateway.

    Raises:
        ConfigError: There is no such fusion.
    """
    if fusion not in _FUSIONS:
        raise ConfigError(f"SEARCH_FUSION_METHOD must be rrf or legacy, got {fusion!r}")
    has_vectors = gateway.embedder is not None and gateway.strategy != "graph"
    return "lexical" if fusion == "rrf" and not has_vectors else _FUSIONS[fusion]


class Receipt(Response):
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


class SearchResponse(Response):
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


class TagCounts(Response):
    """The tags of what you may find."""

    tags: Sequence[str]
    """Sorted, in small letters."""
    counts: Mapping[str, int]
    """How many entities have each."""


class SearchRoutes:
    """The operations under ``/api/search``.

    Args:
        gateway: The searched gateway.
        views: Shared by all routes.
        ranking: How evidence is weighed where a request does not say.
    """

    def __init__(self, gateway: Gateway, views: CatalogViews, *, ranking: Ranking) -> None:
        self._gateway = gateway
        self._views = views
        self._ranking: Ranking = ranking
        self._hash_key = secrets.token_bytes(32)

    @operation("POST", "/api/search/semantic", body=SemanticSearch, response=SearchResponse)
    async def search(self, call: ApiCall) -> SearchResponse:
        """Search the catalog by meaning and words.

        Raises:
            RefusedError: 400, without query and tags; 404, if there is no such kind.
        """
        started = time.perf_counter()
        request: SemanticSearch = call.request
        if not request.query.strip() and not request.tags:
            raise RefusedError(400, "nothing_asked", "give a query, or tags, or both")
        view = await self._views.current()
        kinds = view.resolve_kinds(request.entity_types)
        filters = view.filters(call.caller, kinds, request.tags, request)
        ranking = request.ranking or self._ranking
        result = await self._gateway.search(
            request.query or None,
            limit=self._gateway.options.search.max_limit,
            filters=filters,
            ranking=ranking,
            diversify=True,
            display_limit=request.max_results,
        )
        # The catalog may have changed during the search: rows show it as it is now.
        rows = _Rows(await self._views.current(), filters, request)
        hits = rows.hits(result)
        groups = rows.groups(hits)
        totals: dict[str, Any] = {f"total_{name}": len(group) for name, group in groups.items()}
        return SearchResponse(
            query=request.query,
            search_mode=SEARCH_MODES[result.mode],
            ranking=ranking,
            confidence=round(max((hit.match.confidence for hit in hits), default=0.0), 4),
            results=[_ranked(hit, rank) for rank, hit in enumerate(hits, 1)],
            diagnostics=list(map(DiagnosticNote.model_validate, result.diagnostics)),
            discovery_receipt=self._receipt(rows, result, hits, started),
            **groups,
            **totals,
        )

    def _receipt(
        self, rows: _Rows, result: SearchResult, hits: Sequence[_Hit], started: float
    ) -> Receipt:
        fingerprint = repr((rows.request, sorted(rows.filters.scopes))).encode("utf-8", "replace")
        ids = "\n".join(hit.entity.id for hit in hits).encode("utf-8", "replace")
        hashed = hashlib.blake2b(fingerprint, key=self._hash_key, digest_size=16)
        return Receipt(
            id=uuid.uuid4().hex,
            time=datetime.now(UTC).isoformat(timespec="milliseconds"),
            duration_ms=round((time.perf_counter() - started) * 1000, 3),
            stop_reason="results_returned" if hits else "no_match",
            eligible=result.counts.eligible,
            candidates=result.counts.candidates,
            returned=len(hits),
            returned_by_kind=Counter(hit.entity.kind for hit in hits),
            index=rows.view.snapshot.version,
            request_hash=hashed.hexdigest(),
            result_hash=hashlib.sha256(ids).hexdigest(),
        )

    @operation("GET", "/api/search/tags", response=TagCounts)
    async def tags(self, call: ApiCall) -> TagCounts:
        """List the tags of what you may find."""
        view = await self._views.current()
        counts = await self._gateway.catalog.tags(view.filters(call.caller))
        shown_counts = dict(sorted(counts.items())[:MAX_TAGS])
        return TagCounts(tags=list(shown_counts), counts=shown_counts)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Hit:
    """One displayed entity."""

    entity: Entity
    match: Match
    display: float
    """Its score for display, 0 to 1."""


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows of one search, over the catalog as it is now."""

    view: CatalogView
    filters: Filters
    request: SemanticSearch

    def hits(self, result: SearchResult) -> list[_Hit]:
        """Return what is displayed of *result*, without what may be found no more."""
        matches = result.matches[: self.request.max_results]
        visible = self.view.visible([match.id for match in matches], self.filters)
        return [
            _Hit(entity=visible[match.id], match=match, display=display)
            for match, display in zip(matches, result.display_scores or repeat(1.0), strict=False)
            if match.id in visible
        ]

    def groups(self, hits: Sequence[_Hit]) -> Mapping[str, Any]:
        """Return the rows of *hits* by group, each group in the order of the ranking.

        Matched servers bring along their tools that hold words of the query.
        """
        servers = [hit.entity.id for hit in hits if hit.entity.kind in _SERVERS]
        tools = {server: self._visible_tools(server) for server in servers}
        lifted = self._lift([tool for own in tools.values() for tool in own])
        groups: defaultdict[str, list[Row | ToolRow]] = defaultdict(list)
        for hit in hits:
            fields = self._fields(hit)
            if hit.entity.id in tools:
                fields["num_tools"] = len(tools[hit.entity.id])
                fields["matching_tools"] = [
                    MatchingTool(**_entity_fields(tool, display))
                    for tool, display in lifted
                    if tool.parent == hit.entity.id
                ]
            group, row = _GROUPS.get(hit.entity.kind, _CUSTOM)
            groups[group].append(row(**fields))
        if "tool" in self.filters.kinds:
            found = {row.id for row in groups["tools"]}
            rows = [ToolRow(**_entity_fields(tool, display)) for tool, display in lifted]
            groups["tools"] += [row for row in rows if row.id not in found]
        return {name: groups[name] for name, _ in (*_GROUPS.values(), _CUSTOM)}

    def _fields(self, hit: _Hit) -> dict[str, Any]:
        """Return what a row may say of *hit*."""
        entity, wanted = hit.entity, self.request.metadata_fields
        shows_card = wanted is None and is_card(entity.metadata)
        card = {"name": entity.name, "description": entity.description, **entity.metadata}
        return {
            **_entity_fields(entity, hit.display, hit.match),
            "metadata": project(entity.metadata, wanted),
            "agent_card": card if shows_card else None,
        }

    def _visible_tools(self, server: str) -> list[Entity]:
        """Return the tools of *server* that the caller may see."""
        # The tags that were searched for are those of the server.
        filters = replace(self.filters, kinds=frozenset({"tool"}), tags=frozenset())
        mask, entities = self.view.snapshot.mask(filters), self.view.snapshot.entities
        return [
            entities[position] for position in self.view.tools.get(server, ()) if mask[position]
        ]

    def _lift(self, tools: Sequence[Entity]) -> list[tuple[Entity, float]]:
        """Return those of *tools* that hold words of the query, with their display scores."""
        words = [
            ToolWords(
                server=tool.server,
                name=tool.name,
                name_words=words_of(tokens(tool.name)),
                description_words=words_of(tokens(tool.description)),
            )
            for tool in tools
        ]
        query = words_of(tokens(self.request.query))
        found = server_tools(words, query, limit=self.request.max_results)
        return [(tools[each.place], each.display) for each in found]


def _ranked(hit: _Hit, rank: int) -> RankedResult:
    fields = _entity_fields(hit.entity, hit.display, hit.match)
    return RankedResult(**fields, rank=rank, score=round(hit.match.score, 6))


def _entity_fields(entity: Entity, display: float, match: Match | None = None) -> dict[str, Any]:
    """Return what rows say of *entity*, of whatever kind: each takes the fields that it has.

    Without a match it is a tool that is lifted from its server.
    """
    name, metadata = entity.name, entity.metadata
    cosine = match.evidence.vector if match else None
    backends = entity.definition.details.get("servers", metadata.get("servers"))
    paths = [f"/{backend}" for backend in backends] if isinstance(backends, list) else []
    return {
        "id": entity.id,
        "kind": entity.kind,
        "entity_type": entity.kind,
        "name": entity.exposed_name if entity.kind == "tool" else name,
        "tool_name": name,
        "skill_name": name,
        "agent_name": entity.definition.title or name,
        "server": entity.server,
        "server_name": name if entity.kind in _SERVERS else entity.server,
        "server_path": f"/{entity.server}",
        "path": entity_path(entity),
        "title": entity.definition.title,
        "description": entity.description,
        "match_context": entity.description,
        "tags": entity.hints.tags,
        "status": entity.status,
        "is_enabled": entity.hints.enabled,
        "input_schema": entity.definition.input_schema,
        "relevance_score": display,
        "similarity_score": None if cosine is None else round(cosine, 4),
        "confidence": round(match.confidence, 4) if match else None,
        "lifted": match is None,
        "backend_count": len(paths),
        "backend_paths": paths,
        "endpoint_url": _text(metadata, "endpoint_url", "mcp_endpoint", "url"),
        **{key: _text(metadata, key) for key in ("skill_md_url", "author", "version")},
    }


def entity_path(entity: Entity) -> str:
    """Return the path by which registries know *entity*."""
    path = entity.metadata.get("path")
    if isinstance(path, str) and path.startswith("/"):
        return path
    return f"{_ROOTS.get(entity.kind, '')}/{entity.name}"


def _text(metadata: JsonObject, *names: str) -> str | None:
    values = (metadata.get(name) for name in names)
    return next((value for value in values if isinstance(value, str) and value), None)
