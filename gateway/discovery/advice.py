"""What the two optional meta-tools answer: servers for a task, and what comes next."""

from __future__ import annotations

import json

from gateway.errors import GatewayError, InvalidRequestError
from gateway.gateway import Gateway

_TOOLS_A_SERVER = 3
_LOOKED_AT = 32
"""How many suggestions are looked at for those that an edge leads to."""


async def routed(gateway: Gateway, given: dict[str, object]) -> str:
    """Group what a search finds by server, the server of the best match first.

    Raises:
        InvalidRequestError: If there is no query.
    """
    query = given.get("query")
    if not isinstance(query, str) or not query.strip():
        raise InvalidRequestError("'query' is a text")
    found = await gateway.search(query, limit=gateway.options.search.max_limit)
    servers: dict[str, list[str]] = {}
    for match in found.matches:
        servers.setdefault(match.server, []).append(match.name)
    rows = [
        {"server": server, "found": len(names), "best": names[:_TOOLS_A_SERVER]}
        for server, names in servers.items()
    ]
    limit = gateway.options.search.limit
    return json.dumps({"servers": rows[:limit]}, ensure_ascii=False, separators=(",", ":"))


async def coming_next(gateway: Gateway, given: dict[str, object]) -> str:
    """Name what the graph says comes after some tools.

    Raises:
        InvalidRequestError: If no tools are named.
        UnknownToolError: If one of them is not in the catalog.
    """
    tools = given.get("tools")
    if not isinstance(tools, list) or not tools or not all(isinstance(each, str) for each in tools):
        raise InvalidRequestError("'tools' is a list of names")
    names = await steps(gateway, tools, limit=gateway.options.search.limit)
    return json.dumps({"tools": [{"name": name, "direct": False} for name in names]})


async def steps(gateway: Gateway, tools: list[str], *, limit: int) -> list[str]:
    """Give the names of what comes after *tools* by an edge of the graph."""
    found = await gateway.next_steps(tools, limit=_LOOKED_AT)
    # What is only near, with no edge that leads there, is no advice.
    return [match.name for match in found if match.evidence.path][:limit]


async def hint(gateway: Gateway, call_name: str, tool: str) -> str:
    """Name what comes next, in one line; "" if that is switched off or there is nothing.

    Args:
        gateway: The catalog.
        call_name: What calls them; "" if they must be searched for.
        tool: What was just used.
    """
    limit = gateway.options.discovery.next_steps
    if not limit:
        return ""
    try:
        names = await steps(gateway, [tool], limit=limit)
    except GatewayError:
        # The tool was removed since it answered: its answer goes out without advice.
        return ""
    by = f", by {call_name}" if call_name else ""
    return f"\n[next steps{by}: {', '.join(names)}]" if names else ""
