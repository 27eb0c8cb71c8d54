"""Virtual servers: names for items of other servers, each with its own text.

* A resource's alias is a URI of one's own, a prompt's a name. The alias of a template ends as the
  template does, from its first expression on: what stands before that is exchanged, so that every
  URI that is made of one leads to one of the other.
* An alias is made for one definition: when the original is another one later, a diagnostic says
  so, or the alias is left out, until that is approved. Its pin is the digest in the table or,
  without one, the digest that was seen first.
* Aliases name a server's own tools, whatever its transforms show of them: with an empty ``allow`` a
  server is reached through aliases alone.
* Resources and prompts are read where they are: an alias only says where that is.
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
    """Another name for a tool, a resource or a prompt.

    Raises:
        ConfigError: *of* is no ``server/name``.
    """

    of: str
    """The item: ``server/name``, by the server's own name or URI of it."""
    description: str = ""
    """Shown instead of its own; empty leaves that."""
    pin: str = ""
    """SHA-256 (hex) of the definition that it was made for; empty pins the first one seen."""

    def __post_init__(self) -> None:
        """Check what it stands for."""
        if not (self.server and self.name):
            raise ConfigError(
                "an alias stands for one thing of one server, written server/URI, server/prompt "
                f"or server/tool, not {self.of!r}"
            )

    @property
    def server(self) -> str:
        """The server that has the item."""
        return self.of.partition("/")[0]

    @property
    def name(self) -> str:
        """The server's own name of it."""
        return self.of.partition("/")[2]


def aliases(table: Mapping[str, str | Alias]) -> dict[str, Alias]:
    """Return the aliases of *table*, where a text is one of ``server/name``."""
    return {name: Alias(of=of) if isinstance(of, str) else of for name, of in table.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class VirtualServer:
    """What a virtual server offers.

    Raises:
        ConfigError: A name cannot be used.
    """

    name: str
    tools: Mapping[str, Alias]
    """By the name that is shown, in their order."""
    description: str = ""
    resources: Mapping[str, Alias] = field(default_factory=dict)
    """By the URI that is shown; a template by a template that ends as it does."""
    prompts: Mapping[str, Alias] = field(default_factory=dict)
    """By the name that is shown."""

    def __post_init__(self) -> None:
        """Check the names."""
        check_server_name(self.name)
        for (kind, name), alias in self.items.items():
            _check_alias(kind, name, alias.name)

    @property
    def items(self) -> dict[Key, Alias]:
        """What it shows, by the kind and the name that is shown."""
        tables = {"tool": self.tools, "resource": self.resources, "prompt": self.prompts}
        return {
            (kind, name): alias for kind, table in tables.items() for name, alias in table.items()
        }

    @property
    def servers(self) -> frozenset[str]:
        """The servers whose items it shows."""
        return frozenset(alias.server for alias in self.items.values())

    @property
    def fingerprint(self) -> str:
        """SHA-256 (hex) of its table."""
        tools = {name: alias.of for name, alias in self.tools.items()}
        others = [[*key, alias.of] for key, alias in self.items.items() if key[0] != "tool"]
        return hashlib.sha256(json.dumps([self.name, tools, *others]).encode()).hexdigest()


def _check_alias(kind: Kind, name: str, of: str) -> None:
    """Raise `ConfigError` for a name by which nothing could be called or read."""
    if kind == "tool":
        check_tool_name(name)
        return
    longest = MAX_URI_CHARS if kind == "resource" else MAX_PROMPT_CHARS
    if not name.strip() or len(name) > longest or not is_visible(name):
        raise ConfigError(
            f"{kind} name {name!r} cannot be used: take 1 to {longest} characters that can be seen"
        )
    if kind == "resource" and ":" not in name:
        raise ConfigError(f"the alias of a resource is a URI such as 'docs:today', not {name!r}")
    if kind == "resource" and name[len(_head(name)) :] != of[len(_head(of)) :]:
        raise ConfigError(
            f"template {name!r} must end as {of!r} does, from its first expression on"
        )


def _head(template: str) -> str:
    return template.partition("{")[0]


@dataclass(eq=False, repr=False)
class VirtualSource:
    """The items of a virtual server.

    Args:
        table: What it offers.
        sources: Returns the sources behind it as they are now, by name.
        store: Where pins are kept.
        owner: Under which name; empty is the table's fingerprint.
        options: The policies.
    """

    table: VirtualServer
    _: KW_ONLY
    sources: Callable[[], Mapping[str, Source]]
    store: ListingStore
    owner: str
    options: UpstreamOptions

    def __post_init__(self) -> None:
        """Begin with nothing listed."""
        self.server = self.table.name
        self.pin_owner = self.owner or self.table.fingerprint
        self._listings: Mapping[str, Listing] = {}
        self._shown = Listing()
        self._closed = False

    @property
    def trusted(self) -> bool:
        """Whether the host wrote all definitions behind it."""
        return all(source.trusted for source in self._behind().values())

    @property
    def behind(self) -> Mapping[str, str]:
        """The server behind each of its items, by the item's id in the catalog."""
        return {
            entity_id(kind, self.server, name): alias.server
            for (kind, name), alias in self.table.items.items()
        }

    async def list_tools(self) -> Listing:
        """Return the aliases whose original is there and as it was approved; see `Source`.

        Diagnostics say what is missing or changed.
        """
        self._check_open()
        behind, items = self._behind(), self.table.items
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
        changed = self._changed(digests)
        self._shown = apply_policies(whole, changed, server=self.server, options=self.options)
        return replace(self._shown, definitions=(self._entity(), *self._shown.definitions))

    async def call(self, tool: str, arguments: JsonObject, *, tool_id: str) -> InvokeResult:
        """Call what an alias stands for; see `Source.call`."""
        self._check_open()
        alias = self.table.tools.get(tool)
        if alias is None:
            return unknown_tool(tool_id, tool)
        source = self._behind().get(alias.server)
        if source is None:
            detail = f"{alias.of!r} cannot be called: no server {alias.server!r} is there"
            raise UpstreamError(self.server, detail, kind="config", sent=False)
        return await source.call(alias.name, arguments, tool_id=tool_id)

    def resolve(self, kind: Kind, name: str) -> tuple[str, str] | None:
        """Return the server of what is shown as *name*, and its own name of it; None if none.

        Args:
            kind: ``resource`` or ``prompt``.
            name: An alias, or a URI that was made of the alias of a template.
        """
        aliases = {
            item.name: self.table.items[kind, item.name]
            for item in self._shown.definitions
            if item.kind == kind
        }
        if name in aliases:
            return aliases[name].server, aliases[name].name
        templates = [
            shown
            for shown in aliases
            if kind == "resource" and "{" in shown and name.startswith(_head(shown))
        ]
        if not templates:
            return None
        template = max(templates, key=lambda shown: len(_head(shown)))
        alias = aliases[template]
        return alias.server, _head(alias.name) + name.removeprefix(_head(template))

    async def close(self) -> None:
        """Refuse what comes later; the servers behind it stay open."""
        self._closed = True

    def recheck(self) -> bool:
        """Whether it is worth listing again, since what had changed may be approved by now."""
        return any(note.code == "tool_changed" for note in self._shown.diagnostics)

    def _entity(self) -> ToolDefinition:
        """Return the virtual server as an entity, found by what it is for and what it has."""
        return ToolDefinition(
            name=self.server,
            description=self.table.description,
            kind="virtual_server",
            details={"servers": sorted(self.table.servers), "tools": list(self.table.tools)},
        )

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError(f"virtual server {self.server!r} is closed; make a new one")

    def _behind(self) -> dict[str, Source]:
        servers = self.table.servers
        return {name: source for name, source in self.sources().items() if name in servers}

    def _notes(
        self, behind: Mapping[str, Source], digests: Mapping[str, str]
    ) -> Iterator[Diagnostic]:
        """Yield what could not be listed, and what is missing."""
        failed = set()
        for server, listing in self._listings.items():
            for note in listing.diagnostics:
                if note.code == "source_load_failed":
                    failed.add(server)
                    yield replace(note, detail=f"{self.server!r}: {note.detail}")
        for (kind, name), alias in self.table.items.items():
            if alias.server not in behind:
                reason = f"there is no server {alias.server!r}"
            elif alias.server not in failed and pin_key(kind, name) not in digests:
                reason = f"{alias.of!r} is not there, or is left out"
            else:
                continue
            detail = f"virtual server {self.server!r}: alias {name!r}: {reason}"
            yield Diagnostic(stage="catalog", code="config_warning", detail=detail)

    def _changed(self, digests: Mapping[str, str]) -> dict[str, str]:
        """Return what to do about each item that is not as it was approved, by its pin."""
        pins = {
            pin_key(*key): alias.pin.lower() for key, alias in self.table.items.items() if alias.pin
        }
        changed = {
            key: f"pin {digests[key]}" for key, pin in pins.items() if digests.get(key, pin) != pin
        }
        unpinned = {key: digest for key, digest in digests.items() if key not in pins}
        # The listings behind say whether the store failed.
        seen, _ = attempt_store(
            lambda: self.store.record_seen(self.pin_owner, unpinned),
            frozenset(unpinned if self.options.on_change == "block" else ()),
        )
        return changed | dict.fromkeys(seen, "")


def original_of(source: Source | None, entity: Entity) -> tuple[str, str]:
    """Return the server that has an entity of *source*, and that server's own name of it.

    Neither transforms nor aliases of virtual servers count.

    Raises:
        InvalidRequestError: The source shows it no longer.
    """
    if isinstance(source, VirtualSource):
        alias = source.table.items.get((entity.kind, entity.name))
        return (alias.server, alias.name) if alias else (entity.server, entity.name)
    if isinstance(source, TransformedSource):
        return entity.server, source.original_name(entity.kind, entity.name)
    return entity.server, entity.name
