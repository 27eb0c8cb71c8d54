"""Advice for the model: where to look for tools, and which come next."""

from __future__ import annotations

import json

from gateway.discovery.meta_tools import ROUTES
from gateway.errors import GatewayError, InvalidRequestError
from gateway.gateway import Gateway
from gateway.types import Caller, JsonObject

_TOOLS_A_GROUP = 3
_MAX_SUGGESTIONS = 32
"""How many suggestions are examined for those that an edge leads to."""


async def route_tools(gateway: Gateway, arguments: JsonObject, caller: Caller) -> str:
    """Group the result of a search by server or by category, that of the best match first.

    Raises:
        InvalidRequestError: If there is no query, or it is grouped by something else.
    """
    query = arguments.get("query")
    if not isinstance(query, str) or not query.strip():
        raise InvalidRequestError("'query' is a text")
    by = arguments.get("by", "server")
    if by not in ROUTES:
        raise InvalidRequestError(f"'by' is one of: {', '.join(ROUTES)}")
    options = gateway.options.search
    limit, wait = options.max_limit, options.models_wait
    result = await gateway.search(query, limit=limit, caller=caller, wait=wait)
    snapshot = await gateway.snapshot()
    by_id, entities = snapshot.eligibility.by_id, snapshot.entities
    groups: dict[str, list[str]] = {}
    for match in result.matches:
        names = [match.server]
        if by == "category":
            position = by_id.get(match.id)
            names = [] if position is None else [*entities[position].hints.categories]
        for name in names:
            groups.setdefault(name, []).append(match.name)
    rows = [
        {str(by): group, "found": len(names), "best": names[:_TOOLS_A_GROUP]}
        for group, names in groups.items()
    ]
    return json.dumps(
        {ROUTES[str(by)]: rows[: options.limit]}, ensure_ascii=False, separators=(",", ":")
    )


async def next_tools(gateway: Gateway, arguments: JsonObject, caller: Caller) -> str:
    """Name the tools that follow some others in the graph.

    Raises:
        InvalidRequestError: If no tools are named.
        UnknownToolError: If one of them is not in the catalog.
    """
    given = arguments.get("tools")
    tools = [given] if isinstance(given, str) and given else given
    if not isinstance(tools, list) or not tools or not all(isinstance(item, str) for item in tools):
        raise InvalidRequestError("'tools' is a list of names")
    names = await _following(gateway, tools, caller, limit=gateway.options.search.limit)
    return json.dumps({"tools": [{"name": name, "direct": False} for name in names]})


async def next_steps_hint(gateway: Gateway, call_name: str, tool: str, caller: Caller) -> str:
    """Return the tools that follow *tool* in one line; "" if that is off or there is none.

    Args:
        gateway: The catalog.
        call_name: The tool that calls them; "" if they must be searched for.
        tool: The tool that was just used.
        caller: The party that used it.
    """
    limit = gateway.options.discovery.next_steps
    if not limit:
        return ""
    try:
        names = await _following(gateway, [tool], caller, limit=limit)
    except GatewayError:
        # The tool was removed since it answered: its answer goes out without advice.
        return ""
    by = f", by {call_name}" if call_name else ""
    return f"\n[next steps{by}: {', '.join(names)}]" if names else ""


async def _following(
    gateway: Gateway, tools: list[str], caller: Caller, *, limit: int
) -> list[str]:
    suggestions = await gateway.next_steps(tools, limit=_MAX_SUGGESTIONS, caller=caller)
    # What is only near, with no edge that leads there, is no advice.
    return [match.name for match in suggestions if match.evidence.path][:limit]
