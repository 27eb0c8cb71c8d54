"""Virtual servers: servers whose items are aliases of items of other servers.

* The alias of a resource template replaces only the part before the first expression, so that each
  URI made from the alias maps to a URI of the original.
* Aliases refer to a server's own names, before its transforms. With an empty ``allow``, only the
  aliases of a server are available.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace

from gateway.catalog.approvals import apply_policies
from gateway.catalog.identity import definition_digest, entity_id
from gateway.errors import ClosedError, ConfigError, UpstreamError
from gateway.options import UpstreamOptions
from gateway.runtime.naming import MAX_URI_CHARS, check_server_name, check_tool_name
from gateway.runtime.text import is_visible
from gateway.sources.combined import list_all
from gateway.sources.listing_store import ListingStore, attempt_store
from gateway.sources.protocol import Source, unknown_tool
from gateway.sources.transforms import Key, TransformedSource, select
from gateway.types import Diagnostic, Entity, InvokeResult, JsonObject, Kind, ToolDefinition
from gateway.types.listing import Listing, pin_key

MAX_PROMPT_CHARS = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Alias:
    """An alias of a tool, a resource or a prompt.

    Example:
        >>> Alias(of="jira/get_issue", description="Read a ticket.").server
        'jira'

    Raises:
        ConfigError: If *of* does not have the form ``server/name``.
    """

    of: str
    """Reference to the original: ``server/name``, with the server's own name or URI."""
    description: str = ""
    """Description of the alias; empty uses the description of the original."""
    pin: str = ""
    """SHA-256 (hex) of the original's approved definition; empty approves the first one seen."""

    def __post_init__(self) -> None:
        if not (self.server and self.name):
            raise ConfigError(
                "an alias refers to one item of one server, written server/URI, server/prompt "
                f"or server/tool, not {self.of!r}"
            )

    @property
    def server(self) -> str:
        """Name of the original's server."""
        return self.of.partition("/")[0]

    @property
    def name(self) -> str:
        """The server's own name or URI of the original."""
        return self.of.partition("/")[2]


def aliases(table: Mapping[str, str | Alias]) -> dict[str, Alias]:
    """Return *table* with each ``server/name`` replaced by an `Alias`."""
    return {name: Alias(of=of) if isinstance(of, str) else of for name, of in table.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class VirtualServer:
    """Definition of a virtual server.

    Example:
        >>> VirtualServer(name="work", tools={"ticket": Alias(of="jira/get_issue")}).servers
        frozenset({'jira'})

    Raises:
        ConfigError: If a name is not valid.
    """

    name: str
    tools: Mapping[str, Alias]
    """Aliases of tools, keyed by exposed name, in the order of the listing."""
    description: str = ""
    resources: Mapping[str, Alias] = field(default_factory=dict)
    """Aliases of resources, keyed by exposed URI.

    The alias of a URI template must have the same ending as the original template.
    """
    prompts: Mapping[str, Alias] = field(default_factory=dict)
    """Aliases of prompts, keyed by exposed name."""

    def __post_init__(self) -> None:
        check_server_name(self.name)
        for (kind, name), alias in self.items.items():
            _check_alias(kind, name, alias.name)

    @property
    def items(self) -> dict[Key, Alias]:
        """All aliases, keyed by kind and exposed name."""
        tables = {"tool": self.tools, "resource": self.resources, "prompt": self.prompts}
        return {
            (kind, name): alias for kind, table in tables.items() for name, alias in table.items()
        }

    @property
    def servers(self) -> frozenset[str]:
        """Names of the originals' servers."""
        return frozenset(alias.server for alias in self.items.values())

    @property
    def fingerprint(self) -> str:
        """SHA-256 (hex) of the aliases, the default owner of the approvals."""
        tools = {name: alias.of for name, alias in self.tools.items()}
        others = [[*key, alias.of] for key, alias in self.items.items() if key[0] != "tool"]
        return hashlib.sha256(json.dumps([self.name, tools, *others]).encode()).hexdigest()


def _check_alias(kind: Kind, name: str, of: str) -> None:
    """Raise `ConfigError` if *name* is not a valid alias of the original *of*."""
    if kind == "tool":
        check_tool_name(name)
        return
    longest = MAX_URI_CHARS if kind == "resource" else MAX_PROMPT_CHARS
    if not name.strip() or len(name) > longest or not is_visible(name):
        raise ConfigError(
            f"{kind} name {name!r} cannot be used: use 1 to {longest} visible characters"
        )
    if kind == "resource" and ":" not in name:
        raise ConfigError(f"the alias of a resource is a URI such as 'docs:today', not {name!r}")
    if kind == "resource" and name[len(_fixed_part(name)) :] != of[len(_fixed_part(of)) :]:
        raise ConfigError(
            f"template {name!r} must end as {of!r} does, from its first expression on"
        )


def _fixed_part(template: str) -> str:
    return template.partition("{")[0]


@dataclass(eq=False, repr=False)
class VirtualSource:
    """Source of the items of a virtual server.

    Args:
        sources: Returns the current sources of the gateway, keyed by name.
        owner: Owner of the approvals; empty uses the fingerprint of *table*.
        options: Policies for changed and suspicious definitions.
    """

    table: VirtualServer
    _: KW_ONLY
    sources: Callable[[], Mapping[str, Source]]
    store: ListingStore
    owner: str
    options: UpstreamOptions

    def __post_init__(self) -> None:
        self.server = self.table.name
        self.pin_owner = self.owner or self.table.fingerprint
        self._listings: Mapping[str, Listing] = {}
        self._visible_listing = Listing()
        self._closed = False

    @property
    def trusted(self) -> bool:
        """True if the host wrote all original definitions."""
        return all(source.trusted for source in self._original_sources().values())

    @property
    def behind(self) -> Mapping[str, str]:
        """Server of each original, keyed by the alias's catalog id."""
        return {
            entity_id(kind, self.server, name): alias.server
            for (kind, name), alias in self.table.items.items()
        }

    async def list_tools(self) -> Listing:
        """Return the aliases whose originals exist and are approved, with diagnostics of the
        others.
        """
        self._check_open()
        behind, items = self._original_sources(), self.table.items
        self._listings = await list_all(behind, self._listings)
        owners = {key: (alias.server, alias.name) for key, alias in items.items()}
        listing = select(self._listings, owners)
        definitions, digests = [], dict(listing.digests)
        for item in listing.definitions:
            alias, key = items[item.kind, item.name], pin_key(item.kind, item.name)
            if key not in digests:
                digests[key] = definition_digest(alias.server, replace(item, name=alias.name))
            definitions.append(replace(item, description=alias.description or item.description))
        whole = replace(
            listing,
            definitions=definitions,
            digests=digests,
            diagnostics=tuple(self._notes(behind, digests)),
            originals={pin_key(*key): owner for key, owner in owners.items()},
        )
        changed = self._changed_items(digests)
        self._visible_listing = apply_policies(
            whole, changed, server=self.server, options=self.options
        )
        return replace(
            self._visible_listing, definitions=(self._entity(), *self._visible_listing.definitions)
        )

    async def call(self, tool: str, arguments: JsonObject, *, tool_id: str) -> InvokeResult:
        """Call the original of the alias *tool*. See `Source.call`."""
        self._check_open()
        alias = self.table.tools.get(tool)
        if alias is None:
            return unknown_tool(tool_id, tool)
        source = self._original_sources().get(alias.server)
        if source is None:
            detail = f"{alias.of!r} cannot be called: server {alias.server!r} was not found"
            raise UpstreamError(self.server, detail, kind="config", sent=False)
        return await source.call(alias.name, arguments, tool_id=tool_id)

    def resolve(self, kind: Kind, name: str) -> tuple[str, str] | None:
        """Return the server and the original name of the item exposed as *name*; None if unknown.

        *kind* is ``resource`` or ``prompt``. *name* may be a URI made from an alias of a template.
        """
        aliases = {
            item.name: self.table.items[kind, item.name]
            for item in self._visible_listing.definitions
            if item.kind == kind
        }
        if name in aliases:
            return aliases[name].server, aliases[name].name
        templates = [
            exposed
            for exposed in aliases
            if kind == "resource" and "{" in exposed and name.startswith(_fixed_part(exposed))
        ]
        if not templates:
            return None
        template = max(templates, key=lambda exposed: len(_fixed_part(exposed)))
        alias = aliases[template]
        return alias.server, _fixed_part(alias.name) + name.removeprefix(_fixed_part(template))

    async def close(self) -> None:
        """Refuse further calls. The originals' servers stay open."""
        self._closed = True

    def recheck(self) -> bool:
        """Return whether to list again, as changes may be approved now."""
        return any(note.code == "tool_changed" for note in self._visible_listing.diagnostics)

    def _entity(self) -> ToolDefinition:
        return ToolDefinition(
            name=self.server,
            description=self.table.description,
            kind="virtual_server",
            details={"servers": sorted(self.table.servers), "tools": list(self.table.tools)},
        )

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError(f"virtual server {self.server!r} is closed; make a new one")

    def _original_sources(self) -> dict[str, Source]:
        servers = self.table.servers
        return {name: source for name, source in self.sources().items() if name in servers}

    def _notes(
        self, behind: Mapping[str, Source], digests: Mapping[str, str]
    ) -> Iterator[Diagnostic]:
        failed = set()
        for server, listing in self._listings.items():
            for note in listing.diagnostics:
                if note.code == "source_load_failed":
                    failed.add(server)
                    yield replace(note, detail=f"{self.server!r}: {note.detail}")
        for (kind, name), alias in self.table.items.items():
            if alias.server not in behind:
                reason = f"server {alias.server!r} was not found"
            elif alias.server not in failed and pin_key(kind, name) not in digests:
                reason = (
                    f"{alias.of!r} was not found: its server does not offer it, or a rule leaves "
                    "it out; correct the alias"
                )
            else:
                continue
            detail = f"virtual server {self.server!r}: alias {name!r}: {reason}"
            yield Diagnostic(stage="catalog", code="config_warning", detail=detail)

    def _changed_items(self, digests: Mapping[str, str]) -> dict[str, str]:
        """Return the aliases whose originals differ from their approval, keyed by `pin_key`.

        The value is the remedy: the new digest for an alias with a *pin*; empty for an approval.
        """
        pins = {
            pin_key(*key): alias.pin.lower() for key, alias in self.table.items.items() if alias.pin
        }
        changed = {
            key: f"pin {digests[key]}" for key, pin in pins.items() if digests.get(key, pin) != pin
        }
        unpinned = {key: digest for key, digest in digests.items() if key not in pins}
        # The listings of the original servers report a failing store.
        changed_names, _ = attempt_store(
            lambda: self.store.record_seen(self.pin_owner, unpinned),
            frozenset(unpinned if self.options.on_change == "block" else ()),
        )
        return changed | dict.fromkeys(changed_names, "")


def original_of(source: Source | None, entity: Entity) -> tuple[str, str]:
    """Return the server and name of *entity* before transforms and aliases of *source*.

    Raises:
        InvalidRequestError: If a transform no longer exposes the entity.
    """
    if isinstance(source, VirtualSource):
        alias = source.table.items.get((entity.kind, entity.name))
        return (alias.server, alias.name) if alias else (entity.server, entity.name)
    if isinstance(source, TransformedSource):
        return entity.server, source.original_name(entity.kind, entity.name)
    return entity.server, entity.name
