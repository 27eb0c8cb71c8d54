from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from gateway.attention.changes import Change, accept_similar, find_changes
from gateway.attention.issues import Issue, IssueFinder
from gateway.catalog.approvals import COMMAND_LINE_PIN
from gateway.catalog.catalog import Catalog
from gateway.errors import Failed, InvalidRequestError, UpstreamError, UpstreamTimeoutError, attempt
from gateway.index.snapshot import IndexBuild
from gateway.mcp.servers import HttpServer, OAuth
from gateway.plugin_manager import Plugins
from gateway.runtime.background_loop import in_thread
from gateway.servers.servers import Servers
from gateway.sources.cached import CachedSource
from gateway.types import Entity, ToolDefinition
from gateway.types.listing import pin_key

_SIGN_IN_S = 600.0
"""Maximum time for a sign-in, in seconds; a person may have to look up a password."""


@dataclass(eq=False, repr=False)
class Attention:
    """Finds the issues of one gateway, and performs the actions that a person chooses.

    Each action takes effect at the next search, without a restart.

    Args:
        catalog: Stores disabled tools.
        plugins: The plugins; a plugin that failed to load is an issue.
        change: Returns a context manager that records a change of the gateway.
    """

    servers: Servers
    catalog: Catalog
    plugins: Plugins
    newest: Callable[[], Awaitable[IndexBuild]]
    change: Callable[..., AbstractAsyncContextManager[None]]
    _sign_ins: dict[str, tuple[asyncio.Task[None], asyncio.Future[str]]] = field(
        default_factory=dict, init=False
    )
    """Task of each running sign-in, and the URL for the browser, keyed by server."""

    async def issues(self, *, reports: Path | None = None) -> tuple[Issue, ...]:
        """Return all issues, the most urgent first.

        *reports* is a folder of evaluation reports. In the newest one, tools that no request found
        are issues too.

        Raises:
            ClosedError: If the gateway was closed.
        """
        build = await self.newest()
        servers, pool = self.servers, self.servers.pool
        listed = build.listed.values()
        finder = IssueFinder(
            build,
            store=pool.store,
            cached=dict(pool.cached),
            owners=pool.pin_owners(),
            names=servers.names_owner(),
            rules=servers.registry.rules.followed_by(*(each.listing.rules for each in listed)),
            options=self.servers.options.upstream,
            addresses={
                name: address.result()
                for name, (_, address) in tuple(self._sign_ins.items())
                if address.done() and not address.exception()
            },
            clock=pool.clock,
        )
        warnings = [note for file in servers.files.manifests for note in file.warnings]
        warnings += self.plugins.diagnostics
        sources = self.plugins.objects("register_issues")
        return await in_thread(finder.find, warnings, reports, sources)

    def pin(self, entity: Entity) -> tuple[str, str]:
        """Return the approved and the last seen digest of *entity*'s definition; "" if not pinned.

        Raises:
            StoreError: If the store cannot be read.
        """
        owner = self.servers.pool.pin_owners().get(entity.server)
        pins = self.servers.pool.store.pins(owner) if owner else {}
        server, own_name = self.servers.original(entity)
        name = own_name if server == entity.server else entity.name
        return pins.get(pin_key(entity.kind, name), ("", ""))

    async def approve(self, change: str, *, digest: str = "") -> None:
        """Approve a definition, command line or name as it was last seen.

        Args:
            change: The `Issue.id` of the change.
            digest: The `Issue.digest` that a person has reviewed; "" approves any.

        Raises:
            InvalidRequestError: If there is no change to approve, or it changed again after the
                review.
            StoreError: If the store cannot be read or written.
            ClosedError: If the gateway was closed.
        """
        self.servers.bridge.check_open()
        pending = {candidate.label: candidate for candidate in await in_thread(self._changes)}.get(
            change
        )
        if pending is None:
            raise InvalidRequestError(f"{change!r} has no change to approve")
        again = InvalidRequestError(f"{change!r} changed again: review it once more")
        if digest and digest != pending.after:
            raise again
        store = self.servers.pool.store
        async with self.change("approve", change, detail=pending.after):
            await in_thread(
                partial(store.approve, pending.owner, [pending.item], seen=pending.after)
            )
            pins = await in_thread(store.pins, pending.owner)
            if pins.get(pending.item, ("",))[0] != pending.after:
                raise again
        await self.servers.bridge.run(lambda: self.servers.recheck([pending.server]))

    async def accept(self, names: str) -> None:
        """Accept similar names of tools, so that they are not an issue any more.

        *names* is the `Issue.id` of the issue.

        Raises:
            InvalidRequestError: If the gateway has no store for this.
            StoreError: If the store cannot be written.
            ClosedError: If the gateway was closed.
        """
        self.servers.bridge.check_open()
        if not (owner := self.servers.names_owner()):
            raise InvalidRequestError(
                "names cannot be accepted without a store: set catalog_store_path or store"
            )
        async with self.change("accept", names):
            await in_thread(accept_similar, names, self.servers.pool.store, owner)

    async def disable(self, item: str) -> None:
        """Disable the tool, resource or prompt with the id *item*, so that callers cannot find or
        use it.

        Raises:
            InvalidRequestError: If the server does not exist.
            StoreError: If the store cannot be written.
            ClosedError: If the gateway was closed.
        """
        head, _, name = item.partition("/")
        kind, _, server = head.rpartition(":")
        if server not in self.servers.registry or not name:
            raise InvalidRequestError(f"no server has {item!r}")
        definition = ToolDefinition(name=name, kind=kind or "tool")
        entity = Entity(
            id=item, kind=definition.kind, exposed_name=item, server=server, definition=definition
        )
        await self.catalog.govern(entity, {"enabled": False})

    async def retry(self, server: str) -> None:
        """Connect to a server and list it now, regardless of earlier failures.

        Raises:
            InvalidRequestError: If the server does not exist.
            UpstreamError: If it fails again.
            UpstreamTimeoutError: If it does not answer within ``first_listing_s``. Its tools are
                added when it answers.
            ClosedError: If the gateway was closed.
        """
        if server not in self.servers.registry:
            raise InvalidRequestError(f"there is no server {server!r}")
        source = self.servers.pool.cached.get(server)
        if source is not None:
            await self.servers.bridge.run(lambda: self._retry(source))
        self.servers.registry.mark_dirty(server)

    async def sign_in(self, server: str) -> str:
        """Begin to sign in to a server (OAuth), and return the URL for a person's browser.

        The browser must run on the gateway's machine, because it is redirected to a local port. The
        gateway waits ten minutes for it, and then lists the server. The URL is "" if the server did
        not require a sign-in.

        Raises:
            InvalidRequestError: If the server does not use OAuth, or its URL is not approved.
            ConfigError: If the local port is taken.
            UpstreamError: If the sign-in cannot begin.
            ClosedError: If the gateway was closed.
        """
        source = self.servers.pool.cached.get(server)
        target = source.live.target if source is not None else None
        if not isinstance(target, HttpServer) or not isinstance(target.auth, OAuth):
            raise InvalidRequestError(
                f"server {server!r} does not use OAuth, so there is no sign-in"
            )
        changed = {
            change.item for change in await in_thread(self._changes) if change.server == server
        }
        if self.servers.options.upstream.on_change == "block" and COMMAND_LINE_PIN in changed:
            raise InvalidRequestError(f"the address of {server!r} is not the approved one")
        async with self.change("sign_in", server):
            return await self.servers.bridge.run(lambda: self._begin_sign_in(server, target))

    async def _begin_sign_in(self, server: str, target: HttpServer) -> str:
        if server not in self._sign_ins:
            address = asyncio.get_running_loop().create_future()
            task = asyncio.create_task(self._sign_in(server, target, address))
            self._sign_ins[server] = task, address
            task.add_done_callback(lambda _: self._sign_ins.pop(server))
        return await asyncio.shield(self._sign_ins[server][1])

    async def _sign_in(self, server: str, target: HttpServer, address: asyncio.Future[str]) -> None:
        from gateway.mcp.session import sign_in  # noqa: PLC0415  (mcp is heavy: a search needs none)

        limits = replace(self.servers.options.upstream, connect_timeout_s=_SIGN_IN_S)
        ended = await attempt(sign_in(server, target, limits, address.set_result))
        if not isinstance(ended, Failed):
            await attempt(self.retry(server))
        if not address.done() and isinstance(ended, Failed):
            address.set_exception(ended.error)
        elif not address.done():
            address.set_result("")

    async def _retry(self, source: CachedSource) -> None:
        limit_s = self.servers.options.upstream.first_listing_s
        source.live.supervisor.breaker.end_wait()
        source.expire()
        try:
            # One second longer than the time limit of the first listing itself.
            async with asyncio.timeout(limit_s + 1):
                await source.list_tools()
        except TimeoutError:
            source.invalidate()
            detail = f"has not answered within {limit_s:g} s; its tools are added when it answers"
            raise UpstreamTimeoutError(source.server, detail) from None
        if source.is_stale:
            fault = source.live.supervisor.fault
            raise fault or UpstreamError(source.server, "could not be listed", kind="connect")

    def _changes(self) -> tuple[Change, ...]:
        pool = self.servers.pool
        return find_changes(pool.store, pool.pin_owners(), self.servers.names_owner())
