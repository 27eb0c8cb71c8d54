"""A virtual server as a source: its aliases, gathered from the servers behind it.

* An alias is made for one definition: when the original is another one later, a diagnostic says
  so, or the alias is left out, until that is approved. Its pin is the digest in the table or,
  without one, the digest that was seen first.
* Aliases name a server's own tools, whatever its transforms show of them: with an empty ``allow`` a
  server is reached through aliases alone.
* Resources and prompts are read where they are: an alias only says where that is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from gateway.catalog.approvals import apply_policies
from gateway.catalog.identity import definition_digest, entity_id
from gateway.errors import ClosedError, StoreError, UpstreamError
from gateway.mcp.naming import pin_key
from gateway.options import UpstreamOptions
from gateway.sources.combined import list_all
from gateway.sources.listing_store import ListingStore
from gateway.sources.protocol import Source, unknown_tool
from gateway.sources.virtual_servers import Alias, VirtualServer, resolve_alias
from gateway.types import Diagnostic, InvokeResult, JsonObject, Kind, ToolDefinition
from gateway.types.listing import Listing


@dataclass(frozen=True, slots=True, kw_only=True)
class _Item:
    """What one alias shows."""

    alias: Alias
    shown: ToolDefinition
    digest: str
    """Of the original, as its server made it."""
    former_digest: str
    """By which earlier releases pinned resources and prompts."""
    suspicions: tuple[str, ...]


class VirtualSource:
    """The items of a virtual server.

    Args:
        table: What it offers.
        sources: Returns the sources behind it as they are now, by name.
        store: Where pins are kept.
        owner: Under which name; empty is the table's fingerprint.
        options: The policies.
    """

    def __init__(
        self,
        table: VirtualServer,
        *,
        sources: Callable[[], Mapping[str, Source]],
        store: ListingStore,
        owner: str,
        options: UpstreamOptions,
    ) -> None:
        self._table = table
        self._sources = sources
        self._store = store
        self._owner = owner or table.fingerprint
        self._options = options
        self._listings: Mapping[str, Listing] = {}
        self._targets: Mapping[Kind, Mapping[str, str]] = {}
        """What may be read: ``server/name`` by alias, by kind."""
        self._doubtful = False
        self._closed = False

    @property
    def server(self) -> str:
        """The name of the virtual server."""
        return self._table.name

    @property
    def trusted(self) -> bool:
        """Whether the host wrote all definitions behind it."""
        return all(source.trusted for source in self._behind().values())

    @property
    def behind(self) -> Mapping[str, str]:
        """The server behind each of its items, by the item's id in the catalog."""
        server = self._table.name
        return {
            entity_id(kind, server, name): alias.server for kind, name, alias in self._table.items
        }

    async def list_tools(self) -> Listing:
        """Return the aliases whose original is there and as it was approved; see `Source`.

        Diagnostics say what is missing or changed.
        """
        self._check_open()
        behind = self._behind()
        self._listings = await list_all(behind, self._listings)
        items = dict(self._items())
        whole = Listing(
            tools=tuple(item.shown for item in items.values() if item.shown.kind == "tool"),
            things=tuple(item.shown for item in items.values() if item.shown.kind != "tool"),
            diagnostics=tuple(self._notes(behind, items)),
            digests={key: item.digest for key, item in items.items()},
            suspicions={key: item.suspicions for key, item in items.items() if item.suspicions},
        )
        changed = self._changed(items)
        listing = apply_policies(whole, changed, server=self.server, options=self._options)
        listing = self._compare_with_table(listing, items)
        self._targets = {
            kind: {
                item.name: items[pin_key(kind, item.name)].alias.of
                for item in listing.things
                if item.kind == kind
            }
            for kind in ("resource", "prompt")
        }
        self._doubtful = any(note.code == "tool_changed" for note in listing.diagnostics)
        return replace(listing, things=(self._entity(), *listing.things))

    async def call(self, tool: str, arguments: JsonObject, *, tool_id: str) -> InvokeResult:
        """Call what an alias stands for; see `Source.call`."""
        self._check_open()
        alias = self._table.tools.get(tool)
        if alias is None:
            return unknown_tool(tool_id, tool)
        source = self._behind().get(alias.server)
        if source is None:
            detail = f"{alias.of!r} cannot be called: no server {alias.server!r} is there"
            raise UpstreamError(self.server, detail, kind="config", sent=False)
        return await source.call(alias.name, arguments, tool_id=tool_id)

    def resolve(self, kind: Kind, name: str) -> tuple[str, str] | None:
        """Return the server of what an alias stands for, and its own name of it; None if none."""
        target = resolve_alias(self._targets.get(kind, {}), kind, name)
        if target is None:
            return None
        server, _, own = target.partition("/")
        return server, own

    async def close(self) -> None:
        """Refuse what comes later; the servers behind it stay open."""
        self._closed = True

    def recheck(self) -> bool:
        """Whether it is worth listing again, since what had changed may be approved by now."""
        return self._doubtful

    def _entity(self) -> ToolDefinition:
        """Return the virtual server as an entity, found by what it is for and what it has."""
        tools = f"Tools: {', '.join(self._table.tools)}" if self._table.tools else ""
        return ToolDefinition(
            name=self.server,
            description=f"{self._table.description} {tools}".strip(),
            kind="virtual_server",
            details={"servers": sorted(self._table.servers)},
        )

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError(f"virtual server {self.server!r} is closed; make a new one")

    def _behind(self) -> dict[str, Source]:
        servers = self._table.servers
        return {name: source for name, source in self._sources().items() if name in servers}

    def _items(self) -> Iterator[tuple[str, _Item]]:
        """Yield what each alias shows whose original is there, by its pin."""
        originals = {
            (server, item.kind, item.name): item
            for server, listing in self._listings.items()
            for item in (*listing.tools, *listing.things)
        }
        for kind, name, alias in self._table.items:
            original = originals.get((alias.server, kind, alias.name))
            if original is None:
                continue
            listing, key = self._listings[alias.server], pin_key(kind, alias.name)
            former = definition_digest(alias.server, original)
            description = alias.description or original.description
            yield (
                pin_key(kind, name),
                _Item(
                    alias=alias,
                    shown=replace(original, name=name, description=description),
                    digest=listing.digests.get(key, former),
                    former_digest=former if kind != "tool" else "",
                    suspicions=listing.suspicions.get(key, ()),
                ),
            )

    def _notes(
        self, behind: Mapping[str, Source], items: Mapping[str, _Item]
    ) -> Iterator[Diagnostic]:
        failed = set()
        for server, listing in self._listings.items():
            for note in listing.diagnostics:
                if note.code == "source_load_failed":
                    failed.add(server)
                    yield replace(note, detail=f"{self.server!r}: {note.detail}")
        for kind, name, alias in self._table.items:
            if alias.server not in behind:
                yield self._note(f"alias {name!r}: there is no server {alias.server!r}")
            elif alias.server not in failed and pin_key(kind, name) not in items:
                yield self._note(f"alias {name!r}: {alias.of!r} is not there, or is left out")

    def _note(self, detail: str) -> Diagnostic:
        detail = f"virtual server {self.server!r}: {detail}"
        return Diagnostic(stage="catalog", code="config_warning", detail=detail)

    def _changed(self, items: Mapping[str, _Item]) -> frozenset[str]:
        """Return the pins of the items that are not as they were approved."""
        unpinned = {key: item for key, item in items.items() if not item.alias.pin}
        try:
            changed = self._store.record_seen(
                self._owner, {key: item.digest for key, item in unpinned.items()}
            )
            return changed - self._move_pins({key: unpinned[key] for key in changed})
        except StoreError:
            # The listings behind say so; without a store nothing is remembered.
            return frozenset()

    def _move_pins(self, changed: Mapping[str, _Item]) -> frozenset[str]:
        """Pin by the digest of now what is as an earlier release pinned it; return those pins."""
        former = {key: item.former_digest for key, item in changed.items() if item.former_digest}
        if not former:
            return frozenset()
        moved = former.keys() - self._store.record_seen(self._owner, former)
        self._store.record_seen(self._owner, {key: changed[key].digest for key in former})
        if moved:
            self._store.approve(self._owner, sorted(moved))
        return frozenset(moved)

    def _compare_with_table(self, listing: Listing, items: Mapping[str, _Item]) -> Listing:
        """Hold *listing* against the pins in the table."""
        differ = {
            key: item
            for key, item in items.items()
            if (pin := item.alias.pin.lower()) and pin not in {item.digest, item.former_digest}
        }
        if not differ:
            return listing
        blocked = differ if self._options.on_change == "block" else {}
        end = "; it is left out" if blocked else ""

        def shown(definitions: Iterator[ToolDefinition]) -> tuple[ToolDefinition, ...]:
            return tuple(one for one in definitions if pin_key(one.kind, one.name) not in blocked)

        notes = (
            Diagnostic(
                stage="catalog",
                code="tool_changed",
                detail=f"{self.server!r}: alias {key!r} was made for another {item.alias.of!r}; "
                f"look at it, then pin {item.digest}{end}",
            )
            for key, item in differ.items()
        )
        return replace(
            listing,
            tools=shown(iter(listing.tools)),
            things=shown(iter(listing.things)),
            diagnostics=(*listing.diagnostics, *notes),
        )
