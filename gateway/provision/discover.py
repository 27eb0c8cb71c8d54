"""What the catalog can do: servers and tools with state, confidence and schema.

It looks at the local catalog alone, never at a registry: what is not configured is not there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from gateway.gateway import Gateway
from gateway.types import Diagnostic, Entity, Filters, JsonObject, Match, RankingMode

LIMIT = 20
"""Tools that are told when nobody says how many."""
_UNCONNECTED = "local"


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundServer:
    """One server of the catalog."""

    name: str
    state: str
    """``idle``, ``connecting``, ``active``, ``failed`` or ``closed``; ``local`` for functions and
    other sources without a connection."""
    tools: int
    """How many it has that may be found."""
    confidence: float | None = None
    """That of its best tool; None if nothing was asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundTool:
    """One tool of the catalog."""

    id: str
    name: str
    """What a model calls it."""
    server: str
    state: str
    """That of its server."""
    description: str
    confidence: float | None = None
    """Calibrated, 0 to 1; None if nothing was asked for."""
    score: float | None = None
    """The ranking's own number; None if nothing was asked for."""
    schema: JsonObject = field(default_factory=dict)
    """Of its arguments, whole."""
    suspicious: bool = False
    """Whether its definition looks like an attack on a model: no model is to read it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Discovered:
    """What there is."""

    servers: tuple[FoundServer, ...]
    """With an intent those of the found tools, best first; without one all, by name."""
    tools: tuple[FoundTool, ...]
    """Best first; by name without an intent."""
    mode: RankingMode
    diagnostics: tuple[Diagnostic, ...] = ()


async def discover(
    gateway: Gateway,
    intent: str | None = None,
    *,
    limit: int = LIMIT,
    filters: Filters | None = None,
) -> Discovered:
    """Tell what the catalog of *gateway* can do.

    Args:
        gateway: Whose catalog it is.
        intent: What is wanted, in any language; None or blank tells of everything.
        limit: Tools at most, 1 to `SearchOptions.max_limit`.
        filters: Who may be found; None is enabled, active tools that need no scope.

    Returns:
        In every case; what could not be listed is in its diagnostics.

    Raises:
        InvalidRequestError: If an argument is outside what is allowed.
        ClosedError: After `Gateway.aclose`.
    """
    result = await gateway.search(intent, limit=limit, filters=filters)
    entities = {each.id: each for each in await gateway.list_tools(filters)}
    states: dict[str, str] = dict(gateway.server_states())
    asked = bool(intent and intent.strip())
    tools = tuple(
        _tool(match, entities[match.id], states, asked=asked)
        for match in result.matches
        if match.id in entities
    )
    report = await gateway.report(wait=False)
    # The search has told how far the index is.
    listed = (each for each in report.diagnostics if each.code != "index_building")
    return Discovered(
        servers=_servers(tools if asked else (), tuple(entities.values()), states, asked=asked),
        tools=tools,
        mode=result.mode,
        diagnostics=tuple(dict.fromkeys((*listed, *result.diagnostics))),
    )


def _tool(match: Match, entity: Entity, states: dict[str, str], *, asked: bool) -> FoundTool:
    return FoundTool(
        id=match.id,
        name=match.name,
        server=match.server,
        state=states.get(match.server, _UNCONNECTED),
        description=match.description,
        confidence=match.confidence if asked else None,
        score=match.score if asked else None,
        schema=entity.definition.input_schema,
        suspicious=entity.suspicious,
    )


def _servers(
    found: Sequence[FoundTool],
    entities: Sequence[Entity],
    states: dict[str, str],
    *,
    asked: bool,
) -> tuple[FoundServer, ...]:
    counts = dict.fromkeys(states, 0)
    for entity in entities:
        counts[entity.server] = counts.get(entity.server, 0) + 1
    best: dict[str, float | None] = {}
    for tool in found:
        best.setdefault(tool.server, tool.confidence)
    names = list(best) if asked else sorted(counts)
    return tuple(
        FoundServer(
            name=name,
            state=states.get(name, _UNCONNECTED),
            tools=counts[name],
            confidence=best.get(name),
        )
        for name in names
    )
