"""A gateway as an MCP server: what it lists, and what a call of it does.

* ``meta``: two tools, search and call, the same for as long as the server lives. The protocol
  wants a list that does not vary, and clients put it at the head of every prompt.
* ``all``: every tool of the catalog under its exposed name, in pages.

The SDK speaks every version of the protocol: sessions for clients that begin with a handshake,
none for those of 2026-07-28 and later. It also takes up the trace that a client sends along.
"""

from __future__ import annotations

import asyncio
import json
from typing import Literal

from mcp import types
from mcp.server import Server
from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext

from gateway.config import VERSION
from gateway.discovery.answers import Manner, ToolCall, answer
from gateway.discovery.metatools import MetaNames, digest, meta_names, meta_tools
from gateway.discovery.written import Written
from gateway.gateway import Gateway
from gateway.serve.answered import answered
from gateway.serve.shown import Page, meta, page
from gateway.types import JsonObject

Expose = Literal["meta", "all"]
"""What a client is shown: the two meta-tools, or the whole catalog."""

LIST_TTL_MS = 300_000
"""How long a client may keep the list of tools without asking again."""

_Context = ServerRequestContext[object]


def mcp_server(gateway: Gateway, *, expose: Expose = "meta", name: str = "gateway") -> Server:
    """Make the server; a transport serves it, and closing the gateway stays the caller's.

    Args:
        gateway: What is searched and called.
        expose: ``meta`` or ``all``.
        name: What it calls itself.
    """
    served = _Served(gateway, expose)
    hint = CacheHint(ttl_ms=LIST_TTL_MS, scope="private")
    return Server(
        name,
        version=VERSION,
        instructions=served.instructions,
        cache_hints={"tools/list": hint, "server/discover": hint},
        get_tool_input_schema=served.schema,
        on_list_tools=served.list_tools,
        on_call_tool=served.call_tool,
    )


class _Served:
    def __init__(self, gateway: Gateway, expose: Expose) -> None:
        self._gateway = gateway
        self._expose = expose
        self._names: MetaNames | None = None
        self._tools: tuple[types.Tool, ...] = ()
        self._first = asyncio.Lock()
        self._manner = Manner(schemas=True, written=Written())

    @property
    def instructions(self) -> str:
        options = self._gateway.options.discovery
        if self._expose == "all":
            return "The tools of many servers, under one roof."
        return (
            f"Many tools stand behind two: {options.search_name} finds them and tells their "
            f"parameters, {options.call_name} calls them."
        )

    def schema(self, name: str) -> JsonObject | None:
        """Give a tool's schema, if nothing has to be waited for: headers are held against it."""
        snapshot = self._gateway.known if self._expose == "all" else None
        spots = snapshot.exposed(name) if snapshot is not None else ()
        return snapshot.entities[spots[0]].definition.input_schema if snapshot and spots else None

    async def list_tools(
        self, _context: _Context, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        if self._expose == "all":
            listed = await self._gateway.list_tools()
            shown = page(listed, params.cursor if params is not None else None)
        else:
            await self._meta_names()
            shown = Page(tools=self._tools)
        return types.ListToolsResult(tools=list(shown.tools), next_cursor=shown.next_cursor)

    async def call_tool(
        self, _context: _Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        names = (
            await self._meta_names() if self._expose == "meta" else MetaNames(search="", call="")
        )
        call = ToolCall(id="", name=params.name, arguments=json.dumps(params.arguments or {}))
        told = await answer(
            self._gateway,
            names,
            call,
            max_result_chars=self._gateway.options.chat.max_result_chars,
            manner=self._manner,
        )
        return answered(told)

    async def _meta_names(self) -> MetaNames:
        async with self._first:
            if self._names is None:
                options = self._gateway.options.discovery
                entities = await self._gateway.list_tools()
                names = meta_names(options, (), avoid={each.exposed_name for each in entities})
                told = digest(entities, budget=options.digest_token_budget)
                self._tools = meta(names, meta_tools(names, told, stable=True))
                self._names = names
            return self._names
