"""What the catalog can do: servers and tools with state, confidence and schema.

It reads the local catalog alone, never a registry.
"""

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
"""How many tools are returned by default."""
_UNCONNECTED = "local"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSummary:
    """One server of the catalog."""

    name: str
    state: str
    """``idle``, ``connecting``, ``active``, ``failed`` or ``closed``; ``local`` for functions and
    other sources without a connection."""
    tools: int
    """How many of its tools can be found."""
    confidence: float | None = None
    """That of its best tool; None without an intent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSummary:
    """One tool of the catalog."""

    id: str
    name: str
    """The name that a model calls."""
    server: str
    state: str
    """That of its server."""
    description: str
    confidence: float | None = None
    """Calibrated, 0 to 1; None without an intent."""
    score: float | None = None
    """The ranking's own number; None without an intent."""
    schema: JsonObject = field(default_factory=dict)
    """The schema of its arguments."""
    suspicious: bool = False
    """Whether its definition looks like an attack on a model: no model may read it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogOverview:
    """What the catalog can do."""

    servers: tuple[ServerSummary, ...]
    """With an intent those of the tools, best first; without one all, by name."""
    tools: tuple[ToolSummary, ...]
    """Best first; by name without an intent."""
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
    """Return what the catalog of *gateway* can do.

    Args:
        gateway: The gateway.
        intent: What is wanted, in any language; None or blank returns everything.
        limit: Tools at most, 1 to `SearchOptions.max_limit`.
        filters: Which tools count; None is enabled, active tools that need no scope.
        caller: The party that asks, which reads of no server that it may not see; None is the
            host, which reads of each server and why it could not be listed.

    Returns:
        An overview in every case; its diagnostics name what could not be listed.

    Raises:
        InvalidRequestError: An argument is outside what is allowed.
        ClosedError: After `Gateway.aclose`.
    """
    party = caller or ANYONE
    result = await gateway.search(intent, limit=limit, filters=filters, caller=party)
    listed = await gateway.list_tools(filters, caller=party)
    entities = {entity.id: entity for entity in listed}
    states: dict[str, str] = dict(gateway.server_states())
    if caller is not None:
        servers = replace(filters or Filters(), kinds=SERVER_KINDS)
        visible = {each.server for each in await gateway.list_tools(servers, caller=caller)}
        visible |= {each.server for each in listed}
        states = {name: state for name, state in states.items() if name in visible}
    has_intent = bool(intent and intent.strip())
    tools = tuple(
        _summarize_tool(
            match,
            entities[match.id],
            state=states.get(match.server, _UNCONNECTED),
            has_intent=has_intent,
        )
        for match in result.matches
        if match.id in entities
    )
    noted = (await gateway.report(wait=False)).diagnostics if caller is None else ()
    # The search's own diagnostics include the progress of the index.
    diagnostics = (item for item in noted if item.code != "index_building")
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
            state=states.get(name, _UNCONNECTED),
            tools=counts[name],
            confidence=best.get(name),
        )
        for name in names
    )


def overview_for_model(overview: CatalogOverview, *, max_chars: int) -> dict[str, object]:
    """Return an overview as JSON for a model; of a suspicious tool only what a call needs.

    Args:
        overview: The overview.
        max_chars: About how long all tools together may be; the last ones are left out, and
            ``omitted`` counts them.
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
    """Return *fields* without what is None, numbers short."""
    values = {field: getattr(summary, field) for field in fields}
    return {
        key: round(value, 4) if isinstance(value, float) else value
        for key, value in values.items()
        if value is not None
    }
