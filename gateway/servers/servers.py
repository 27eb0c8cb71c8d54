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
"""Server name of Python functions."""


class Servers:
    """The sources of one gateway. The next search lists added ones. Safe from any thread.

    Args:
        tables: Returns the objects that plugins registered for a hook, keyed by name.
        own: True if the host passed the store.

    Raises:
        ConfigError: If there are policies, but no plugin enforces them.
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
        self.registry.set_policies("", options.policies)
        self.entries = EntrySource(store.entries, options.upstream, options.catalog.kinds)
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
        self.files = ConfigFiles()
        self.entities = EntityRegistry(
            reserved=options.discovery.reserved,
            bindings=NameBindings(store.listings, self.names_owner),
        )
        self.sign_ins = UserSignIns(self.pool, bridge, self.entities)

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
        """Add a Python function, sync or async, as a tool. Return the tool's id.

        Args:
            function: The function. Its annotations become the tool's schema.
            name: Name of the tool; None is the function's name.
            description: Description of the tool; None is the docstring.
            hints: Search terms for the tool, and hints about its behaviour.
            access: Access of callers to the tool.
            replace: If True, replace an existing function with the same name.

        Raises:
            ConfigError: If the signature cannot be called with a JSON object, or the name is taken.
            ClosedError: If the gateway was closed.
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
        """Remove the Python function with this tool name or id. Return False if missing."""
        removed = self._local.remove(name.removeprefix(f"{LOCAL}/"))
        if removed:
            self.registry.mark_dirty(LOCAL)
        return removed

    def add(self, name: str, server: Configured, hints: Mapping[str, Hints] | None = None) -> None:
        """Register an MCP server or a virtual server.

        Args:
            name: Name of the server in this gateway.
            server: Settings of the server.
            hints: Search terms for its tools, keyed by the tools' shown names.

        Raises:
            ConfigError: If the name is taken or illegal.
            ClosedError: If the gateway was closed.
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
        """Register an HTTP API. Each operation of the API becomes a tool.

        Args:
            name: Name of the server in this gateway.
            document: URL or file of the API's OpenAPI document, in JSON.
            url: Base URL of the API. "" takes it from the document, which must be on the same host.
            headers: Headers that are sent only to the API.
            hints: Search terms for the tools, keyed by the tools' shown names.
            transforms: Transforms of the tools.
            access: Access of callers to the tools.

        Raises:
            ConfigError: If the name or an address is invalid, or the plugin ``openapi`` is missing.
            ClosedError: If the gateway was closed.
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
        """Register a virtual server: tools, resources and prompts of other servers under new names.

        The other servers may be added later.

        Args:
            name: Name of the virtual server.
            tools: Originals, as ``server/tool`` or an `Alias`, keyed by the shown name.
            description: Purpose of the virtual server.
            resources: Originals, as ``server/URI`` or an `Alias`, keyed by the shown URI.
            prompts: Originals, as ``server/prompt`` or an `Alias`, keyed by the shown name.
            access: Access of callers, in addition to the access rules of the originals.

        Raises:
            ConfigError: If a name is taken or illegal.
            ClosedError: If the gateway was closed.
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
        """Register any object that implements `Source`.

        Args:
            source: The source. Its ``server`` is its name in this gateway. Unless it is
                ``trusted``, its listing is checked as for an MCP server.
            hints: Search terms for its tools, keyed by the source's own tool name.
            itself: Definition of kind ``server`` with the source's name, so that searches can find
                the source itself; None makes only its tools findable.
            access: Access of callers to its tools.

        Raises:
            ConfigError: If a member of `Source` is missing, the name is taken or illegal, or
                *itself* is another definition.
            ClosedError: If the gateway was closed.
        """
        self.bridge.check_open()
        members = ("server", "trusted", "list_tools", "call", "close")
        check_members("source", source, "a Source", *members)
        check_server_name(source.server)
        if itself is not None and (itself.kind, itself.name) != ("server", source.server):
            raise ConfigError(
                f"the definition of source {source.server!r} must be a server of the same name"
            )
        source_hints = {} if hints is None else hints
        self.registry.add(
            Registration(
                source, source_hints, itself=itself, access=access, limits=self.options.upstream
            )
        )

    async def remove(self, name: str) -> bool:
        """Remove a source and close its session. Return False if missing."""
        source = self.pool.remove(name)
        if source is None:
            return False
        if source is self._local:
            self._local = FunctionSource(LOCAL, options=self.options.upstream)
        self.files.servers.pop(name, None)
        await source.close()
        return True

    def set_rules(self, rules: Mapping[str, Access]) -> None:
        """Replace `CatalogOptions.rules`. Servers are not listed again.

        Raises:
            ClosedError: If the gateway was closed.
        """
        self.bridge.check_open()
        self.registry.set_rules("", rules)

    def set_policies(self, policies: Sequence[AccessPolicy]) -> None:
        """Replace `Options.policies`. Servers are not listed again.

        Raises:
            ConfigError: If there are *policies*, but no plugin enforces them.
            ClosedError: If the gateway was closed.
        """
        self.bridge.check_open()
        self.registry.set_policies("", tuple(policies))

    def reread_graph(self) -> None:
        """Read the host's graph documents again at the next search."""
        self.registry.mark_changed()

    def states(self) -> Mapping[str, ConnectionState]:
        """Return the state of each server's connection, keyed by server."""
        return {name: source.live.state for name, source in tuple(self.pool.cached.items())}

    def original(self, entity: Entity) -> tuple[str, str]:
        """Return the server that provides *entity*, and the name of *entity* in that server.

        Both may differ from the entity's own if a transform or a virtual server renames it.
        """
        registration = self.registry.all().get(entity.server)
        return original_of(None if registration is None else registration.source, entity)

    def audience(self, caller: Caller) -> Hashable:
        """Return a key. Callers with the same key see the same entities."""
        return self.registry.audience(caller)

    def names_owner(self) -> str:
        """Return the owner of the pins of exposed names: the configuration files, or the host's
        store.

        Without both, return "": exposed names are then not stored, because unrelated programs also
        use the user's cache folder.
        """
        places = [manifest.place for manifest in self.files.manifests if manifest.place]
        return names_owner(*places) if places or self._has_place else ""

    def catalog_options(self) -> CatalogOptions:
        """Return the catalog's options, with all kinds declared so far."""
        return replaced(self.options.catalog, kinds=self.entries.kinds)

    def mark_entries(self) -> None:
        """Make the next search list the catalog's entries again."""
        self.registry.mark_dirty(self.entries.server)

    async def recheck(self, names: Iterable[str], *, relisted: bool = False) -> None:
        """Make newly approved definitions of the servers *names* available.

        If *relisted*, also read the listings that other processes stored.
        """
        self.pool.recheck(names, relisted=relisted)
        if self.entities.recheck():
            self.mark_entries()

    def take_change(self, changed: str) -> None:
        """Apply another process's change of the store at the next search. Safe from any thread.

        *changed* is the changed part of the store (see `WatchedStore.watch`).
        """
        table, _, server = changed.partition("/")
        if table in {"", "entries", "rules"}:
            self.mark_entries()
        if table in {"", "pins", "listings"}:
            names = [name for name in self.registry.all() if server in {"", name}]
            # If the loop is closed, there is nothing to update.
            with suppress(ClosedError):
                self.bridge.submit(lambda: self.recheck(names, relisted=table != "pins"))

    async def close(self) -> None:
        """Close every source."""
        registered = self.registry.all().values()
        await asyncio.gather(*(attempt(registration.source.close()) for registration in registered))
