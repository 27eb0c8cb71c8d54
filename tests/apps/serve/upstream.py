"""Fixture server that the conformance suite expects, with one tool for each kind of answer.

As a program, it uses standard input. With ``--legacy`` it accepts only clients that start with a
handshake.
"""

from __future__ import annotations

import asyncio
import base64
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mcp import MCPError, types
from mcp.server import Server
from mcp.server.runner import serve_loop
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
    ToolsListChanged,
)
from mcp.shared.memory import create_client_server_memory_streams
from mcp.shared.subscriptions import event_to_notification

from tests.apps.serve import asking, shelves
from tests.apps.serve.asking import Context
from tests.apps.serve.shelves import PIXEL

SOUND = base64.b64encode(b"RIFF\x24\x00\x00\x00WAVEfmt ").decode()

DEEP: dict[str, object] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
HEADED: dict[str, object] = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "query": {"type": "string"},
    },
}
PLAIN: dict[str, object] = {"type": "object"}


def _text(text: str) -> dict[str, object]:
    return {"type": "text", "text": text}


def _resource(uri: str, mime: str, text: str) -> dict[str, object]:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": mime, "text": text}}


_IMAGE: dict[str, object] = {"type": "image", "data": PIXEL, "mimeType": "image/png"}
ANSWERS: dict[str, tuple[dict[str, object], list[dict[str, object]]]] = {
    "test_simple_text": (PLAIN, [_text("This is a simple text response for testing.")]),
    "test_image_content": (PLAIN, [_IMAGE]),
    "test_audio_content": (PLAIN, [{"type": "audio", "data": SOUND, "mimeType": "audio/wav"}]),
    "test_embedded_resource": (
        PLAIN,
        [_resource("test://embedded-resource", "text/plain", "An embedded resource.")],
    ),
    "test_multiple_content_types": (
        PLAIN,
        [
            _text("Multiple content types test:"),
            _IMAGE,
            _resource("test://mixed", "application/json", json.dumps({"test": "data"})),
        ],
    ),
    "test_error_handling": (PLAIN, [_text("This tool intentionally returns an error.")]),
    "json_schema_2020_12_tool": (DEEP, [_text("ok")]),
    "query_of_a_region": (HEADED, [_text("ok")]),
}


CHANGES: dict[str, ServerEvent] = {
    "test_trigger_tool_change": ToolsListChanged(),
    "test_trigger_prompt_change": PromptsListChanged(),
    "test_trigger_resource_change": ResourcesListChanged(),
}


WATCHED = "test://watched-resource"
WATCHING = ("test_touch", "test_who_watches")
"""Names of the tools that report a changed resource and list the watched resources."""


class Fixture:
    """A server whose lists can change."""

    def __init__(self) -> None:
        self.newer: dict[str, list[str]] = {"tool": [], "prompt": [], "resource": []}
        self.watched: set[str] = set()
        self.bus = InMemorySubscriptionBus()

    async def tools(self, _context: Context, _params: object) -> types.ListToolsResult:
        """Return the tools that answer, ask for input, or were added since the start."""
        plain = dict.fromkeys((*asking.TOOLS, *self.newer["tool"], *WATCHING), PLAIN)
        schemas = {name: schema for name, (schema, _) in ANSWERS.items()} | plain
        tools = [
            types.Tool(name=name, description=name.replace("_", " "), input_schema=schema)
            for name, schema in (schemas | dict.fromkeys(CHANGES, PLAIN)).items()
        ]
        return types.ListToolsResult(tools=tools)

    async def call(
        self, context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        """Answer a call, ask its client for input, or change a list."""
        if params.name in CHANGES:
            await self.change(context, params.name)
            return _text_result("changed")
        if params.name in WATCHING:
            return _text_result(await self.watching(context, params))
        if params.name in asking.TOOLS:
            answer = await asking.TOOLS[params.name](context, params)
            return answer if isinstance(answer, types.InputRequiredResult) else _text_result(answer)
        content = ANSWERS[params.name][1] if params.name in ANSWERS else [_text("new")]
        return types.CallToolResult.model_validate(
            {"content": content, "isError": params.name == "test_error_handling"}
        )

    async def watching(self, context: Context, params: types.CallToolRequestParams) -> str:
        """Run one of the tools in `WATCHING`."""
        if params.name == "test_touch":
            uri = str((params.arguments or {}).get("uri", WATCHED))
            await self.bus.publish(ResourceUpdated(uri=uri))
            if not asking.is_stateless(context):
                await context.session.send_resource_updated(uri)
        return ", ".join(sorted(self.watched))

    async def subscribe(
        self, _context: Context, params: types.SubscribeRequestParams
    ) -> types.EmptyResult:
        """Record a watcher. Pictures cannot be watched."""
        if params.uri == "test://static-binary":
            raise MCPError(types.INVALID_PARAMS, "nobody watches a picture")
        self.watched.add(params.uri)
        return types.EmptyResult()

    async def unsubscribe(
        self, _context: Context, params: types.UnsubscribeRequestParams
    ) -> types.EmptyResult:
        self.watched.discard(params.uri)
        return types.EmptyResult()

    async def change(self, context: Context, what: str) -> None:
        """Add an entity of the kind *what*, and notify the client."""
        kind = what.split("_")[2]
        self.newer[kind].append(f"newer_{kind}_{len(self.newer[kind])}")
        if asking.is_stateless(context):
            await self.bus.publish(CHANGES[what])
        else:
            await context.session.send_notification(event_to_notification(CHANGES[what], {}))

    async def list_resources(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        listed = await shelves.list_resources(context, params)
        newer = [
            types.Resource(uri=f"test://{name}", name=name, description="New.")
            for name in self.newer["resource"]
        ]
        return types.ListResourcesResult(resources=[*listed.resources, *newer])

    async def list_prompts(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListPromptsResult:
        listed = await shelves.list_prompts(context, params)
        newer = [types.Prompt(name=name, description="New.") for name in self.newer["prompt"]]
        return types.ListPromptsResult(prompts=[*listed.prompts, *newer])

    def server(self) -> Server[object]:
        return Server(
            "fixture",
            lifespan=_nothing,
            on_list_tools=self.tools,
            on_call_tool=self.call,
            on_list_resources=self.list_resources,
            on_list_resource_templates=shelves.list_templates,
            on_read_resource=shelves.read,
            on_subscribe_resource=self.subscribe,
            on_unsubscribe_resource=self.unsubscribe,
            on_list_prompts=self.list_prompts,
            on_get_prompt=shelves.get_prompt,
            on_completion=shelves.complete,
            on_subscriptions_listen=ListenHandler(self.bus),
        )


@asynccontextmanager
async def _nothing(_server: object) -> AsyncIterator[object]:
    yield object()


def _text_result(text: str) -> types.CallToolResult:
    return types.CallToolResult.model_validate({"content": [_text(text)]})


@asynccontextmanager
async def piped(server: Server[object], *, legacy: bool) -> AsyncIterator[Any]:
    """Serve *server* over in-memory streams."""
    async with create_client_server_memory_streams() as (ours, theirs):
        serving = asyncio.create_task(_serve(server, *theirs, legacy=legacy))
        try:
            yield ours
        finally:
            serving.cancel()
            await asyncio.wait({serving})


async def _serve(server: Server[object], read: Any, write: Any, *, legacy: bool) -> None:
    if legacy:
        await serve_loop(server, read, write, lifespan_state=object())
    else:
        await server.run(read, write, server.create_initialization_options())


UPSTREAMS = ["object", "modern", "legacy"]
"""Ways in which a gateway reaches the fixture server: as an object in the same process, or over a
transport with a new or an old protocol version."""
ERAS = ["auto", "legacy"]
"""Modes of the SDK's client: the newest protocol version of the server, or an old one."""


def target(over: str) -> object:
    """Return a gateway's target in the way *over*, one of `UPSTREAMS`."""
    server = Fixture().server()
    return server if over == "object" else piped(server, legacy=over == "legacy")


async def _main(*, legacy: bool) -> None:
    async with stdio_server() as (read, write):
        await _serve(Fixture().server(), read, write, legacy=legacy)


if __name__ == "__main__":
    asyncio.run(_main(legacy="--legacy" in sys.argv))
