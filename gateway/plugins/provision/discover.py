"""Overview of the local catalog: its servers and tools with state, confidence and schema."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from gateway.catalog.identity import SERVER_KINDS
from gateway.gateway import Gateway
from gateway.runtime.text import plain
from gateway.types import (
    ANYONE,
    Caller,
    Diagnostic,
    Entity,
    Filters,
    JsonObject,
    Match,
    RankingMode,
)

LIMIT = 20
"""Default maximum number of tools."""
_NO_CONNECTION = "local"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSummary:
    """Summary of a server."""

    name: str
    state: str
    """State of the connection: ``idle``, ``connecting``, ``active``, ``failed`` or ``closed``;
    ``local`` for functions and other sources without a connection."""
    tools: int
    """Number of tools that the caller may see."""
    confidence: float | None = None
    """Confidence of the server's best tool, 0 to 1; None without an intent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSummary:
    """Summary of a tool."""

    id: str
    name: str
    """Name by which a model calls the tool."""
    server: str
    state: str
    """State of the server, as in `ServerSummary.state`."""
    description: str
    confidence: float | None = None
    """Calibrated confidence that the tool serves the intent, 0 to 1; None without an intent."""
    score: float | None = None
    """Ranking score; None without an intent."""
    schema: JsonObject = field(default_factory=dict)
    """JSON schema of the arguments."""
    suspicious: bool = False
    """True if the definition may contain a prompt injection, so a model must not read it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogOverview:
    """Servers and tools of the catalog, for an intent or all."""

    servers: tuple[ServerSummary, ...]
    """Servers of the matching tools, best first; without an intent, all servers by name."""
    tools: tuple[ToolSummary, ...]
    """Matching tools, best first; without an intent, tools by name."""
    mode: RankingMode
    diagnostics: tuple[Diagnostic, ...] = ()


async def discover(
    gateway: Gateway,
    intent: str | None = None,
    *,
    limit: int = LIMIT,
    filters: Filters | None = None,
    caller: Caller | None = None,
) -> CatalogOverview:
    """Return an overview of a catalog.

    Args:
        gateway: Gateway with the catalog.
        intent: Task in any language; None or blank returns everything.
        limit: Maximum number of tools, 1 to `SearchOptions.max_limit`.
        filters: Filters for the tools; None selects enabled, active tools that require no scope.
        caller: Caller, who gets only visible servers. None is the host, who gets all servers and
            the reasons why servers could not be listed.

    Returns:
        An overview, even if servers fail.

    Raises:
        InvalidRequestError: If an argument is out of range.
        ClosedError: If the gateway is closed.
    """
    party = caller or ANYONE
    result = await gateway.search(intent, limit=limit, filters=filters, caller=party)
    visible_tools = await gateway.list_tools(filters, caller=party)
    entities = {entity.id: entity for entity in visible_tools}
    states: dict[str, str] = dict(gateway.server_states())
    if caller is not None:
        servers = replace(filters or Filters(), kinds=SERVER_KINDS)
        visible = {item.server for item in await gateway.list_tools(servers, caller=caller)}
        visible |= {entity.server for entity in visible_tools}
        states = {name: state for name, state in states.items() if name in visible}
    has_intent = bool(intent and intent.strip())
    tools = tuple(
        _summarize_tool(
            match,
            entities[match.id],
            state=states.get(match.server, _NO_CONNECTION),
            has_intent=has_intent,
        )
        for match in result.matches
        if match.id in entities
    )
    own_diagnostics = (await gateway.report(wait=False)).diagnostics if caller is None else ()
    # The search's diagnostics contain the progress of the index.
    diagnostics = (item for item in own_diagnostics if item.code != "index_building")
    return CatalogOverview(
        servers=_summarize_servers(tools if has_intent else None, entities.values(), states),
        tools=tools,
        mode=result.mode,
        diagnostics=tuple(dict.fromkeys((*diagnostics, *result.diagnostics))),
    )


def _summarize_tool(match: Match, entity: Entity, *, state: str, has_intent: bool) -> ToolSummary:
    return ToolSummary(
        id=match.id,
        name=match.name,
        server=match.server,
        state=state,
        description=match.description,
        confidence=match.confidence if has_intent else None,
        score=match.score if has_intent else None,
        schema=entity.definition.input_schema,
        suspicious=entity.suspicious,
    )


def _summarize_servers(
    ranked: Sequence[ToolSummary] | None, entities: Iterable[Entity], states: Mapping[str, str]
) -> tuple[ServerSummary, ...]:
    counts = Counter(entity.server for entity in entities)
    best: dict[str, float | None] = {}
    for tool in ranked or ():
        best.setdefault(tool.server, tool.confidence)
    names = sorted({*states, *counts}) if ranked is None else best
    return tuple(
        ServerSummary(
            name=name,
            state=states.get(name, _NO_CONNECTION),
            tools=counts[name],
            confidence=best.get(name),
        )
        for name in names
    )


def overview_for_model(overview: CatalogOverview, *, max_chars: int) -> dict[str, object]:
    """Return an overview as JSON for a model. Suspicious tools lack description and schema.

    Args:
        overview: Overview.
        max_chars: Approximate maximum number of characters of all tools. Further tools are only
            counted, as ``omitted``.
    """
    tools: list[dict[str, object]] = []
    room = max_chars
    for tool in overview.tools:
        data = _row(tool, "id", "name", "server", "state", "confidence", "score")
        if tool.suspicious:
            required = tool.schema.get("required")
            needs = plain(required if isinstance(required, list | tuple) else ())
            data |= {"suspicious": True, "needs": needs}
        else:
            data |= {"description": tool.description, "schema": tool.schema}
        room -= len(json.dumps(data, ensure_ascii=False))
        if room < 0 and tools:
            break
        tools.append(data)
    servers = [_row(server, "name", "state", "tools", "confidence") for server in overview.servers]
    return {"servers": servers, "tools": tools, "omitted": len(overview.tools) - len(tools)}


def _row(summary: ServerSummary | ToolSummary, *fields: str) -> dict[str, object]:
    """Return *fields*, keyed by name and rounded, without those that are None."""
    values = {field: getattr(summary, field) for field in fields}
    return {
        key: round(value, 4) if isinstance(value, float) else value
        for key, value in values.items()
        if value is not None
    }
