"""Tells clients when a list that they were shown, or a resource that they watch, has changed.

Before 2026-07-28 they hear it on the stream of their session, since then on a stream that they open
for it. Both read from one bus of the SDK.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager, suppress

from mcp.server.context import CallNext, HandlerResult
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
    ToolsListChanged,
)

from gateway.errors import Failed, attempt
from gateway.search.library import Library
from gateway.serve.client import Context, stateless
from gateway.serve.shown import listable
from gateway.serve.watching import Watching
from gateway.types import Entity, Kind

_EVENTS: Mapping[Kind, ServerEvent] = {
    "tool": ToolsListChanged(),
    "resource": ResourcesListChanged(),
    "prompt": PromptsListChanged(),
}
_OPENED = "notifications/initialized"


class Notifications:
    """What the clients of one server were shown last, and how they hear of changes.

    Args:
        library: The resources and prompts.
        tools: Whether the list of tools is that of the catalog.
    """

    def __init__(self, library: Library, *, tools: bool) -> None:
        self.bus = InMemorySubscriptionBus()
        self.resources = Watching(library, self.bus)
        self._library = library
        self._tools = tools
        self._seen: dict[Kind, str] = {}
        self._watching = 0
        self._task: asyncio.Task[None] | None = None

    def seen(self, kind: Kind, entities: Iterable[Entity]) -> None:
        """Note that a client is shown *entities*, all that are `listable` of *kind*."""
        if self._tools or kind != "tool":
            self._seen[kind] = _digest(entities)

    @asynccontextmanager
    async def watching(self, _server: object) -> AsyncIterator[object]:
        """Watch the catalog as long as anybody is served; gives what tells connections apart."""
        if not self._watching:
            self._task = asyncio.create_task(self._watch(), name="list_changed")
        self._watching += 1
        try:
            yield object()
        finally:
            self._watching -= 1
            if not self._watching and self._task is not None:
                self._task.cancel()
                await asyncio.wait({self._task})

    async def _watch(self) -> None:
        loop = asyncio.get_running_loop()
        changed = asyncio.Event()

        def tell() -> None:
            with suppress(RuntimeError):  # the loop may be closed by now
                loop.call_soon_threadsafe(changed.set)

        end = self._library.watch(tell)
        try:
            while True:
                await changed.wait()
                changed.clear()
                for kind in tuple(self._seen):
                    await self._compare(kind)
        finally:
            end()

    async def _compare(self, kind: Kind) -> None:
        entities = await attempt(self._library.entities(kind))
        if isinstance(entities, Failed):
            return
        digest = _digest(listable(entities))
        if digest != self._seen.get(kind):
            self._seen[kind] = digest
            await self.bus.publish(_EVENTS[kind])

    async def follow(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Tell a session of changes for as long as it lives: a middleware.

        It goes on after the client said that it is ready, and ends with the connection.
        """
        result = await call_next(ctx)
        if ctx.method == _OPENED and not stateless(ctx):
            await self._tell(ctx)
        return result

    async def _tell(self, context: Context) -> None:
        queue: asyncio.Queue[ServerEvent] = asyncio.Queue()
        end = self.bus.subscribe(queue.put_nowait)
        try:
            while True:
                event = await queue.get()
                if isinstance(event, ResourceUpdated):
                    if event.uri in self.resources.of(context):
                        await context.session.send_resource_updated(event.uri)
                else:
                    await _send(context, event)
        finally:
            end()
            self.resources.leave(context)


async def _send(context: Context, event: ServerEvent) -> None:
    session = context.session
    if isinstance(event, ToolsListChanged):
        await session.send_tool_list_changed()
    elif isinstance(event, PromptsListChanged):
        await session.send_prompt_list_changed()
    elif isinstance(event, ResourcesListChanged):
        await session.send_resource_list_changed()


def _digest(entities: Iterable[Entity]) -> str:
    told = sorted(f"{entity.exposed_name} {entity.digest}" for entity in entities)
    return hashlib.sha256("\n".join(told).encode("utf-8", "replace")).hexdigest()
