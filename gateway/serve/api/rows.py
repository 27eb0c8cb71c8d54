"""Entities and matches -> the rows that a client reads. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gateway.catalog.projection import project
from gateway.manifests.agent_cards import is_card
from gateway.serve.api.answers import (
    AgentRow,
    CustomRow,
    Hinted,
    MatchingTool,
    Result,
    ServerRow,
    SkillRow,
    Thing,
    ToolRow,
    VirtualServerRow,
)
from gateway.serve.api.views import listed
from gateway.types import Entity, JsonObject, Match

_ROOTS = {"virtual_server": "/virtual", "agent": "/agents", "skill": "/skills"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One entity that is shown."""

    entity: Entity
    match: Match
    display: float


def result(hit: Hit, rank: int) -> Result:
    """Write one line of the ranking."""
    entity, match = hit.entity, hit.match
    return Result(
        rank=rank,
        id=entity.id,
        kind=entity.kind,
        name=match.name if entity.kind == "tool" else entity.name,
        server=entity.server,
        description=entity.description,
        score=round(match.score, 6),
        relevance_score=hit.display,
        similarity_score=_cosine(match),
        confidence=round(match.confidence, 4),
    )


def _common(hit: Hit, fields: Sequence[str] | None) -> dict[str, Any]:
    entity = hit.entity
    return {
        "id": entity.id,
        "path": path(entity),
        "title": entity.definition.title,
        "description": entity.description,
        "tags": entity.hints.tags,
        "status": entity.status,
        "is_enabled": entity.hints.enabled,
        "relevance_score": hit.display,
        "similarity_score": _cosine(hit.match),
        "confidence": round(hit.match.confidence, 4),
        "match_context": entity.description,
        "metadata": project(entity.metadata, fields),
    }


def server(
    hit: Hit, fields: Sequence[str] | None, *, num_tools: int, matching: Sequence[MatchingTool]
) -> ServerRow:
    """Write a server."""
    metadata = hit.entity.metadata
    return ServerRow(
        **_common(hit, fields),
        server_name=hit.entity.name,
        num_tools=num_tools,
        endpoint_url=_text(metadata, "endpoint_url", "mcp_endpoint", "url"),
        matching_tools=matching,
    )


def virtual_server(
    hit: Hit,
    fields: Sequence[str] | None,
    *,
    num_tools: int,
    matching: Sequence[MatchingTool],
    backends: Sequence[str],
) -> VirtualServerRow:
    """Write a virtual server."""
    return VirtualServerRow(
        **_common(hit, fields),
        server_name=hit.entity.name,
        num_tools=num_tools,
        endpoint_url=None,
        matching_tools=matching,
        backend_count=len(backends),
        backend_paths=[f"/{name}" for name in backends],
    )


def agent(hit: Hit, fields: Sequence[str] | None) -> AgentRow:
    """Write an agent."""
    entity = hit.entity
    card = {"name": entity.name, "description": entity.description, **entity.metadata}
    return AgentRow(
        **_common(hit, fields),
        agent_name=entity.definition.title or entity.name,
        agent_card=card if fields is None and is_card(entity.metadata) else None,
    )


def skill(hit: Hit, fields: Sequence[str] | None) -> SkillRow:
    """Write a skill."""
    metadata = hit.entity.metadata
    return SkillRow(
        **_common(hit, fields),
        skill_name=hit.entity.name,
        skill_md_url=_text(metadata, "skill_md_url"),
        author=_text(metadata, "author"),
        version=_text(metadata, "version"),
    )


def custom(hit: Hit, fields: Sequence[str] | None) -> CustomRow:
    """Write a thing of any other kind."""
    return CustomRow(**_common(hit, fields), entity_type=hit.entity.kind, name=hit.entity.name)


def tool(entity: Entity, *, display: float, match: Match | None = None) -> ToolRow:
    """Write a tool; without a match it is lifted from its server."""
    return ToolRow(
        id=entity.id,
        tool_name=entity.name,
        name=entity.exposed_name,
        server_name=entity.server,
        server_path=f"/{entity.server}",
        description=entity.description,
        tags=entity.hints.tags,
        status=entity.status,
        is_enabled=entity.hints.enabled,
        input_schema=entity.definition.input_schema,
        relevance_score=display,
        similarity_score=_cosine(match) if match else None,
        confidence=round(match.confidence, 4) if match else None,
        match_context=entity.description,
        lifted=match is None,
    )


def matching(entity: Entity, display: float) -> MatchingTool:
    """Write a tool as its server's row names it."""
    return MatchingTool(
        id=entity.id,
        tool_name=entity.name,
        description=entity.description,
        relevance_score=display,
        match_context=entity.description,
    )


def thing(entity: Entity, fields: Sequence[str] | None = None) -> Thing:
    """Write an entity whole."""
    hints = entity.hints
    return Thing(
        id=entity.id,
        kind=entity.kind,
        name=entity.name,
        namespace=entity.server,
        title=entity.definition.title,
        description=entity.description,
        status=entity.status,
        enabled=hints.enabled,
        hints=Hinted(
            aliases=hints.aliases,
            keywords=hints.keywords,
            categories=hints.categories,
            tags=hints.tags,
            examples=hints.examples,
        ),
        scopes=sorted(entity.scopes),
        parent=entity.parent,
        metadata=project(entity.metadata, fields),
        listed=listed(entity),
        digest=entity.digest,
    )


def backends(entity: Entity) -> list[str]:
    """Give the servers that a virtual server's aliases lead to, by name."""
    told = entity.definition.details.get("servers", entity.metadata.get("servers"))
    return [str(each) for each in told] if isinstance(told, list) else []


def path(entity: Entity) -> str:
    """Give the path that registries know a thing by."""
    told = entity.metadata.get("path")
    if isinstance(told, str) and told.startswith("/"):
        return told
    return f"{_ROOTS.get(entity.kind, '')}/{entity.name}"


def _cosine(match: Match) -> float | None:
    cosine = match.evidence.vector
    return None if cosine is None else round(cosine, 4)


def _text(metadata: JsonObject, *names: str) -> str | None:
    found = (metadata.get(name) for name in names)
    return next((each for each in found if isinstance(each, str) and each), None)
