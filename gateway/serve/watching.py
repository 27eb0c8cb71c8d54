"""Clients are told when a resource that they watch is another one.

* Before 2026-07-28 a client subscribes in its session, since then it names resources when it opens
  its stream. Either way the server that has the resource is asked, once for all who watch it.
* A client hears of the address that it gave. What nobody watches any more is let go.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Hashable
from contextlib import suppress
from functools import partial

from mcp import types
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated

from gateway.errors import InvalidRequestError, attempt
from gateway.search.library import Library
from gateway.serve.client import Context, who
from gateway.serve.faulty import faulty
from gateway.types.listing import WatchCallbacks

MOST = 1000
"""Resources that are watched at the same time."""
End = Callable[[], None]
_Owner = tuple[str, str]


class _Watch:
    """One resource of one server, and the addresses under which it is watched."""

    def __init__(self, library: Library, owner: _Owner, tell: Callable[[str], None]) -> None:
        self.addresses: Counter[str] = Counter()
        self._tell = tell
        self._loop = asyncio.get_running_loop()
        self._began: asyncio.Future[None] = self._loop.create_future()
        heard = WatchCallbacks(began=self._here(self._begin), changed=self._here(self._change))
        self.task = asyncio.create_task(library.follow(owner, heard), name=f"watch {owner[0]}")
        self.task.add_done_callback(self._over)

    async def began(self) -> None:
        """Wait until changes are told, or raise why they never will be."""
        await asyncio.shield(self._began)

    def _here(self, work: Callable[[], None]) -> Callable[[], None]:
        def told() -> None:
            with suppress(RuntimeError):  # the loop may be closed by now
                self._loop.call_soon_threadsafe(work)

        return told

    def _begin(self) -> None:
        if not self._began.done():
            self._began.set_result(None)

    def _change(self) -> None:
        for address in tuple(self.addresses):
            self._tell(address)

    def _over(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if not self._began.done():
            self._began.cancel() if error is None else self._began.set_exception(error)
            if error is not None:
                self._began.exception()  # whoever waited may have gone


class Watching:
    """The resources that the clients of one server watch.

    Args:
        library: What there is.
        bus: Hears of changes.
        most: Resources that are watched at the same time.
    """

    def __init__(self, library: Library, bus: InMemorySubscriptionBus, *, most: int = MOST) -> None:
        self._library = library
        self._bus = bus
        self._most = most
        self._listen = ListenHandler(bus)
        self._watches: dict[_Owner, _Watch] = {}
        self._sessions: dict[Hashable, dict[str, End]] = {}
        self._telling: set[asyncio.Task[None]] = set()

    async def begin(self, address: str) -> End:
        """Watch what is at *address*; give what ends that.

        Raises:
            InvalidRequestError: There is no such thing, it cannot be watched, or too many are.
            UpstreamError: Its server could not be asked.
        """
        owner = await self._library.owner("resource", address)
        watch = self._watches.get(owner)
        if watch is None or watch.task.done():
            if len(self._watches) >= self._most:
                raise InvalidRequestError(f"{self._most} resources are watched: let go of some")
            watch = self._watches[owner] = _Watch(self._library, owner, self._told)
        watch.addresses[address] += 1
        end = partial(self._end, owner, watch, address)
        try:
            await watch.began()
        except BaseException:
            end()
            raise
        return end

    async def subscribe(
        self, context: Context, params: types.SubscribeRequestParams
    ) -> types.EmptyResult:
        """Answer ``resources/subscribe``."""
        session = who(context)
        uri = params.uri
        mine = self._sessions.setdefault(session, {})
        if uri not in mine:
            end = await faulty(self.begin(uri), {"uri": uri}, context)
            if uri in mine or self._sessions.get(session) is not mine:
                end()
            else:
                mine[uri] = end
        return types.EmptyResult()

    async def unsubscribe(
        self, context: Context, params: types.UnsubscribeRequestParams
    ) -> types.EmptyResult:
        """Answer ``resources/unsubscribe``; what is not watched is no fault."""
        end = self._sessions.get(who(context), {}).pop(params.uri, None)
        if end is not None:
            end()
        return types.EmptyResult()

    async def listen(
        self, context: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """Answer ``subscriptions/listen``: only what can be told is promised."""
        wanted = params.notifications
        ends: dict[str, End] = {}

        async def one(uri: str) -> None:
            ends[uri] = await self.begin(uri)

        try:
            asked = dict.fromkeys((wanted.resource_subscriptions or [])[: self._most])
            await asyncio.gather(*(attempt(one(uri)) for uri in asked))
            told = [uri for uri in asked if uri in ends] or None
            kept = wanted.model_copy(update={"resource_subscriptions": told})
            return await self._listen(context, params.model_copy(update={"notifications": kept}))
        finally:
            for end in ends.values():
                end()

    def of(self, context: Context) -> Collection[str]:
        """Give what the session of *context* watches."""
        return self._sessions.get(who(context), ())

    def leave(self, context: Context) -> None:
        """Let go of what the session of *context* watches."""
        for end in self._sessions.pop(who(context), {}).values():
            end()

    def _end(self, owner: _Owner, watch: _Watch, address: str) -> None:
        watch.addresses[address] -= 1
        if watch.addresses[address] <= 0:
            del watch.addresses[address]
        if not watch.addresses:
            watch.task.cancel()
            if self._watches.get(owner) is watch:
                del self._watches[owner]

    def _told(self, address: str) -> None:
        task = asyncio.create_task(self._bus.publish(ResourceUpdated(uri=address)))
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)
