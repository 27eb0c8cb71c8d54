"""What a host registers: Python functions, MCP servers, sources of its own.

Registering is immediate and touches no network: the next search lists and finds it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

from gateway.bridge import Bridge
from gateway.cache import Clock
from gateway.catalog.configured import Configuration, Configured, Reloaded, changes
from gateway.catalog.entrystore import EntrySource
from gateway.catalog.health import Health
from gateway.catalog.manifests import Manifest, read_manifest
from gateway.catalog.refresh import Registry
from gateway.catalog.standing import Servers
from gateway.catalog.store import Store
from gateway.catalog.virtual import Alias, VirtualServer, aliases
from gateway.config import Options
from gateway.errors import ConfigError, attempt
from gateway.limits import CustomKind
from gateway.types import Diagnostic, Hints, ToolDefinition
from gateway.upstream.local import LocalSource
from gateway.upstream.servers import target_of
from gateway.upstream.shapes import Shape
from gateway.upstream.source import Function, Source
from gateway.upstream.supervisor import State

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
        """Offer a Python function, sync or async, and give its canonical id.

        Its signature, annotations and docstring become the tool's schema and description.

        Args:
            function: Every parameter must be one that a JSON object can carry.
            name: The tool's name; None is the function's own.
            description: None is the docstring's text.
            hints: What else it should be found by, and how it behaves.
            replace: Take the place of a tool of the same name.

        Raises:
            ConfigError: If the signature cannot be called with a JSON object, or the name is
                taken.
            ClosedError: After `close`.
        """
        self._bridge.check_open()
        registration = self._registry.all().get(LOCAL)
        hints = Hints() if hints is None else hints
        if registration is not None and registration.source is not self._local:
            raise ConfigError(f"a server is called {LOCAL!r}, the name of functions: rename it")
        if replace:
            # Read it first: one that cannot be offered must not cost the one that is.
            from gateway.upstream.schema import callee  # noqa: PLC0415  (pydantic is heavy: only who offers a function pays for it)

            told = callee(function, name=name, description=description, hints=hints)
            self._local.remove(told.definition.name)
        made = self._local.add(function, name=name, description=description, hints=hints)
        if registration is not None:
            self._registry.touch(LOCAL)
        else:
            self._registry.add(self._local, {})
        return f"{LOCAL}/{made.name}"

    def remove_tool(self, name: str) -> bool:
        """Take a Python function away again; say whether it was there.

        Args:
            name: Its own name or its canonical id.
        """
        removed = self._local.remove(name.removeprefix(f"{LOCAL}/"))
        if removed:
            self._registry.touch(LOCAL)
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
        """Register an MCP server; it is started or called when something needs its tools.

        Give one of *command* (a child process over stdio), *url* (streamable HTTP) or *server*
        (a server object of the mcp package in this process).

        Args:
            name: How it is called here: at most 64 characters of ``[A-Za-z0-9_.-]``.
            command: The program, run without a shell.
            args: Its arguments.
            env: Added to a safe base environment.
            cwd: Its working folder.
            url: Where it listens.
            headers: Sent with every request; keep secrets in the environment.
            server: The object itself, or a `HttpServer` that signs in.
            hints: More to find its tools by, by the names that are shown.
            trusted: Whether the host stands in for what it says of its tools.
            shapes: What is shown of its tools, such as ``Filter(deny=("delete_*",))``.

        Raises:
            ConfigError: If not exactly one of the three is given, or the name is taken or
                illegal.
            ClosedError: After `close`.
        """
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
        """Register names of your own for things of other servers, which may come later.

        Args:
            name: How it is called here.
            tools: By the name that is shown: ``server/tool``, or an `Alias` with a description.
            description: What it is for.
            resources: By the URI that is shown: ``server/URI``, or an `Alias`.
            prompts: By the name that is shown: ``server/prompt``, or an `Alias`.

        Raises:
            ConfigError: If a name is taken or illegal.
            ClosedError: After `close`.
        """
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
        """Register the servers of an ``mcp.json``, and give what was odd about it.

        Raises:
            ConfigError: If the file cannot be read as one, or a server's name is taken.
            ClosedError: After `close`.
        """
        self._bridge.check_open()
        if not isinstance(config, str | Path | Manifest):
            told = f"got {type(config).__name__}: for what is read already, parse_manifest(…)"
            raise ConfigError(f"config must be a path or a Manifest, {told}")
        manifest = config if isinstance(config, Manifest) else read_manifest(Path(config))
        for name, entry in self._configuration.take(manifest, self._registry).items():
            self._servers.place(name, entry)
        self._declare(self._configuration.kinds)
        return manifest.warnings

    async def reload(self) -> Reloaded:
        """Read the configuration files again, and become what they say.

        What did not change keeps its session, and what was approved meanwhile is let in again.

        Raises:
            ConfigError: A file cannot be used; everything is as it was.
            ClosedError: After `close`.
        """
        return await self._bridge.run(self._reload)

    def add_source(
        self,
        source: Source,
        *,
        hints: Mapping[str, Hints] | None = None,
        itself: ToolDefinition | None = None,
    ) -> None:
        """Register any source of tools: whatever lists and calls like one is one.

        Args:
            source: Its ``server`` is its name here.
            hints: More to find its tools by, by the source's own tool name.
            itself: The source as something to be found itself: of kind ``server`` and of its name.

        Raises:
            ConfigError: If the name is taken, or *itself* is something else.
            ClosedError: After `close`.
        """
        self._bridge.check_open()
        if itself is not None and (itself.kind, itself.name) != ("server", source.server):
            raise ConfigError(f"what describes {source.server!r} must be a server of that name")
        self._registry.add(source, {} if hints is None else hints, itself=itself)

    def entries_changed(self) -> None:
        """Have the next build read the entries anew."""
        self._registry.touch(self.entries.server)

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
