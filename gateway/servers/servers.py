"""The sources of tools of a gateway, as its host adds and removes them.

Registering is immediate and touches no network: the next search lists and finds it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace as replaced
from pathlib import Path
from typing import Any

from gateway.catalog.visibility import without_policies
from gateway.config.manifest import names_owner
from gateway.errors import ClosedError, ConfigError, attempt, missing_plugin
from gateway.mcp.servers import api_server
from gateway.mcp.supervisor import ConnectionState
from gateway.options import AccessPolicy, CatalogOptions, Options
from gateway.options.validation import check_members
from gateway.runtime.background_loop import Bridge
from gateway.runtime.cache import Clock
from gateway.runtime.naming import check_server_name
from gateway.servers.config_files import ConfigFiles, Configured
from gateway.servers.pool import ServerPool
from gateway.servers.user_sign_ins import UserSignIns
from gateway.sources.entity_registry import EntityRegistry
from gateway.sources.entries import EntrySource
from gateway.sources.functions import FunctionSource
from gateway.sources.name_bindings import NameBindings
from gateway.sources.protocol import Function, Source, Transform
from gateway.sources.registry import Registration, Registry
from gateway.sources.virtual import Alias, VirtualServer, aliases, original_of
from gateway.storage.oauth_tokens import open_tokens
from gateway.storage.protocol import Store
from gateway.types import Access, Caller, Entity, Hints, ToolDefinition
from gateway.types.access import NO_ACCESS_RULE

LOCAL = "local"
"""The server name of Python functions."""


class Servers:
    """The sources of one gateway: functions, servers, the host's own. Safe from any thread.

    Args:
        bridge: Owns the loop of the sessions.
        store: Where listings, pins and entries are kept.
        options: Limits.
        tables: Returns what plugins register by a hook, keyed by name.
        own: Whether the host gave the store.
        clock: Seconds that only grow.

    Raises:
        ConfigError: There are policies, and no plugin enforces them.
    """

    def __init__(
        self,
        bridge: Bridge,
        store: Store,
        options: Options,
        tables: Callable[..., Mapping[str, Any]],
        *,
        own: bool,
        clock: Clock,
    ) -> None:
        self.bridge = bridge
        self.options = options
        self._has_place = own or bool(options.store or options.catalog_store_path)
        self._local = FunctionSource(LOCAL, options=options.upstream)
        visibility = tables("register_visibility").get("policies", without_policies)
        self.registry = Registry(options.catalog.rules, visibility)
        """Every source under its name."""
        self.registry.set_policies("", options.policies)
        self.entries = EntrySource(store.entries, options.upstream, options.catalog.kinds)
        """The source of the entries of the catalog."""
        self.registry.add(Registration(self.entries))
        self.pool = ServerPool(
            self.registry,
            bridge,
            store.listings,
            options,
            tokens=open_tokens(options, store),
            openers=tables("register_sources"),
            clock=clock,
        )
        """The MCP servers and virtual servers."""
        self.files = ConfigFiles()
        """The configuration files as they were read last."""
        self.entities = EntityRegistry(
            reserved=options.discovery.reserved,
            bindings=NameBindings(store.listings, self.names_owner),
        )
        """The entities that the sources list, under their exposed names."""
        self.sign_ins = UserSignIns(self.pool, bridge, self.entities)
        """The sign-ins of users to servers that are called with their credentials."""

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
        self.bridge.check_open()
        registration = self.registry.all().get(LOCAL)
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
            self.registry.mark_dirty(LOCAL)
        else:
            self.registry.add(Registration(self._local))
        return f"{LOCAL}/{tool.name}"

    def remove_tool(self, name: str) -> bool:
        """Remove a Python function; return whether it was there.

        Args:
            name: Its own name or its canonical id.
        """
        removed = self._local.remove(name.removeprefix(f"{LOCAL}/"))
        if removed:
            self.registry.mark_dirty(LOCAL)
        return removed

    def add(self, name: str, server: Configured, hints: Mapping[str, Hints] | None = None) -> None:
        """Register an MCP server or a virtual server; see `Gateway.add_server`.

        Args:
            name: How it is called here.
            server: How it is reached, and what is shown of it.
            hints: More to find its tools by, by the names that are shown.

        Raises:
            ConfigError: If the name is taken or illegal.
            ClosedError: After `close`.
        """
        self.bridge.check_open()
        self.pool.add(name, server, hints)

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
        """Register an HTTP API whose operations become tools; see `Gateway.add_server`.

        Args:
            name: How it is called here.
            document: The address or file of its OpenAPI document, in JSON.
            url: Where the API is; empty is what the document says, at the document's own host.
            headers: Sent to the API alone; keep secrets in the environment.
            hints: More to find its tools by.
            transforms: What is shown of its tools.
            access: Whether what it has may be found, and by which callers.

        Raises:
            ConfigError: If the name or an address cannot be used, or the plugin ``openapi`` is not
                loaded.
            ClosedError: After `close`.
        """
        if "openapi" not in self.pool.openers:
            raise missing_plugin("Gateway.add_openapi", "openapi")
        api = api_server(str(document), url, headers or {})
        self.add(name, Configured(target=api, transforms=tuple(transforms), access=access), hints)

    def add_virtual(
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
        table = VirtualServer(
            name=name,
            tools=aliases(tools),
            description=description,
            resources=aliases(resources or {}),
            prompts=aliases(prompts or {}),
        )
        self.add(name, Configured(target=table, access=access))

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
        self.bridge.check_open()
        members = ("server", "trusted", "list_tools", "call", "close")
        check_members("source", source, "a Source", *members)
        check_server_name(source.server)
        if itself is not None and (itself.kind, itself.name) != ("server", source.server):
            raise ConfigError(f"what describes {source.server!r} must be a server of that name")
        own = {} if hints is None else hints
        self.registry.add(
            Registration(source, own, itself=itself, access=access, limits=self.options.upstream)
        )

    async def remove(self, name: str) -> bool:
        """Remove a server and close its session; return whether it was there."""
        source = self.pool.remove(name)
        if source is None:
            return False
        if source is self._local:
            self._local = FunctionSource(LOCAL, options=self.options.upstream)
        self.files.servers.pop(name, None)
        await source.close()
        return True

    def set_rules(self, rules: Mapping[str, Access]) -> None:
        """Replace the rules of `CatalogOptions.rules`; nothing is listed anew.

        Raises:
            ClosedError: After `close`.
        """
        self.bridge.check_open()
        self.registry.set_rules("", rules)

    def set_policies(self, policies: Sequence[AccessPolicy]) -> None:
        """Replace those of `Options.policies`; nothing is listed anew.

        Raises:
            ConfigError: There are *policies*, and no plugin enforces them.
            ClosedError: After `close`.
        """
        self.bridge.check_open()
        self.registry.set_policies("", tuple(policies))

    def reread_graph(self) -> None:
        """Read the host's graph documents again before the next search; no server is listed."""
        self.registry.mark_changed()

    def states(self) -> Mapping[str, ConnectionState]:
        """Return the state of each server: idle, connecting, active, failed or closed."""
        return {name: source.live.state for name, source in tuple(self.pool.cached.items())}

    def original(self, entity: Entity) -> tuple[str, str]:
        """Return the server that has an entity, and that server's own name of it."""
        registration = self.registry.all().get(entity.server)
        return original_of(None if registration is None else registration.source, entity)

    def audience(self, caller: Caller) -> Hashable:
        """Return what callers have in common that may see the same."""
        return self.registry.audience(caller)

    def names_owner(self) -> str:
        """Return whose the names of tools are: of the files, or of the host's own place.

        Without either they last as long as the gateway: the user's cache folder is shared by
        programs that know nothing of each other.
        """
        places = [each.place for each in self.files.manifests if each.place]
        return names_owner(*places) if places or self._has_place else ""

    def catalog_options(self) -> CatalogOptions:
        """Return the limits of the catalog, with the kinds that are declared by now."""
        return replaced(self.options.catalog, kinds=self.entries.kinds)

    def mark_entries(self) -> None:
        """List the entries of the catalog again before the next search."""
        self.registry.mark_dirty(self.entries.server)

    async def recheck(self, names: Iterable[str], *, relisted: bool = False) -> None:
        """Let in what was approved just now, and what another process *relisted*."""
        self.pool.recheck(names, relisted=relisted)
        if self.entities.recheck():
            self.mark_entries()

    def take_change(self, changed: str) -> None:
        """Take in what another process changed in the store, at the next search; from any thread.

        Args:
            changed: As `WatchedStore.watch` says it.
        """
        table, _, server = changed.partition("/")
        if table in {"", "entries", "rules"}:
            self.mark_entries()
        if table in {"", "pins", "listings"}:
            names = [name for name in self.registry.all() if server in {"", name}]
            # The loop may be closed meanwhile: then no search is to come.
            with suppress(ClosedError):
                self.bridge.submit(lambda: self.recheck(names, relisted=table != "pins"))

    async def close(self) -> None:
        """Close every source."""
        registered = self.registry.all().values()
        await asyncio.gather(*(attempt(registration.source.close()) for registration in registered))
