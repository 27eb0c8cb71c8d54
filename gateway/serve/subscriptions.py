"""Tells clients when a list that they were sent, or a resource that they watch, has changed.

* Before 2026-07-28 a client subscribes in its session and hears of changes on its stream; since
  then it opens a stream for them, and names its resources there. Both read one bus of the SDK.
* The server that has a resource is asked once for all clients that watch it. A client hears of the
  address that it gave. A resource that no client watches any more is let go.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Hashable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial

from mcp import types
from mcp.server.context import CallNext, HandlerResult
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
    ToolsListChanged,
)

from gateway.errors import Failed, InvalidRequestError, attempt
from gateway.search.resources import ResourceLibrary
from gateway.serve.client import Context, client_identity, is_stateless
from gateway.serve.errors import raise_as_mcp_error
from gateway.serve.views import listable
from gateway.types import Entity, Kind
from gateway.types.listing import WatchCallbacks

MAX_WATCHED = 1000
"""Resources that are watched at the same time."""
End = Callable[[], None]
_Owner = tuple[str, str]
_EVENTS: Mapping[Kind, ServerEvent] = {
    "tool": ToolsListChanged(),
    "resource": ResourcesListChanged(),
    "prompt": PromptsListChanged(),
}


class _Watch:
    """One watched resource of one server, and the addresses under which clients watch it."""

    def __init__(
        self, library: ResourceLibrary, owner: _Owner, on_update: Callable[[str], None]
    ) -> None:
        self.addresses: Counter[str] = Counter()
        self._on_update = on_update
        self._loop = asyncio.get_running_loop()
        self._started: asyncio.Future[None] = self._loop.create_future()
        callbacks = WatchCallbacks(
            on_start=self._here(self._start), on_change=self._here(self._update)
        )
        self.task = asyncio.create_task(library.follow(owner, callbacks), name=f"watch {owner[0]}")
        self.task.add_done_callback(self._finish)

    async def started(self) -> None:
        """Wait until changes are reported, or raise why they never will be."""
        await asyncio.shield(self._started)

    def _here(self, work: Callable[[], None]) -> Callable[[], None]:
        def call() -> None:
            with suppress(RuntimeError):  # the loop may be closed by now
                self._loop.call_soon_threadsafe(work)

        return call

    def _start(self) -> None:
        if not self._started.done():
            self._started.set_result(None)

    def _update(self) -> None:
        for address in tuple(self.addresses):
            self._on_update(address)

    def _finish(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if not self._started.done():
            self._started.cancel() if error is None else self._started.set_exception(error)
            if error is not None:
                self._started.exception()  # the waiting client may have gone


class ResourceSubscriptions:
    """The resources that the clients of one server watch.

    Args:
        library: The resources.
        bus: Receives the changes.
        max_watched: Resources that are watched at the same time.
    """

    def __init__(
        self,
        library: ResourceLibrary,
        bus: InMemorySubscriptionBus,
        *,
        max_watched: int = MAX_WATCHED,
    ) -> None:
        self._library = library
        self._bus = bus
        self._max_watched = max_watched
        self._listen = ListenHandler(bus)
        self._watches: dict[_Owner, _Watch] = {}
        self._sessions: dict[Hashable, dict[str, End]] = {}
        self._publishing: set[asyncio.Task[None]] = set()

    async def watch(self, address: str) -> End:
        """Watch the resource at *address*; return the function that ends that.

        Raises:
            InvalidRequestError: There is no such resource, it cannot be watched, or too many are.
            UpstreamError: Its server could not be asked.
        """
        owner = await self._library.owner("resource", address)
        watch = self._watches.get(owner)
        if watch is None or watch.task.done():
            if len(self._watches) >= self._max_watched:
                raise InvalidRequestError(
                    f"{self._max_watched} resources are watched: let go of some"
                )
            watch = self._watches[owner] = _Watch(self._library, owner, self._publish)
        watch.addresses[address] += 1
        end = partial(self._end, owner, watch, address)
        try:
            await watch.started()
        except BaseException:
            end()
            raise
        return end

    async def subscribe(
        self, context: Context, params: types.SubscribeRequestParams
    ) -> types.EmptyResult:
        """Answer ``resources/subscribe``."""
        session, uri = client_identity(context), params.uri
        subscribed = self._sessions.setdefault(session, {})
        if uri not in subscribed:
            with raise_as_mcp_error({"uri": uri}, context):
                end = await self.watch(uri)
            if uri in subscribed or self._sessions.get(session) is not subscribed:
                end()
            else:
                subscribed[uri] = end
        return types.EmptyResult()

    async def unsubscribe(
        self, context: Context, params: types.UnsubscribeRequestParams
    ) -> types.EmptyResult:
        """Answer ``resources/unsubscribe``; a resource that is not watched is no error."""
        end = self._sessions.get(client_identity(context), {}).pop(params.uri, None)
        if end is not None:
            end()
        return types.EmptyResult()

    async def listen(
        self, context: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """Answer ``subscriptions/listen``: only resources that can be watched are promised."""
        wanted = params.notifications
        ends: dict[str, End] = {}

        async def watch(uri: str) -> None:
            ends[uri] = await self.watch(uri)

        try:
            uris = dict.fromkeys((wanted.resource_subscriptions or [])[: self._max_watched])
            await asyncio.gather(*(attempt(watch(uri)) for uri in uris))
            promised = [uri for uri in uris if uri in ends] or None
            honored = wanted.model_copy(update={"resource_subscriptions": promised})
            return await self._listen(context, params.model_copy(update={"notifications": honored}))
        finally:
            for end in ends.values():
                end()

    def watched_by(self, context: Context) -> Collection[str]:
        """Return the addresses that the session of *context* watches."""
        return self._sessions.get(client_identity(context), ())

    def drop_session(self, context: Context) -> None:
        """End the subscriptions of the session of *context*."""
        for end in self._sessions.pop(client_identity(context), {}).values():
            end()

    def _end(self, owner: _Owner, watch: _Watch, address: str) -> None:
        watch.addresses[address] -= 1
        if watch.addresses[address] <= 0:
            del watch.addresses[address]
        if not watch.addresses:
            watch.task.cancel()
            if self._watches.get(owner) is watch:
                del self._watches[owner]

    def _publish(self, address: str) -> None:
        task = asyncio.create_task(self._bus.publish(ResourceUpdated(uri=address)))
        self._publishing.add(task)
        task.add_done_callback(self._publishing.discard)


class ListChanges:
    """The lists that the clients of one server were sent last, and their changes.

    Args:
        library: The resources and prompts.
        tools: Whether the list of tools is that of the catalog.
    """

    def __init__(self, library: ResourceLibrary, *, tools: bool) -> None:
        self.bus = InMemorySubscriptionBus()
        self.resources = ResourceSubscriptions(library, self.bus)
        self._library = library
        self._tools = tools
        self._sent: dict[Kind, str] = {}
        self._connections = 0
        self._task: asyncio.Task[None] | None = None

    def note_list(self, kind: Kind, entities: Iterable[Entity]) -> None:
        """Note that a client was sent *entities*, all that are `listable` of *kind*."""
        if self._tools or kind != "tool":
            self._sent[kind] = _digest(entities)

    @asynccontextmanager
    async def watch_catalog(self, _server: object) -> AsyncIterator[object]:
        """Watch the catalog while there are connections; yield an identity for this one."""
        if not self._connections:
            self._task = asyncio.create_task(self._watch(), name="list_changed")
        self._connections += 1
        try:
            yield object()
        finally:
            self._connections -= 1
            if not self._connections and self._task is not None:
                self._task.cancel()
                await asyncio.wait({self._task})

    async def _watch(self) -> None:
        loop = asyncio.get_running_loop()
        changed = asyncio.Event()

        def on_change() -> None:
            with suppress(RuntimeError):  # the loop may be closed by now
                loop.call_soon_threadsafe(changed.set)

        end = self._library.watch(on_change)
        try:
            while True:
                await changed.wait()
                changed.clear()
                for kind in tuple(self._sent):
                    await self._compare(kind)
        finally:
            end()

    async def _compare(self, kind: Kind) -> None:
        entities = await attempt(self._library.entities(kind))
        if isinstance(entities, Failed):
            return
        digest = _digest(listable(entities))
        if digest != self._sent.get(kind):
            self._sent[kind] = digest
            await self.bus.publish(_EVENTS[kind])

    async def notify_session(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Send changes to a session for as long as it lives: a middleware.

        It starts after the client said that it is ready, and ends with the connection.
        """
        result = await call_next(ctx)
        if ctx.method == "notifications/initialized" and not is_stateless(ctx):
            await self._send_changes(ctx)
        return result

    async def _send_changes(self, context: Context) -> None:
        session = context.session
        queue: asyncio.Queue[ServerEvent] = asyncio.Queue()
        end = self.bus.subscribe(queue.put_nowait)
        try:
            while True:
                event = await queue.get()
                if isinstance(event, ToolsListChanged):
                    await session.send_tool_list_changed()
                elif isinstance(event, PromptsListChanged):
                    await session.send_prompt_list_changed()
                elif isinstance(event, ResourcesListChanged):
                    await session.send_resource_list_changed()
                elif event.uri in self.resources.watched_by(context):
                    await session.send_resource_updated(event.uri)
        finally:
            end()
            self.resources.drop_session(context)


def _digest(entities: Iterable[Entity]) -> str:
    lines = sorted(f"{entity.exposed_name} {entity.digest}" for entity in entities)
    return hashlib.sha256("\n".join(lines).encode("utf-8", "replace")).hexdigest()
