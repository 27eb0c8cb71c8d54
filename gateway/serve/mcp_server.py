"""The gateway as an MCP server.

* ``meta`` exposes two tools, search and call. Their definitions summarize the catalog, and stay the
  same to the byte until it changes, because they begin the prompts of clients.
* ``all`` exposes every tool of the catalog under its exposed name, in pages.

Both modes also list and read the resources and prompts of all servers. Lists contain only entities
that the caller may see, and no suspicious ones.

The SDK supports all protocol versions. Lone surrogates in requests and answers are replaced.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil
from typing import Any, Literal

from mcp import MCPError, types
from mcp.server import InitializationOptions, NotificationOptions, Server
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.caching import CacheableMethod, CacheHint
from mcp.server.context import CallNext, HandlerResult
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp.types import jsonrpc_message_adapter
from pydantic import ValidationError

from gateway.discovery.call_handler import ToolAnswer, ToolCall, handle_call
from gateway.discovery.meta_tools import FunctionTool, MetaNames, catalog_digest, meta_tools
from gateway.discovery.render_results import by_kind
from gateway.discovery.tool_list import ToolList, ToolListBuilder
from gateway.discovery.window import description_of
from gateway.gateway import Gateway
from gateway.options import DiscoveryOptions
from gateway.runtime import VERSION
from gateway.runtime.library_logs import quiet_libraries
from gateway.runtime.text import visible_json
from gateway.serve.auth import caller_of, caller_of_token
from gateway.serve.client import (
    RETRY_AFTER,
    AskClient,
    Context,
    PendingCalls,
    can_ask_client,
    is_stateless,
    missing_capability,
)
from gateway.serve.resources import ResourceHandlers, page, readable_block
from gateway.serve.skills import SkillHandlers
from gateway.serve.subscriptions import Subscriptions, listable
from gateway.types import ANYONE, Caller, Entity, JsonObject, SearchResult
from gateway.types.caller import ACTOR

Item = SessionMessage | Exception
"""Message from standard input, or the error that an invalid message caused."""
CallResult = dict[str, Any]
"""Result of ``tools/call`` as JSON, which the SDK validates for the client's protocol version."""
Expose = Literal["meta", "all"]
"""Tools that clients see: the meta-tools, or the whole catalog."""

LIST_TTL_MS = 300_000
"""Time for which clients may cache a list, in milliseconds."""

_LISTS: tuple[CacheableMethod, ...] = (
    "tools/list",
    "resources/list",
    "resources/templates/list",
    "prompts/list",
    "server/discover",
)
_CHANGES = NotificationOptions(tools_changed=True, prompts_changed=True, resources_changed=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtraTool:
    """Additional tool, listed after the meta-tools."""

    tool: types.Tool
    run: Callable[[JsonObject, Caller], Awaitable[types.CallToolResult]]
    """Runs a call with the arguments, which are not validated, and the caller."""


def mcp_server(
    gateway: Gateway,
    *,
    expose: Expose = "meta",
    extras: Sequence[ExtraTool] = (),
    caller: Caller = ANYONE,
) -> GatewayServer:
    """Return an MCP server for *gateway*, for a transport such as `serve_stdio`.

    Args:
        gateway: The gateway to serve. It is not closed. Upstream servers are told from now on that
            callers can be asked for input, so create the server before using the gateway.
        expose: Tools that clients see, ``meta`` or ``all``.
        extras: Additional tools for ``meta``. A meta-tool of the same name takes precedence.
        caller: Caller of requests without an access token.
    """
    library, options = gateway.library, gateway.options.discovery
    library.capabilities.can_be_asked = True
    digest = partial(catalog_digest, budget=options.digest_token_budget)
    changes = Subscriptions(library, digest if expose == "meta" else None, caller=caller)
    calls = PendingCalls()
    tools = _ToolHandlers(gateway, expose, calls, changes, extras, caller)
    resources = ResourceHandlers(library, calls, changes)
    skills = SkillHandlers(library, resources, ttl_ms=LIST_TTL_MS)
    server = GatewayServer(
        "gateway",
        version=VERSION,
        instructions=_instructions(expose, options),
        cache_hints=dict.fromkeys(_LISTS, CacheHint(ttl_ms=LIST_TTL_MS, scope="private")),
        lifespan=changes.watch_catalog,
        get_tool_input_schema=tools.listed_schema,
        on_list_tools=tools.list_tools,
        on_list_resources=resources.list_resources,
        on_list_resource_templates=resources.list_templates,
        on_read_resource=skills.read_resource,
        on_list_prompts=resources.list_prompts,
        on_get_prompt=resources.get_prompt,
        on_completion=resources.complete,
        on_subscribe_resource=changes.subscribe,
        on_unsubscribe_resource=changes.unsubscribe,
        on_subscriptions_listen=changes.listen,
    )
    # The constructor accepts only handlers that return models.
    server.add_request_handler("tools/call", types.CallToolRequestParams, tools.call_tool)
    skills.offer(server)
    # Before the SDK's tracing middleware, whose span would last as long as the session.
    server.middleware[:0] = [changes.notify_session, _clean_answer]
    server.end_streams = changes.end_streams
    return server


def _instructions(expose: Expose, options: DiscoveryOptions) -> str:
    if expose == "all":
        return "The tools of many servers, under one roof."
    return (
        f"Many tools stand behind two: {options.search_name} finds them and tells their "
        f"parameters, {options.call_name} calls them."
    )


async def serve_stdio(server: Server) -> None:
    """Serve one client over standard input and output until it disconnects.

    Meanwhile, nothing else may write to standard output.
    """
    with quiet_libraries(""):
        async with stdio_server() as (read, write), read:
            # The SDK only iterates over it and closes it.
            repaired: Any = repair(read)
            await server.run(repaired, write, server.create_initialization_options())


async def repair(items: AsyncIterator[Item]) -> AsyncIterator[Item]:
    """Yield *items*, without the lone surrogates that make a message invalid.

    The SDK would drop such a request without an answer.
    """
    async for item in items:
        yield _without_surrogates(item) if isinstance(item, ValidationError) else item


def _without_surrogates(refused: ValidationError) -> Item:
    try:
        value = json.loads(refused.errors()[0]["input"])
        whole = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
        return SessionMessage(jsonrpc_message_adapter.validate_json(whole, by_name=False))
    except (TypeError, ValueError, RecursionError):
        return refused


async def _clean_answer(ctx: Context, call_next: CallNext) -> HandlerResult:
    """Middleware that removes invisible characters, which may end a session, from answers."""
    try:
        return visible_json(await call_next(ctx))
    except MCPError as error:
        refusal = visible_json(error.error.model_dump(mode="json"))
        raise MCPError(**refusal) from error


class GatewayServer(Server[object]):
    """MCP server that announces list changes over every transport."""

    end_streams: Callable[[], None]
    """Ends all streams of ``subscriptions/listen``."""

    def create_initialization_options(self, *_args: Any, **_options: Any) -> InitializationOptions:
        """Return the options of a session."""
        return super().create_initialization_options(_CHANGES)


@dataclass(eq=False, repr=False)
class _ToolHandlers:
    """Handlers of ``tools/list`` and ``tools/call``."""

    gateway: Gateway
    expose: Expose
    calls: PendingCalls
    changes: Subscriptions
    extras: Sequence[ExtraTool]
    caller: Caller

    def __post_init__(self) -> None:
        extras = self.extras if self.expose == "meta" else ()
        self._extras = {extra.tool.name: extra for extra in extras}
        self._approve = AskClient(options=self.gateway.options, shows_tools=self.expose == "all")
        self._lists = ToolListBuilder(self.gateway)
        self._listed_schemas: dict[tuple[Hashable, str], Mapping[str, object]] = {}
        """Input schemas of listed tools, keyed by audience and tool name. Callers of one audience
        see the same entities."""

    def listed_schema(self, name: str) -> Mapping[str, object] | None:
        """Return the schema of a tool as listed to the caller. None if it was not listed.

        The SDK checks request headers against it.
        """
        access = get_access_token()
        caller = self.caller if access is None else caller_of_token(access)
        return self._listed_schemas.get((self.gateway.audience(caller), name))

    async def list_tools(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        caller = caller_of(context)
        if self.expose == "meta":
            names, tools = await self._list_meta_tools(caller)
            extras = [extra.tool for name, extra in self._extras.items() if name not in names]
            return types.ListToolsResult(tools=[*tools, *extras])
        entities = listable(await self.gateway.list_tools(caller=caller))
        self.changes.note_list("tool", entities, caller)
        page_entities, cursor = page(entities, params)
        tools = tuple(map(_tool, page_entities))
        audience = self.gateway.audience(caller)
        self._listed_schemas |= {(audience, tool.name): tool.input_schema for tool in tools}
        return types.ListToolsResult(tools=list(tools), next_cursor=cursor)

    async def call_tool(
        self, context: Context, params: types.CallToolRequestParams
    ) -> CallResult | types.CallToolResult | types.InputRequiredResult:
        caller = caller_of(context)
        names, searchable = MetaNames(search="", call=""), None
        if self.expose == "meta":
            # Programs may call all tools that they name, because a server does not see which tools
            # were found.
            searchable = await self._lists.searchable(caller)
            names = self._lists.names(searchable)
        arguments = params.arguments or {}
        extra = self._extras.get(params.name)
        if extra is not None and params.name not in names:
            ACTOR.set(caller)
            return await extra.run(arguments, caller)
        call = ToolCall(id="", name=params.name, arguments="", parsed=arguments)

        async def work() -> CallResult:
            tools = ToolList(names=names, mode="stable", caller=caller, searchable=searchable)
            # If the client cannot be asked, its program waits for another approval.
            waits = call.name in names.added and not can_ask_client()
            answer = await handle_call(
                self.gateway, tools, call, approve=None if waits else self._approve
            )
            if answer.needed and is_stateless(context):
                raise missing_capability(answer.error, answer.needed)
            server = self.gateway.library.home(answer.result.tool_id) if answer.result else ""
            return _call_result(answer, server)

        return await self.calls.run(context, params, work)

    async def _list_meta_tools(self, caller: Caller) -> tuple[MetaNames, tuple[types.Tool, ...]]:
        """Return the meta-tools' names and definitions for *caller*."""
        searchable = await self._lists.searchable(caller)
        names = self._lists.names(searchable)
        tools = meta_tools(names, searchable.digest, stable=True)
        self.changes.note_list("tool", searchable.by_name.values(), caller)
        return names, tuple(_meta_tool(names, tool) for tool in tools)


def _meta_tool(names: MetaNames, tool: FunctionTool) -> types.Tool:
    """Convert a meta-tool to an MCP tool. Only meta-tools that call tools are not read-only."""
    function: Any = tool["function"]
    added = names.added.get(function["name"])
    is_call = not added.read_only if added else function["name"] == names.call
    return types.Tool(
        name=function["name"],
        description=function["description"],
        input_schema=function["parameters"],
        annotations=types.ToolAnnotations(
            read_only_hint=not is_call, idempotent_hint=not is_call, open_world_hint=is_call
        ),
    )


def _tool(entity: Entity) -> types.Tool:
    """Convert *entity* to an MCP tool. Its description stays marked as a claim of its server."""
    definition, hints = entity.definition, entity.hints
    output = definition.output_schema
    return types.Tool(
        name=entity.exposed_name,
        title=definition.title or None,
        description=description_of(entity),
        input_schema=visible_json({"type": "object", **definition.input_schema}),
        # Some versions of the protocol require an object.
        output_schema=visible_json(dict(output))
        if output and output.get("type") == "object"
        else None,
        annotations=types.ToolAnnotations(
            read_only_hint=hints.read_only,
            destructive_hint=hints.destructive,
            idempotent_hint=hints.idempotent,
            open_world_hint=hints.open_world,
        ),
    )


def _call_result(answer: ToolAnswer, server: str) -> CallResult:
    """Convert *answer* to an MCP result: content blocks of a tool, or the result of a search.

    The result of a search contains a text for the model and an object for programs. URIs in the
    content belong to *server*. An empty *server* leaves them unchanged.
    """
    result: CallResult = {"isError": answer.failed, "resultType": "complete"}
    if answer.retry_after_s is not None:
        result["_meta"] = {RETRY_AFTER: ceil(answer.retry_after_s)}
    if answer.result is None:
        result["content"] = [{"type": "text", "text": answer.text}]
        if answer.search is not None:
            result["structuredContent"] = _search_object(answer.search)
        return result
    result["content"] = [
        readable_block(block.data or {"type": "text", "text": block.text}, server)
        for block in answer.result.content
    ]
    if answer.result.structured is not None:
        result["structuredContent"] = answer.result.structured
    return result


def _search_object(result: SearchResult) -> dict[str, object]:
    tools = [
        {
            "kind": kind,
            "name": match.name,
            "id": match.id,
            "server": match.server,
            "confidence": round(match.confidence, 4),
        }
        for kind, match in by_kind(result)
    ]
    diagnostics = [note.code for note in result.diagnostics]
    return {"mode": result.mode, "tools": tools, "diagnostics": diagnostics}
