"""The part of a gateway that registers: Python functions, MCP servers, sources of the host's own.

Registering is immediate and touches no network: the next search lists and finds it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace as replaced
from pathlib import Path

from gateway.call.gate import AccessGate
from gateway.catalog.catalog import Catalog, View
from gateway.config.manifest import names_owner
from gateway.errors import ConfigError, attempt
from gateway.mcp.servers import api_server, server_target
from gateway.mcp.supervisor import ConnectionState
from gateway.options import AccessPolicy, Options
from gateway.options.validation import check_members
from gateway.registration.config_files import ConfigFiles, Configured
from gateway.registration.servers import Servers
from gateway.registration.user_sign_ins import UserSignIns
from gateway.runtime.background_loop import Bridge
from gateway.runtime.cache import Clock
from gateway.runtime.naming import check_server_name
from gateway.sources.entity_registry import EntityRegistry
from gateway.sources.entries import EntrySource
from gateway.sources.functions import FunctionSource
from gateway.sources.name_bindings import NameBindings
from gateway.sources.protocol import Function, Source, Transform
from gateway.sources.registry import Registration, Registry
from gateway.sources.virtual import Alias, VirtualServer, aliases, original_of
from gateway.storage.oauth_tokens import open_tokens
from gateway.storage.protocol import Store
from gateway.types import Access, Entity, Hints, ToolDefinition
from gateway.types.access import NO_ACCESS_RULE

LOCAL = "local"
"""The server name of Python functions."""


class GatewaySources:
    """The sources of one gateway, as its host adds and removes them. Safe from any thread.

    Args:
        bridge: Owns the loop of the sessions.
        store: Where listings, pins and entries are kept.
        options: Limits.
        own: Whether the host gave the store.
        clock: Seconds that only grow.
    """

    gate: AccessGate
    """What stands before every call and read."""

    def __init__(
        self, bridge: Bridge, store: Store, options: Options, *, own: bool, clock: Clock
    ) -> None:
        self._bridge = bridge
        self._registry = registry = Registry(options.catalog.rules, options.policies)
        self._upstream_options = options.upstream
        self._catalog_options = options.catalog
        self._installation = options.installation
        self._servers = Servers(
            registry,
            bridge,
            store.listings,
            options,
            tokens=open_tokens(options, store),
            clock=clock,
        )
        self._config_files = ConfigFiles()
        self._entity_registry = EntityRegistry(
            reserved=options.discovery.reserved,
            bindings=NameBindings(store.listings, self._names_owner),
        )
        self.user_sign_ins = UserSignIns(self._servers, bridge, self._entity_registry)
        """The sign-ins of users to servers that are called with their credentials."""
        self._has_place = own or bool(options.store or options.catalog_store_path)
        self._local = FunctionSource(LOCAL, options=options.upstream)
        self._entries = EntrySource(store.entries, options.upstream, options.catalog.kinds)
        registry.add(Registration(self._entries))

    def add_tool(
        self,
        function: Function,
        *,
        name: str | None = None,
        description: str | None = None,
        hints: Hints | None = None,
        access: Access = NO_ACCESS_RULE,
        replace: bool = False,
    ) -> str:
        """Offer a Python function, sync or async; return its canonical id.

        Its signature, annotations and docstring become the tool's schema and description.

        Args:
            function: Every parameter must be one that a JSON object can carry.
            name: The tool's name; None is the function's own.
            description: None is the docstring's text.
            hints: What else it should be found by, and how it behaves.
            access: Whether it may be found, and by which callers.
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
        tool = self._local.add(
            function,
            name=name,
            description=description,
            hints=hints,
            access=access,
            replace=replace,
        )
        if registration is not None:
            self._registry.mark_dirty(LOCAL)
        else:
            self._registry.add(Registration(self._local))
        return f"{LOCAL}/{tool.name}"

    def remove_tool(self, name: str) -> bool:
        """Remove a Python function; return whether it was there.

        Args:
            name: Its own name or its canonical id.
        """
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
        transforms: Sequence[Transform] = (),
        access: Access = NO_ACCESS_RULE,
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
            transforms: What is shown of its tools, such as ``Filter(deny=("delete_*",))``.
            access: Whether what it has may be found, and by which callers.

        Raises:
            ConfigError: If not exactly one of the three is given, or the name is taken or
                illegal.
            ClosedError: After `close`.
        """
        self._bridge.check_open()
        reached = {"command": command, "args": args, "env": env, "cwd": cwd}
        target = server_target(name, server, {**reached, "url": url, "headers": headers})
        shown = tuple(transforms)
        entry = Configured(target=target, transforms=shown, access=access, trusted=trusted)
        self._servers.add(name, entry, hints)

    def add_openapi(  # noqa: PLR0913  (keyword-only options of the public API)
        self,
        name: str,
        document: str | Path,
        *,
        url: str = "",
        headers: Mapping[str, str] | None = None,
        hints: Mapping[str, Hints] | None = None,
        transforms: Sequence[Transform] = (),
        access: Access = NO_ACCESS_RULE,
    ) -> None:
        """Register an HTTP API whose operations become tools; see `add_server` for the rest.

        Args:
            name: How it is called here.
            document: The address or file of its OpenAPI document, in JSON.
            url: Where the API is; empty is what the document says, at the document's own host.
            headers: Sent to the API alone; keep secrets in the environment.
            hints: More to find its tools by.
            transforms: What is shown of its tools.
            access: Whether what it has may be found, and by which callers.

        Raises:
            ConfigError: If the name or an address cannot be used.
            ClosedError: After `close`.
        """
        api = api_server(str(document), url, headers or {})
        self.add_server(name, server=api, hints=hints, transforms=transforms, access=access)

    def add_virtual_server(
        self,
        name: str,
        tools: Mapping[str, str | Alias],
        *,
        description: str = "",
        resources: Mapping[str, str | Alias] | None = None,
        prompts: Mapping[str, str | Alias] | None = None,
        access: Access = NO_ACCESS_RULE,
    ) -> None:
        """Register names of your own for things of other servers, which may come later.

        Args:
            name: How it is called here.
            tools: By the name that is shown: ``server/tool``, or an `Alias` with a description.
            description: What it is for.
            resources: By the URI that is shown: ``server/URI``, or an `Alias`.
            prompts: By the name that is shown: ``server/prompt``, or an `Alias`.
            access: Whether what it has may be found, and by which callers, beside what the
                things need that it stands for.

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
        self._servers.add(name, Configured(target=table, access=access))

    def add_source(
        self,
        source: Source,
        *,
        hints: Mapping[str, Hints] | None = None,
        itself: ToolDefinition | None = None,
        access: Access = NO_ACCESS_RULE,
    ) -> None:
        """Register any source of tools: whatever lists and calls like one is one.

        Args:
            source: Its ``server`` is its name here. Unless it is ``trusted``, what it lists passes
                the limits, checks and scan of an MCP server's.
            hints: More to find its tools by, by the source's own tool name.
            itself: The source as something to be found itself: of kind ``server`` and of its name.
            access: Whether what it has may be found, and by which callers.

        Raises:
            ConfigError: If it lacks a member of a `Source`, its name is taken or illegal, or
                *itself* is something else.
            ClosedError: After `close`.
        """
        self._bridge.check_open()
        members = ("server", "trusted", "list_tools", "call", "close")
        check_members("source", source, "a Source", *members)
        check_server_name(source.server)
        if itself is not None and (itself.kind, itself.name) != ("server", source.server):
            raise ConfigError(f"what describes {source.server!r} must be a server of that name")
        own, limits = {} if hints is None else hints, self._upstream_options
        self._registry.add(Registration(source, own, itself=itself, access=access, limits=limits))

    def set_rules(self, rules: Mapping[str, Access]) -> None:
        """Replace the rules of `CatalogOptions.rules`; nothing is listed anew.

        Raises:
            ClosedError: After `close`.
        """
        self._bridge.check_open()
        self._registry.set_rules("", rules)

    def set_policies(self, policies: Sequence[AccessPolicy]) -> None:
        """Replace those of `Options.policies`; nothing is listed anew.

        Raises:
            ClosedError: After `close`.
        """
        self._bridge.check_open()
        self._registry.set_policies("", tuple(policies))

    def reread_graph(self) -> None:
        """Read the host's graph documents again before the next search; no server is listed."""
        self._registry.mark_changed()

    async def remove_server(self, name: str) -> bool:
        """Remove a server and close its session; return whether it was there."""
        source = self._drop(name)
        if source is None:
            return False
        self._config_files.servers.pop(name, None)
        await source.close()
        return True

    def server_states(self) -> Mapping[str, ConnectionState]:
        """Return the state of each server: idle, connecting, active, failed or closed."""
        return {name: source.live.state for name, source in tuple(self._servers.cached.items())}

    def original(self, entity: Entity) -> tuple[str, str]:
        """Return the server that has an entity, and that server's own name of it."""
        registration = self._registry.all().get(entity.server)
        return original_of(None if registration is None else registration.source, entity)

    def _catalog(self, view: Callable[[], Awaitable[View]]) -> Catalog:
        """Return the catalog; *view* returns it as it is now."""
        return Catalog(
            self._entries.store,
            view,
            lambda: self._registry.mark_dirty(self._entries.server),
            replaced(self._catalog_options, kinds=self._entries.kinds),
            self._bridge.check_open,
            self._servers.resolve_filters,
            self.gate.auditor,
        )

    def _expire_listings(self) -> None:
        """Make the next build read every listing anew."""
        for source in tuple(self._servers.cached.values()):
            source.expire()

    def _names_owner(self) -> str:
        """Return whose the names of tools are: of the files, or of the host's own place.

        Without either they last as long as the gateway: the user's cache folder is shared by
        programs that know nothing of each other.
        """
        places = [each.place for each in self._config_files.manifests if each.place]
        return names_owner(*places) if places or self._has_place else ""

    async def _close_sources(self) -> None:
        registered = self._registry.all().values()
        await asyncio.gather(*(attempt(registration.source.close()) for registration in registered))

    def _drop(self, name: str) -> Source | None:
        source = self._registry.remove(name)
        if source is self._local:
            self._local = FunctionSource(LOCAL, options=self._upstream_options)
        self._servers.forget(name)
        return source
