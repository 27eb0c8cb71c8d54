"""What a host registers: Python functions, MCP servers, sources of its own.

Registering is immediate and touches no network: the next search lists and finds it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from gateway.catalog.entries import Catalog, View
from gateway.errors import ConfigError, attempt
from gateway.manifests.manifest import Manifest
from gateway.mcp.servers import target_of
from gateway.mcp.supervisor import State
from gateway.options import CustomKind, Options
from gateway.registration.config_reload import Configuration, Configured, Reloaded, changes
from gateway.registration.servers import Servers
from gateway.runtime.background_loop import Bridge
from gateway.runtime.cache import Clock
from gateway.sources.entries import EntrySource
from gateway.sources.functions import LocalSource
from gateway.sources.health import Health
from gateway.sources.protocol import Function, Shape, Source
from gateway.sources.registry import Registry
from gateway.sources.virtual_servers import Alias, VirtualServer, aliases
from gateway.storage.protocol import Store
from gateway.types import Diagnostic, Hints, ToolDefinition

LOCAL = "local"
"""The server name of Python functions."""


class Sources:
    """The sources of one gateway, as its host adds and removes them. Safe from any thread."""

    def __init__(
        self,
        registry: Registry,
        bridge: Bridge,
        store: Store,
        options: Options,
        *,
        clock: Clock,
    ) -> None:
        self._registry = registry
        self._bridge = bridge
        self._options = options.upstream
        self._limits = options.catalog
        self._servers = Servers(registry, bridge, store.records, options, clock=clock)
        self._lasting = self._servers.lasting
        self._configuration = Configuration()
        self._reloading = asyncio.Lock()
        self._local = LocalSource(LOCAL, options=self._options)
        self.health = Health(
            lambda: self._lasting,
            registry.all,
            retry_s=self._options.retry_after_s,
            clock=clock,
        )
        """Which servers can be reached."""
        self.audience = self._servers.audience
        """Whom servers may ask for something."""
        self.entries = EntrySource(store.entries, self._options, options.catalog.kinds)
        """What the catalog holds besides."""
        registry.add(self.entries, {})

    def add_tool(
        self,
        function: Function,
        *,
        name: str | None = None,
        description: str | None = None,
        hints: Hints | None = None,
        replace: bool = False,
    ) -> str:
        """See `Gateway.add_tool`."""
        self._bridge.check_open()
        registration = self._registry.all().get(LOCAL)
        hints = Hints() if hints is None else hints
        if registration is not None and registration.source is not self._local:
            raise ConfigError(f"a server is called {LOCAL!r}, the name of functions: rename it")
        if replace:
            # Read it first: one that cannot be offered must not cost the one that is.
            from gateway.sources.function_schema import callee  # noqa: PLC0415  (pydantic is heavy: only who offers a function pays for it)

            told = callee(function, name=name, description=description, hints=hints)
            self._local.remove(told.definition.name)
        made = self._local.add(function, name=name, description=description, hints=hints)
        if registration is not None:
            self._registry.mark_dirty(LOCAL)
        else:
            self._registry.add(self._local, {})
        return f"{LOCAL}/{made.name}"

    def remove_tool(self, name: str) -> bool:
        """See `Gateway.remove_tool`."""
        removed = self._local.remove(name.removeprefix(f"{LOCAL}/"))
        if removed:
            self._registry.mark_dirty(LOCAL)
        return removed

    def add_server(  # noqa: PLR0913  (keyword-only options of the public API)
        self,
        name: str,
        *,
        command: str | None = None,
        args: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
        url: str | None = None,
        headers: Mapping[str, str] | None = None,
        server: object | None = None,
        hints: Mapping[str, Hints] | None = None,
        trusted: bool = False,
        shapes: Sequence[Shape] = (),
    ) -> None:
        """See `Gateway.add_server`."""
        self._bridge.check_open()
        target = target_of(
            name,
            command=command,
            args=args,
            env=env,
            cwd=cwd,
            url=url,
            headers=headers,
            server=server,
        )
        self._servers.add(
            name, target, {} if hints is None else hints, trusted=trusted, shapes=shapes
        )

    def add_virtual_server(
        self,
        name: str,
        tools: Mapping[str, str | Alias],
        *,
        description: str = "",
        resources: Mapping[str, str | Alias] | None = None,
        prompts: Mapping[str, str | Alias] | None = None,
    ) -> None:
        """See `Gateway.add_virtual_server`."""
        self._bridge.check_open()
        table = VirtualServer(
            name=name,
            tools=aliases(tools),
            description=description,
            resources=aliases(resources or {}),
            prompts=aliases(prompts or {}),
        )
        self._servers.place(name, Configured(target=table))

    def add_config(self, config: str | Path | Manifest) -> tuple[Diagnostic, ...]:
        """See `Gateway.add_config`."""
        self._bridge.check_open()
        if not isinstance(config, str | Path | Manifest):
            told = f"got {type(config).__name__}: for what is read already, parse_manifest(…)"
            raise ConfigError(f"config must be a path or a Manifest, {told}")
        from gateway.manifests.mcp_json import read_manifest  # noqa: PLC0415  (only who reads a file pays for it)

        manifest = config if isinstance(config, Manifest) else read_manifest(Path(config))
        for name, entry in self._configuration.take(manifest, self._registry).items():
            self._servers.place(name, entry)
        self._declare(self._configuration.kinds)
        return manifest.warnings

    async def reload(self) -> Reloaded:
        """See `Gateway.reload`."""
        return await self._bridge.run(self._reload)

    def add_source(
        self,
        source: Source,
        *,
        hints: Mapping[str, Hints] | None = None,
        itself: ToolDefinition | None = None,
    ) -> None:
        """See `Gateway.add_source`."""
        self._bridge.check_open()
        if itself is not None and (itself.kind, itself.name) != ("server", source.server):
            raise ConfigError(f"what describes {source.server!r} must be a server of that name")
        self._registry.add(source, {} if hints is None else hints, itself=itself)

    def catalog(self, view: Callable[[], Awaitable[View]]) -> Catalog:
        """See `Gateway.catalog`; *view* gives it as it is now."""
        return Catalog(
            self.entries.shelf,
            view,
            self.entries_changed,
            replace(self._limits, kinds=self.entries.kinds),
            self._bridge.check_open,
            self.health.held,
        )

    def entries_changed(self) -> None:
        """Have the next build read the entries anew."""
        self._registry.mark_dirty(self.entries.server)

    def states(self) -> dict[str, State]:
        """Say how the connection of each server is."""
        return {name: source.live.state for name, source in tuple(self._lasting.items())}

    def tend(self) -> None:
        """Read the tool lists anew that are old, in the background."""
        self._servers.tend()

    def expire(self) -> None:
        """Have the next build read every tool list anew."""
        for source in tuple(self._lasting.values()):
            source.expire()

    async def _reload(self) -> Reloaded:
        async with self._reloading:
            before = dict(self._configuration.servers)
            read = self._configuration.read
            after, kinds, notes = await asyncio.to_thread(read, self._registry)
            done = changes(before, after, notes)
            anew = [name for name in done.changed if before[name].target != after[name].target]
            ended = (
                self._lasting[name] for name in (*done.removed, *anew) if name in self._lasting
            )
            await asyncio.gather(*(attempt(source.close()) for source in ended))
            for name in done.removed:
                self._drop(name)
            for name in (*done.added, *done.changed):
                self._servers.become(name, after[name], anew=name in anew)
            self._configuration.servers, self._configuration.kinds = after, kinds
            self._declare(kinds)
            self._servers.recheck(done.kept)
            return done

    def _declare(self, kinds: Mapping[str, CustomKind]) -> None:
        if self.entries.declare(kinds):
            self.entries_changed()

    async def remove_server(self, name: str) -> bool:
        """Forget a server and close its session; say whether it was there."""
        source = self._drop(name)
        if source is None:
            return False
        self._configuration.servers.pop(name, None)
        await source.close()
        return True

    def _drop(self, name: str) -> Source | None:
        source = self._registry.remove(name)
        if source is self._local:
            self._local = LocalSource(LOCAL, options=self._options)
        self._servers.drop(name)
        return source

    async def close(self) -> None:
        """Close every source, all at once."""
        registered = self._registry.all().values()
        await asyncio.gather(*(attempt(each.source.close()) for each in registered))
