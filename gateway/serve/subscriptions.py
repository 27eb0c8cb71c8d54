"""Notifications to clients about changed lists and changed resources.

* Before protocol version 2026-07-28, a client subscribes in its session. Since then it opens a
  stream for notifications, and names its resources there.
* The gateway subscribes once to each watched resource, for all clients.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import KW_ONLY, dataclass
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
from mcp.shared.subscriptions import event_to_notification

from gateway.call.resources import ResourceLibrary
from gateway.errors import Failed, InvalidRequestError, attempt
from gateway.serve.auth import ConnectionContext, caller_of
from gateway.serve.client import Context, client_identity, is_stateless, raise_as_mcp_error
from gateway.types import ANYONE, Caller, Entity, Kind
from gateway.types.listing import WatchCallbacks

MAX_WATCHED = 1000
"""Maximum number of resources that the clients of one server can watch."""
End = Callable[[], None]
_Owner = tuple[str, str]
_EVENTS: Mapping[Kind, ServerEvent] = {
    "tool": ToolsListChanged(),
    "resource": ResourcesListChanged(),
    "prompt": PromptsListChanged(),
}


def listable(entities: Iterable[Entity]) -> tuple[Entity, ...]:
    """Return all entities except suspicious ones, because clients give lists to their models.

    Suspicious entities can still be used by name.
    """
    return tuple(entity for entity in entities if not entity.suspicious)


def _on_this_loop(work: Callable[[], object]) -> Callable[[], None]:
    """Return a thread-safe function that runs *work* on the current event loop."""
    loop = asyncio.get_running_loop()

    def call() -> None:
        with suppress(RuntimeError):  # the event loop may already be closed
            loop.call_soon_threadsafe(work)

    return call


class _Watch:
    """One watched resource, the number of its watchers, and its subscription upstream."""

    def __init__(
        self, library: ResourceLibrary, owner: _Owner, on_change: Callable[[], None]
    ) -> None:
        self.owner = owner
        self.watchers = 0
        self._started = asyncio.Event()
        callbacks = WatchCallbacks(
            on_start=_on_this_loop(self._started.set), on_change=_on_this_loop(on_change)
        )
        following = attempt(library.follow(owner, callbacks))
        self.task = asyncio.create_task(following, name=f"watch {owner[0]}")

    async def started(self) -> None:
        """Wait until the upstream server reports changes. Raise its error if it refuses."""
        start = asyncio.ensure_future(self._started.wait())
        try:
            await asyncio.wait({self.task, start}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            start.cancel()
        ended = self.task.result() if self.task.done() else None
        if isinstance(ended, Failed):
            raise ended.error


class _Audience:
    """Clients that may see the same entities, and digests of their last lists."""

    def __init__(self, caller: Caller) -> None:
        self.caller = caller
        self.sent: dict[Kind, str] = {}
        self.bus = InMemorySubscriptionBus()
        self.listen = ListenHandler(self.bus)


@dataclass(eq=False, repr=False)
class Subscriptions:
    """Resources watched by clients of one server, and digests of the lists last sent to them.

    Changes that a caller cannot see are not announced to it.

    Args:
        digest: Returns the summary of the catalog that the definitions of the meta-tools contain.
            None if each tool is listed instead.
        max_watched: Maximum number of watched resources.
        caller: Caller of requests without an access token.
    """

    library: ResourceLibrary
    digest: Callable[[Sequence[Entity]], str] | None = None
    _: KW_ONLY
    max_watched: int = MAX_WATCHED
    caller: Caller = ANYONE

    def __post_init__(self) -> None:
        self._audiences: dict[Hashable, _Audience] = {}
        self._watches: dict[str, _Watch] = {}
        self._sessions: dict[Hashable, dict[str, End]] = {}
        self._publishing: asyncio.Task[None] | None = None
        self._connections = 0
        self._catalog_task: asyncio.Task[None] | None = None

    def _audience(self, caller: Caller) -> _Audience:
        key = self.library.registry.audience(caller)
        return self._audiences.setdefault(key, _Audience(caller))

    async def watch(self, address: str, caller: Caller = ANYONE) -> End:
        """Watch the resource at *address* for *caller*. Return a function that stops watching.

        Raises:
            InvalidRequestError: If the resource is unknown or cannot be watched, or too many are
                watched.
            UpstreamError: If the resource's server cannot be asked.
        """
        owner = await self.library.owner("resource", address, caller=caller)
        watch = self._watches.get(address)
        if watch is None or watch.owner != owner or watch.task.done():
            if len(self._watches) >= self.max_watched:
                raise InvalidRequestError(
                    f"{self.max_watched} resources are watched, the maximum; unsubscribe from some"
                )
            watch = _Watch(self.library, owner, partial(self._publish, address))
            self._watches[address] = watch
        watch.watchers += 1
        end = partial(self._end, address, watch)
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
                end = await self.watch(uri, caller_of(context))
            if uri in subscribed or self._sessions.get(session) is not subscribed:
                end()
            else:
                subscribed[uri] = end
        return types.EmptyResult()

    async def unsubscribe(
        self, context: Context, params: types.UnsubscribeRequestParams
    ) -> types.EmptyResult:
        """Answer ``resources/unsubscribe``. The resource need not be watched."""
        end = self._sessions.get(client_identity(context), {}).pop(params.uri, None)
        if end is not None:
            end()
        return types.EmptyResult()

    async def listen(
        self, context: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """Answer ``subscriptions/listen``, confirming only resources that can be watched."""
        requested, caller = params.notifications, caller_of(context)
        audience = self._audience(caller)
        ends: dict[str, End] = {}

        async def watch(uri: str) -> None:
            ends[uri] = await self.watch(uri, caller)

        try:
            uris = dict.fromkeys((requested.resource_subscriptions or [])[: self.max_watched])
            await asyncio.gather(*(attempt(watch(uri)) for uri in uris))
            promised = [uri for uri in uris if uri in ends] or None
            honored = requested.model_copy(update={"resource_subscriptions": promised})
            honored_params = params.model_copy(update={"notifications": honored})
            return await audience.listen(context, honored_params)
        finally:
            for end in ends.values():
                end()

    def _end(self, address: str, watch: _Watch) -> None:
        watch.watchers -= 1
        if not watch.watchers:
            watch.task.cancel()
            if self._watches.get(address) is watch:
                del self._watches[address]

    def _publish(self, address: str) -> None:
        self._publishing = asyncio.create_task(self._publish_update(ResourceUpdated(uri=address)))

    async def _publish_update(self, event: ResourceUpdated) -> None:
        for audience in tuple(self._audiences.values()):
            # Checked again, because the subscriber may have lost access.
            owner = self.library.owner("resource", event.uri, caller=audience.caller)
            if not isinstance(await attempt(owner), Failed):
                await audience.bus.publish(event)

    def note_list(self, kind: Kind, entities: Iterable[Entity], caller: Caller) -> None:
        """Record that *caller* was sent a list of all visible *entities* of *kind*."""
        self._audience(caller).sent[kind] = self._text(kind, entities)

    def _text(self, kind: Kind, entities: Iterable[Entity]) -> str:
        if kind == "tool" and self.digest is not None:
            return self.digest(tuple(entities))
        return _list_digest(listable(entities))

    @asynccontextmanager
    async def watch_catalog(self, _server: object) -> AsyncIterator[object]:
        """Watch the catalog during the connection, and yield the context of its requests."""
        if not self._connections:
            self._catalog_task = asyncio.create_task(self._watch(), name="list_changed")
        self._connections += 1
        try:
            yield ConnectionContext(caller=self.caller)
        finally:
            self._connections -= 1
            if not self._connections and self._catalog_task is not None:
                self._catalog_task.cancel()
                await asyncio.wait({self._catalog_task})

    def end_streams(self) -> None:
        """End all streams of ``subscriptions/listen``, and tell their clients."""
        for audience in self._audiences.values():
            audience.listen.close()

    async def _watch(self) -> None:
        changed = asyncio.Event()
        end = self.library.watch(_on_this_loop(changed.set))
        try:
            while True:
                await changed.wait()
                changed.clear()
                for audience in tuple(self._audiences.values()):
                    for kind in tuple(audience.sent):
                        await self._announce(audience, kind)
        finally:
            end()

    async def _announce(self, audience: _Audience, kind: Kind) -> None:
        entities = await attempt(self.library.entities(kind, caller=audience.caller))
        if isinstance(entities, Failed):
            return
        text = self._text(kind, entities)
        if text != audience.sent[kind]:
            audience.sent[kind] = text
            await audience.bus.publish(_EVENTS[kind])

    async def notify_session(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Middleware that sends changes to a session from its initialization on."""
        result = await call_next(ctx)
        if ctx.method != "notifications/initialized" or is_stateless(ctx):
            return result
        queue: asyncio.Queue[ServerEvent] = asyncio.Queue()
        queued = set[ServerEvent]()

        def note(event: ServerEvent) -> None:
            # A slow client gets one notification for several equal changes.
            if event not in queued:
                queued.add(event)
                queue.put_nowait(event)

        session, bus = client_identity(ctx), self._audience(caller_of(ctx)).bus
        unsubscribe = bus.subscribe(note)
        try:
            while True:
                event = await queue.get()
                queued.remove(event)
                watched = self._sessions.get(session, {})
                if not isinstance(event, ResourceUpdated) or event.uri in watched:
                    await ctx.session.send_notification(event_to_notification(event, {}))
        finally:
            unsubscribe()
            for end in self._sessions.pop(session, {}).values():
                end()


def _list_digest(entities: Iterable[Entity]) -> str:
    lines = sorted(f"{entity.exposed_name} {entity.digest}" for entity in entities)
    return hashlib.sha256("\n".join(lines).encode("utf-8", "replace")).hexdigest()
