"""HTTP routes of search, whose ranking is also grouped as in MCP registries."""

from __future__ import annotations

import hashlib
import secrets
import time
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import chain, repeat
from typing import Any, Literal

from fastapi import APIRouter, Request

from gateway.catalog.entries import project
from gateway.errors import ConfigError, missing_plugin
from gateway.gateway import Gateway
from gateway.index.snapshot import Snapshot
from gateway.plugin_manager import own_plugins
from gateway.search.rank.display import server_tools
from gateway.serve.api import models
from gateway.serve.api.problems import RefusedError
from gateway.serve.api.routing import BODY_PROBLEMS, ApiRoute, CurrentCaller, ServedGateway
from gateway.serve.api.visibility import SEARCH_MODES, request_filters, resolve_kinds, visible
from gateway.serve.catalog_search import search_catalog
from gateway.types import Entity, Filters, JsonObject, Match, SearchResult

router = APIRouter(route_class=ApiRoute)
_HASH_KEY = secrets.token_bytes(32)
_FUSIONS: Mapping[str, models.Ranking] = {"rrf": "hybrid", "legacy": "legacy"}
MAX_TAGS = 500
_ROOTS = {"virtual_server": "/virtual", "agent": "/agents", "skill": "/skills"}
_SERVERS = frozenset({"server", "virtual_server"})
_GROUPS: Mapping[str, tuple[str, type[models.Row | models.ToolRow]]] = {
    "server": ("servers", models.ServerRow),
    "tool": ("tools", models.ToolRow),
    "agent": ("agents", models.AgentRow),
    "skill": ("skills", models.SkillRow),
    "virtual_server": ("virtual_servers", models.VirtualServerRow),
}
"""Response group and class of its rows, keyed by kind of entity."""
_CUSTOM = ("custom", models.CustomRow)
"""Response group and class of its rows, for all other kinds."""
_Fields = dict[str, Any]
"""Fields of one search result. A row class uses only the fields that it declares."""


def default_ranking(fusion: str, gateway: Gateway) -> models.Ranking:
    """Return the default ranking policy for *fusion*, ``rrf`` or ``legacy``.

    If the gateway has no vectors, ``rrf`` ranks by words only.

    Raises:
        ConfigError: If *fusion* is unknown, or its ranking plugin is not loaded.
    """
    if fusion not in _FUSIONS:
        raise ConfigError(f"SEARCH_FUSION_METHOD must be rrf or legacy, got {fusion!r}")
    has_vectors = gateway.embedder is not None and gateway.strategy != "graph"
    if fusion == "rrf" and (not has_vectors or "hybrid" not in gateway.searches.rankings):
        return "lexical"
    if _FUSIONS[fusion] not in gateway.searches.rankings:
        raise missing_plugin(f"SEARCH_FUSION_METHOD={fusion}", "rankings")
    return _FUSIONS[fusion]


class Receipt(models.Response):
    """A record of the search, to keep as evidence.

    Query and results are included only as hashes.
    """

    id: str
    time: str
    """Time of the search in UTC (RFC 3339)."""
    duration_ms: float
    stop_reason: Literal["results_returned", "no_match"]
    eligible: int
    """Number of entities that passed the filters of the search."""
    candidates: int
    """Number of entities that were ranked."""
    returned: int
    returned_by_kind: Mapping[str, int]
    index: int
    """Version of the index that was searched."""
    request_hash: str
    """Keyed hash of the request. One server process returns equal hashes for equal requests."""
    result_hash: str
    """SHA-256 of the result ids, in their order."""


class SearchResponse(models.Response):
    """Results of a search: the ranking in `results`, and the same entities in groups by kind."""

    query: str
    search_mode: models.SearchMode
    """Kind of search that was used, such as `hybrid` or `lexical-only`."""
    ranking: str
    confidence: models.Share
    """Confidence of the best result, 0 to 1. It is 0 without results."""
    results: Sequence[models.RankedResult]
    prerequisites: Sequence[models.Supplement]
    """Tools to call before a result. A result that a better result requires is included."""
    related: Sequence[models.Supplement]
    """Tools that the graph relates to the best result."""
    next_steps: Sequence[models.Supplement]
    """Tools that usually follow the best result."""
    servers: Sequence[models.ServerRow] = ()
    tools: Sequence[models.ToolRow] = ()
    agents: Sequence[models.AgentRow] = ()
    skills: Sequence[models.SkillRow] = ()
    virtual_servers: Sequence[models.VirtualServerRow] = ()
    custom: Sequence[models.CustomRow] = ()
    """Entities of other kinds, and prompts and resources if they were requested."""
    total_servers: int
    total_tools: int
    total_agents: int
    total_skills: int
    total_virtual_servers: int
    total_custom: int
    diagnostics: Sequence[models.DiagnosticNote]
    discovery_receipt: Receipt


class TagCounts(models.Response):
    """Tags of the entities that you may find."""

    tags: Sequence[str]
    """All tags in lower case, sorted."""
    counts: Mapping[str, int]
    """Number of entities that have a tag, keyed by tag."""


@router.post("/api/search/semantic", responses=BODY_PROBLEMS)
async def search(
    caller: CurrentCaller, gateway: ServedGateway, request: Request, body: models.SemanticSearch
) -> SearchResponse:
    """Search the catalog by meaning and words.

    Raises:
        RefusedError: 400 if both query and tags are missing, 404 for an unknown kind.
    """
    started = time.perf_counter()
    if not body.query.strip() and not body.tags:
        raise RefusedError(400, "nothing_asked", "provide a query, tags or both")
    snapshot = await gateway.snapshot()
    kinds = resolve_kinds(caller, snapshot, body.entity_types, body)
    filters = request_filters(caller, snapshot, kinds, body.tags, body)
    ranking: models.Ranking = body.ranking or request.app.state.ranking
    result = await search_catalog(
        gateway,
        body.query,
        max_results=body.max_results,
        filters=filters,
        ranking=ranking,
        caller=caller,
        explain=body.explain,
    )
    # Rows show the current state of the catalog, which may have changed during the search.
    snapshot = await gateway.snapshot()
    hits = _hits(snapshot, filters, body, result)
    groups: dict[str, Any] = _groups(snapshot, filters, body, hits)
    totals: dict[str, Any] = {f"total_{name}": len(group) for name, group in groups.items()}
    return SearchResponse(
        query=body.query,
        search_mode=SEARCH_MODES[result.mode],
        ranking=ranking,
        confidence=max((hit["confidence"] for hit in hits), default=0.0),
        results=[models.RankedResult(**hit) for hit in hits],
        prerequisites=_supplements(snapshot, filters, result.prerequisites),
        related=_supplements(snapshot, filters, result.related),
        next_steps=_supplements(snapshot, filters, result.next_steps),
        diagnostics=list(map(models.DiagnosticNote.model_validate, result.diagnostics)),
        discovery_receipt=Receipt(
            duration_ms=round((time.perf_counter() - started) * 1000, 3),
            index=snapshot.version,
            request_hash=_hash(body, filters),
            **_receipt(result, hits),
        ),
        **groups,
        **totals,
    )


@router.get("/api/search/tags")
async def tags(caller: CurrentCaller, gateway: ServedGateway) -> TagCounts:
    """List the tags of the entities that you may find."""
    filters = request_filters(caller, await gateway.snapshot())
    counts = await gateway.catalog.tags(filters)
    shown_counts = dict(sorted(counts.items())[:MAX_TAGS])
    return TagCounts(tags=list(shown_counts), counts=shown_counts)


def _hash(request: models.SemanticSearch, filters: Filters) -> str:
    text = repr((request, sorted(filters.scopes))).encode("utf-8", "replace")
    return hashlib.blake2b(text, key=_HASH_KEY, digest_size=16).hexdigest()


def _receipt(result: SearchResult, hits: Sequence[_Fields]) -> dict[str, Any]:
    ids = "\n".join(hit["id"] for hit in hits).encode("utf-8", "replace")
    return {
        "id": uuid.uuid4().hex,
        "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "stop_reason": "results_returned" if hits else "no_match",
        "eligible": result.counts.eligible,
        "candidates": result.counts.candidates,
        "returned": len(hits),
        "returned_by_kind": Counter(hit["kind"] for hit in hits),
        "result_hash": hashlib.sha256(ids).hexdigest(),
    }


def _hits(
    snapshot: Snapshot, filters: Filters, request: models.SemanticSearch, result: SearchResult
) -> list[_Fields]:
    """Return the row fields of the matches that still pass *filters* in *snapshot*."""
    matches = result.matches[: request.max_results]
    entities = visible(snapshot, [match.id for match in matches], filters)
    scored = zip(
        matches, result.display_scores or repeat(1.0), result.scoring or repeat(None), strict=False
    )
    hits = [
        _fields(entities[match.id], display, match, metadata_fields=request.metadata_fields)
        | {"rrf_score": scoring and scoring.rrf_score, "scoring": scoring}
        for match, display, scoring in scored
        if match.id in entities
    ]
    return [{**hit, "rank": rank} for rank, hit in enumerate(hits, 1)]


def _supplements(
    snapshot: Snapshot, filters: Filters, matches: Sequence[Match]
) -> list[models.Supplement]:
    """Return the *matches* that still pass *filters* in *snapshot*, as parts of the response."""
    entities = visible(snapshot, [match.id for match in matches], filters)
    return [
        models.Supplement(
            **{key: getattr(match, key) for key in ("id", "name", "server", "description")},
            kind=entities[match.id].kind,
            confidence=round(match.confidence, 4),
            path=match.evidence.path,
        )
        for match in matches
        if match.id in entities
    ]


def _groups(
    snapshot: Snapshot, filters: Filters, request: models.SemanticSearch, hits: Sequence[_Fields]
) -> dict[str, list[models.Row | models.ToolRow]]:
    """Return the rows of *hits*, keyed by group and ordered by rank.

    Tools of matched servers are added if they contain words of the query.
    """
    tools = {
        hit["id"]: _visible_tools(snapshot, filters, hit) for hit in hits if hit["kind"] in _SERVERS
    }
    listed = list(chain.from_iterable(tools.values()))
    chosen = server_tools(listed, request.query, limit=request.max_results)
    lifted = [_fields(tool, score) for tool, score in chosen]
    groups: dict[str, list[models.Row | models.ToolRow]] = {
        name: [] for name, _ in (*_GROUPS.values(), _CUSTOM)
    }
    for hit in hits:
        group, row = _GROUPS.get(hit["kind"], _CUSTOM)
        matching_tools = [
            models.MatchingTool(**tool) for tool in lifted if tool["parent"] == hit["id"]
        ]
        count = len(tools.get(hit["id"], ()))
        of_server: _Fields = {
            "num_tools": count,
            "tool_count": count,
            "matching_tools": matching_tools,
        }
        groups[group].append(row(**hit, **of_server))
    if "tool" in filters.kinds:
        hit_ids = {hit["id"] for hit in hits}
        groups["tools"] += [models.ToolRow(**tool) for tool in lifted if tool["id"] not in hit_ids]
    return groups


def _visible_tools(snapshot: Snapshot, filters: Filters, server: _Fields) -> list[Entity]:
    # Requested kinds and tags apply to the server, not to its tools.
    mask = snapshot.mask(replace(filters, kinds=frozenset({"tool"}), tags=frozenset()))
    positions = snapshot.eligibility.of_parent(server["id"])
    return [snapshot.entities[position] for position in positions if mask[position]]


def _is_card(metadata: Mapping[str, object]) -> bool:
    if "manifests" not in own_plugins():
        return False
    from gateway.plugins.manifests.agent_cards import is_card  # noqa: PLC0415  (see above)

    return is_card(metadata)


def _fields(
    entity: Entity,
    display: float,
    match: Match | None = None,
    *,
    metadata_fields: Sequence[str] | None = None,
) -> _Fields:
    """Return the fields of *entity* for all row classes.

    *display* is a score, 0 to 1. *match* is None for a tool that was added for its server.
    *metadata_fields* are dot paths of the metadata to return. None returns all.
    """
    name, metadata = entity.name, entity.metadata
    shows_card = metadata_fields is None and _is_card(metadata)
    card = {"name": name, "description": entity.description, **metadata}
    paths = _backend_paths(entity)
    return {
        "id": entity.id,
        "kind": entity.kind,
        "parent": entity.parent,
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
        **_scores(match),
        "metadata": project(metadata, metadata_fields),
        "agent_card": card if shows_card else None,
        "backend_count": len(paths),
        "backend_paths": paths,
        "endpoint_url": _text(metadata, "endpoint_url", "mcp_endpoint", "url"),
        **{key: _text(metadata, key) for key in ("skill_md_url", "author", "version")},
    }


def _backend_paths(entity: Entity) -> list[str]:
    backends = entity.definition.details.get("servers", entity.metadata.get("servers"))
    return [f"/{backend}" for backend in backends] if isinstance(backends, list) else []


def _scores(match: Match | None) -> _Fields:
    cosine = match.evidence.vector if match else None
    return {
        "similarity_score": None if cosine is None else round(cosine, 4),
        "score": round(match.score, 6) if match else None,
        "confidence": round(match.confidence, 4) if match else None,
        "lifted": match is None,
    }


def entity_path(entity: Entity) -> str:
    """Return the path of *entity* in MCP registries."""
    path = entity.metadata.get("path")
    if isinstance(path, str) and path.startswith("/"):
        return path
    return f"{_ROOTS.get(entity.kind, '')}/{entity.name}"


def _text(metadata: JsonObject, *names: str) -> str | None:
    values = (metadata.get(name) for name in names)
    return next((value for value in values if isinstance(value, str) and value), None)
