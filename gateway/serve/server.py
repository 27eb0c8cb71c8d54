"""A gateway as an MCP server: what it lists, and what a call of it does.

* ``meta``: two tools, search and call, the same for as long as the server lives. The protocol
  wants a list that does not vary, and clients put it at the head of every prompt.
* ``all``: every tool of the catalog under its exposed name, in pages.

In both, resources and prompts of all servers are listed and read, and what a server asks for while
it works is asked of the client whose call it is. No list holds anything whose definition looks like
an attack on a model.

The SDK speaks every version of the protocol, with sessions for clients that begin with a handshake
and without for those of 2026-07-28 and later. It also takes up the trace that a client sends along.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from mcp import types
from mcp.server import InitializationOptions, NotificationOptions, Server
from mcp.server.caching import CacheableMethod, CacheHint

from gateway.discovery.call_handler import Answer, AnswerOptions, ToolCall, answer, searched, tell
from gateway.discovery.meta_tools import MetaNames, digest, meta_names, meta_tools
from gateway.discovery.written import Written
from gateway.errors import InvalidRequestError
from gateway.gateway import Gateway
from gateway.runtime import VERSION
from gateway.serve.answered import Block, Wire, answered
from gateway.serve.client import Context, stateless
from gateway.serve.exchange import Exchanges
from gateway.serve.faulty import incapable
from gateway.serve.notifications import Notifications
from gateway.serve.placed import block
from gateway.serve.reading import Reading
from gateway.serve.shown import listable, meta, page, tool
from gateway.types import Filters, JsonObject

Expose = Literal["meta", "all"]
"""What a client is shown: the two meta-tools, or the whole catalog."""

_ANSWERING = AnswerOptions(schemas=True)
_NO_NAMES = MetaNames(search="", call="")
LIST_TTL_MS = 300_000
"""How long a client may keep a list without asking again."""

_LISTS: tuple[CacheableMethod, ...] = (
    "tools/list",
    "resources/list",
    "resources/templates/list",
    "prompts/list",
    "server/discover",
)
_CHANGES = NotificationOptions(tools_changed=True, prompts_changed=True, resources_changed=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Extra:
    """A tool of the server's own, listed behind the two meta-tools."""

    tool: types.Tool
    run: Callable[[JsonObject], Awaitable[types.CallToolResult]]
    """Takes the arguments as they came: it checks them itself."""


def mcp_server(
    gateway: Gateway,
    *,
    expose: Expose = "meta",
    name: str = "gateway",
    extras: Sequence[Extra] = (),
) -> Server:
    """Make the server. A transport serves it; the caller closes the gateway.

    Args:
        gateway: What is searched and called. From now on its servers are told that callers can be
            asked, so make the server before the gateway is used.
        expose: ``meta`` or ``all``.
        name: The name by which it introduces itself.
        extras: More tools, for ``meta``. None may have the name of a meta-tool.
    """
    library = gateway.library
    library.audience.askable = True
    notifications = Notifications(library, tools=expose == "all")
    exchanges = Exchanges()
    served = _Served(gateway, expose, exchanges, notifications)
    served.extras = {each.tool.name: each for each in extras} if expose == "meta" else {}
    reading = Reading(library, exchanges, notifications)
    hint = CacheHint(ttl_ms=LIST_TTL_MS, scope="private")
    server = _Server(
        name,
        version=VERSION,
        instructions=served.instructions,
        cache_hints=dict.fromkeys(_LISTS, hint),
        lifespan=notifications.watching,
        get_tool_input_schema=served.schema,
        on_list_tools=served.list_tools,
        on_list_resources=reading.resources,
        on_list_resource_templates=reading.templates,
        on_read_resource=reading.read,
        on_list_prompts=reading.prompts,
        on_get_prompt=reading.get_prompt,
        on_completion=reading.complete,
        on_subscribe_resource=notifications.resources.subscribe,
        on_unsubscribe_resource=notifications.resources.unsubscribe,
        on_subscriptions_listen=notifications.resources.listen,
    )
    # The argument of the constructor takes only models.
    server.add_request_handler("tools/call", types.CallToolRequestParams, served.call_tool)
    # Before the SDK's own middleware, whose span would last as long as the session.
    server.middleware.insert(0, notifications.follow)
    return server


class _Server(Server[object]):
    """Says that its lists change, however it is served."""

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        return super().create_initialization_options(
            notification_options or _CHANGES, experimental_capabilities, extensions
        )


class _Served:
    def __init__(
        self, gateway: Gateway, expose: Expose, exchanges: Exchanges, notifications: Notifications
    ) -> None:
        self._gateway = gateway
        self._expose = expose
        self._exchanges = exchanges
        self._notifications = notifications
        self._names: MetaNames | None = None
        self._tools: tuple[types.Tool, ...] = ()
        self._first = asyncio.Lock()
        self.extras: Mapping[str, Extra] = {}
        self._written: Written[Wire] = Written()

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
        if snapshot is None:
            return None
        spots = snapshot.exposed(name, snapshot.mask(Filters()))
        return snapshot.entities[spots[0]].definition.input_schema if spots else None

    async def list_tools(
        self, _context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        if self._expose == "meta":
            await self._meta_names()
            own = {each.name for each in self._tools}
            more = (each.tool for name, each in self.extras.items() if name not in own)
            return types.ListToolsResult(tools=[*self._tools, *more])
        listed = listable(await self._gateway.list_tools())
        self._notifications.seen("tool", listed)
        shown = page(listed, params.cursor if params is not None else None)
        return types.ListToolsResult(
            tools=[tool(entity) for entity in shown.entities], next_cursor=shown.next_cursor
        )

    async def call_tool(
        self, context: Context, params: types.CallToolRequestParams
    ) -> Wire | types.CallToolResult | types.InputRequiredResult:
        names = self._names or (await self._meta_names() if self._expose == "meta" else _NO_NAMES)
        given = params.arguments or {}
        search = params.name and params.name == names.search and params.request_state is None
        wire = self._again(given) if search else None
        if wire is not None:
            return wire
        call = ToolCall(id="", name=params.name, arguments="", given=given)
        if search:
            # It has nothing to ask its client.
            return await self._search(names, call)
        return await self._exchanges.run(context, params, lambda: self._call(context, names, call))

    def _again(self, given: JsonObject) -> Wire | None:
        """Give what was written for the same query, if nothing that decides it changed."""
        query = given.get("query")
        found = self._gateway.recall(query) if isinstance(query, str) and len(given) == 1 else None
        return self._written.get(found) if found is not None else None

    async def _search(self, names: MetaNames, call: ToolCall) -> Wire:
        try:
            queries, found = await searched(self._gateway, call.given or {})
        except InvalidRequestError:
            return answered(await self._answer(names, call), dict)
        wire = self._written.get(found)
        if wire is not None:
            return wire
        told = await tell(self._gateway, call, queries, found, answering=_ANSWERING)
        return self._written.put(found, answered(told, dict))

    async def _call(
        self, context: Context, names: MetaNames, call: ToolCall
    ) -> Wire | types.CallToolResult:
        extra = self.extras.get(call.name)
        if extra is not None and call.name not in names:
            return await extra.run(call.given or {})
        told = await self._answer(names, call)
        if told.needed and stateless(context):
            raise incapable(told.error, told.needed)
        return answered(told, self._moved(told))

    async def _answer(self, names: MetaNames, call: ToolCall) -> Answer:
        limit = self._gateway.options.chat.max_result_chars
        return await answer(
            self._gateway, names, call, max_result_chars=limit, answering=_ANSWERING
        )

    def _moved(self, told: Answer) -> Block:
        home = self._gateway.library.home(told.result.tool_id) if told.result is not None else ""
        return lambda each: block(each, home) if home else each

    async def _meta_names(self) -> MetaNames:
        if self._names is not None:
            return self._names
        async with self._first:
            if self._names is None:
                options = self._gateway.options.discovery
                entities = await self._gateway.list_tools()
                names = meta_names(options, (), avoid={each.exposed_name for each in entities})
                told = digest(entities, budget=options.digest_token_budget)
                self._tools = meta(names, meta_tools(names, told, stable=True))
                self._names = names
            return self._names
