"""Build the rows and groups of a search response from its matches. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Any

import numpy as np

from gateway.catalog.metadata import project
from gateway.manifests.agent_cards import is_card
from gateway.search.rank.display import server_tools, words_of
from gateway.serve.api.catalog_view import CatalogView
from gateway.serve.api.requests import SemanticSearch
from gateway.serve.api.responses import (
    AgentRow,
    CustomRow,
    DiagnosticNote,
    MatchingTool,
    RankedResult,
    Row,
    SearchMode,
    ServerRow,
    SkillRow,
    ToolRow,
    VirtualServerRow,
)
from gateway.types import Diagnostic, Entity, Filters, JsonObject, Match, RankingMode, SearchResult
from graphs.lexical.analysis import tokens

SEARCH_MODES: Mapping[RankingMode, SearchMode] = {
    "hybrid": "hybrid",
    "vector": "vector",
    "lexical": "lexical-only",
    "graph": "graph",
    "browse": "browse",
    "empty": "empty",
}
"""The ranking modes in the words of registries."""
_ROOTS = {"virtual_server": "/virtual", "agent": "/agents", "skill": "/skills"}
_SERVERS = frozenset({"server", "virtual_server"})
_GROUPS = {
    "server": "servers",
    "tool": "tools",
    "agent": "agents",
    "skill": "skills",
    "virtual_server": "virtual_servers",
}
"""The group of each kind; every other kind is in ``custom``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One displayed entity."""

    entity: Entity
    match: Match
    display: float
    """Its score for display, 0 to 1."""


def find_hits(view: CatalogView, result: SearchResult, limit: int) -> list[Hit]:
    """Return at most *limit* hits of *result*; entities that are gone meanwhile are left out."""
    display_scores = result.display_scores or repeat(1.0)
    pairs = zip(result.matches[:limit], display_scores, strict=False)
    return [
        Hit(entity=entity, match=match, display=display)
        for match, display in pairs
        if (entity := view.entity(match.id)) is not None
    ]


def diagnostic_notes(diagnostics: Iterable[Diagnostic]) -> list[DiagnosticNote]:
    """Return *diagnostics* without their details."""
    return [DiagnosticNote(stage=note.stage, code=note.code) for note in diagnostics]


def ranked_result(hit: Hit, rank: int) -> RankedResult:
    """Return one line of the ranking."""
    entity, match = hit.entity, hit.match
    return RankedResult(
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


class RowBuilder:
    """Builds the groups of one search.

    Args:
        view: The catalog as it is now.
        filters: Those of the search.
        request: The search.
    """

    def __init__(self, view: CatalogView, filters: Filters, request: SemanticSearch) -> None:
        self._view = view
        self._filters = filters
        self._request = request

    def groups(self, hits: Sequence[Hit]) -> Mapping[str, Sequence[Row | ToolRow]]:
        """Return the rows of *hits* by group, each group in the order of the ranking.

        Matched servers bring along their tools that hold words of the query.
        """
        lifted_tools = self._lift_tools([hit for hit in hits if hit.entity.kind in _SERVERS])
        groups: defaultdict[str, list[Row | ToolRow]] = defaultdict(list)
        for hit in hits:
            group = _GROUPS.get(hit.entity.kind, "custom")
            groups[group].append(self._row(hit, lifted_tools))
        if "tool" in self._filters.kinds:
            tool_ids = {row.id for row in groups["tools"]}
            entities = self._view.snapshot.entities
            groups["tools"] += [
                _tool_row(entities[position], display=display)
                for position, display in lifted_tools.items()
                if entities[position].id not in tool_ids
            ]
        return {name: groups[name] for name in (*_GROUPS.values(), "custom")}

    def _row(self, hit: Hit, lifted_tools: Mapping[int, float]) -> Row | ToolRow:
        entity, common = hit.entity, self._common(hit)
        metadata = entity.metadata
        if entity.kind == "tool":
            return _tool_row(entity, display=hit.display, match=hit.match)
        if entity.kind == "agent":
            return AgentRow(
                **common,
                agent_name=entity.definition.title or entity.name,
                agent_card=self._agent_card(entity),
            )
        if entity.kind == "skill":
            common |= {key: _text(metadata, key) for key in ("skill_md_url", "author", "version")}
            return SkillRow(**common, skill_name=entity.name)
        if entity.kind not in _SERVERS:
            return CustomRow(**common, entity_type=entity.kind, name=entity.name)
        common |= {
            "server_name": entity.name,
            "num_tools": len(self._visible_tools(entity.id)),
            "matching_tools": self._matching_tools(entity, lifted_tools),
        }
        if entity.kind == "server":
            url = _text(metadata, "endpoint_url", "mcp_endpoint", "url")
            return ServerRow(**common, endpoint_url=url)
        backends = [f"/{name}" for name in _backend_servers(entity)]
        return VirtualServerRow(
            **common, endpoint_url=None, backend_count=len(backends), backend_paths=backends
        )

    def _common(self, hit: Hit) -> dict[str, Any]:
        entity = hit.entity
        return {
            **_entity_fields(entity, hit.display),
            "path": entity_path(entity),
            "title": entity.definition.title,
            "tags": entity.hints.tags,
            "status": entity.status,
            "is_enabled": entity.hints.enabled,
            "similarity_score": _cosine(hit.match),
            "confidence": round(hit.match.confidence, 4),
            "metadata": project(entity.metadata, self._request.metadata_fields),
        }

    def _agent_card(self, entity: Entity) -> JsonObject | None:
        if self._request.metadata_fields is not None or not is_card(entity.metadata):
            return None
        return {"name": entity.name, "description": entity.description, **entity.metadata}

    def _visible_tools(self, server: str) -> list[int]:
        """Return the positions of the tools of *server* that the caller may see."""
        # The tags that were searched for are those of the server.
        filters = replace(self._filters, kinds=frozenset({"tool"}), tags=frozenset())
        mask = self._view.snapshot.mask(filters)
        positions = np.asarray(self._view.tools.get(server, ()), dtype=np.intp)
        visible: list[int] = positions[mask[positions]].tolist()
        return visible

    def _lift_tools(self, servers: Sequence[Hit]) -> Mapping[int, float]:
        """Return the tools of *servers* that hold words of the query: display score by position."""
        query = words_of(tokens(self._request.query))
        if not query:
            return {}
        positions = [each for hit in servers for each in self._visible_tools(hit.entity.id)]
        words = [self._view.tool_words(position) for position in positions]
        found = server_tools(words, query, limit=self._request.max_results)
        return {positions[each.place]: each.display for each in found}

    def _matching_tools(
        self, server: Entity, lifted_tools: Mapping[int, float]
    ) -> list[MatchingTool]:
        entities = self._view.snapshot.entities
        own = frozenset(self._view.tools.get(server.id, ()))
        return [
            MatchingTool(
                tool_name=entities[position].name, **_entity_fields(entities[position], display)
            )
            for position, display in lifted_tools.items()
            if position in own
        ]


def _tool_row(entity: Entity, *, display: float, match: Match | None = None) -> ToolRow:
    """Return the row of a tool; without a match it is lifted from its server."""
    return ToolRow(
        **_entity_fields(entity, display),
        tool_name=entity.name,
        name=entity.exposed_name,
        server_name=entity.server,
        server_path=f"/{entity.server}",
        tags=entity.hints.tags,
        status=entity.status,
        is_enabled=entity.hints.enabled,
        input_schema=entity.definition.input_schema,
        similarity_score=_cosine(match) if match else None,
        confidence=round(match.confidence, 4) if match else None,
        lifted=match is None,
    )


def _entity_fields(entity: Entity, display: float) -> dict[str, Any]:
    return {
        "id": entity.id,
        "description": entity.description,
        "match_context": entity.description,
        "relevance_score": display,
    }


def _backend_servers(entity: Entity) -> list[str]:
    servers = entity.definition.details.get("servers", entity.metadata.get("servers"))
    return [str(name) for name in servers] if isinstance(servers, list) else []


def entity_path(entity: Entity) -> str:
    """Return the path by which registries know *entity*."""
    path = entity.metadata.get("path")
    if isinstance(path, str) and path.startswith("/"):
        return path
    return f"{_ROOTS.get(entity.kind, '')}/{entity.name}"


def _cosine(match: Match) -> float | None:
    cosine = match.evidence.vector
    return None if cosine is None else round(cosine, 4)


def _text(metadata: JsonObject, *names: str) -> str | None:
    values = (metadata.get(name) for name in names)
    return next((value for value in values if isinstance(value, str) and value), None)
