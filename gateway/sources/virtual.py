"""A virtual server as a source: its aliases, gathered from the servers behind it.

* An alias is made for one definition: when the original is another one later, that is told, or the
  alias left out, until somebody approves it. Its pin is the digest in the table or, without one,
  the digest that was seen first.
* Aliases name a server's own tools, whatever its shapes show of them: with an empty ``allow`` a
  server is reached through aliases alone.
* Resources and prompts are read where they are: an alias only says where that is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from gateway.catalog.approvals import apply_policies
from gateway.catalog.identity import canonical_id, definition_digest
from gateway.catalog.resource_uris import entity_id
from gateway.errors import ClosedError, StoreError, UpstreamError
from gateway.mcp.naming import pin_key
from gateway.options import UpstreamOptions
from gateway.sources.aliases import meant, shown_as
from gateway.sources.combined import list_all, merge_listings
from gateway.sources.listing_store import ListingStore
from gateway.sources.protocol import Source, unknown_tool
from gateway.sources.virtual_servers import Alias, VirtualServer
from gateway.types import Diagnostic, InvokeResult, JsonObject, Kind, ToolDefinition
from gateway.types.listing import Listing


class VirtualSource:
    """The tools of a virtual server.

    Args:
        table: What it offers.
        sources: Gives the sources behind it as they are now, by name.
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
        things = {pin_key(kind, name): alias for kind, name, alias in table.things}
        self._every: Mapping[str, Alias] = {**table.tools, **things}
        """Every alias, as its pin is called."""
        self._formerly: Mapping[str, str] = {}
        """What earlier releases pinned resources and prompts by, as their pins are called."""
        self._places: Mapping[Kind, Mapping[str, str]] = {}
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
        """The server behind each of its things, by its id in the catalog."""
        name, things = self._table.name, self._table.things
        found = {canonical_id(name, key): each.server for key, each in self._table.tools.items()}
        return found | {entity_id(kind, name, key): alias.server for kind, key, alias in things}

    async def list_tools(self) -> Listing:
        """Give the aliases whose tool is there and as it was approved; see `Source.list_tools`.

        What is missing or changed is told.
        """
        self._check_open()
        behind = self._behind()
        self._listings = await list_all(behind, self._listings)
        whole = merge_listings(
            {
                ("tool", name): (alias.server, alias.name)
                for name, alias in self._table.tools.items()
            },
            self._listings,
            tuple(self._notes(behind)),
        )
        whole = self._with_things(whole)
        changed = self._changed(whole.digests)
        seen = apply_policies(whole, changed, server=self.server, options=self._options)
        shown = self._described(self._as_pinned(seen))
        left = {pin_key(thing.kind, thing.name) for thing in shown.things}
        self._places = {
            kind: {
                name: alias.of
                for each, name, alias in self._table.things
                if each == kind and pin_key(kind, name) in left
            }
            for kind in ("resource", "prompt")
        }
        shown = replace(shown, things=(self._itself(), *shown.things))
        self._doubtful = any(note.code == "tool_changed" for note in shown.diagnostics)
        return shown

    async def call(self, tool: str, arguments: JsonObject, *, tool_id: str) -> InvokeResult:
        """Call what an alias stands for; see `Source.call`."""
        self._check_open()
        alias = self._table.tools.get(tool)
        if alias is None:
            return unknown_tool(tool_id, tool)
        source = self._behind().get(alias.server)
        if source is None:
            told = f"{alias.of!r} cannot be called: no server {alias.server!r} is there"
            raise UpstreamError(self.server, told, kind="config", sent=False)
        return await source.call(alias.name, arguments, tool_id=tool_id)

    def meant(self, kind: Kind, name: str) -> tuple[str, str] | None:
        """Give the server of what an alias stands for, and its own name of it; None if nothing."""
        found = meant(self._places.get(kind, {}), kind, name)
        if found is None:
            return None
        server, _, own = found.partition("/")
        return server, own

    async def close(self) -> None:
        """Refuse what comes later; the servers behind it stay open."""
        self._closed = True

    def _itself(self) -> ToolDefinition:
        """Give the virtual server as an entity, to be found by what it is for and what it has."""
        tools = f"Tools: {', '.join(self._table.tools)}" if self._table.tools else ""
        told = f"{self._table.description} {tools}".strip()
        behind = {"servers": sorted(self._table.servers)}
        return ToolDefinition(
            name=self.server, description=told, kind="virtual_server", details=behind
        )

    def recheck(self) -> bool:
        """Say whether it is worth listing again, since what had changed may be approved by now."""
        return self._doubtful

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError(f"virtual server {self.server!r} is closed; make a new one")

    def _behind(self) -> dict[str, Source]:
        wanted = self._table.servers
        return {name: each for name, each in self._sources().items() if name in wanted}

    def _notes(self, behind: Mapping[str, Source]) -> Iterator[Diagnostic]:
        failed = set()
        for name, listing in self._listings.items():
            for note in listing.diagnostics:
                if note.code == "source_load_failed":
                    failed.add(name)
                    yield replace(note, detail=f"{self.server!r}: {note.detail}")
        tools = (("tool", name, alias) for name, alias in self._table.tools.items())
        for kind, name, alias in (*tools, *self._table.things):
            if alias.server not in behind:
                yield self._note(f"alias {name!r}: there is no server {alias.server!r}")
            elif alias.server not in failed and not self._has(kind, alias):
                yield self._note(f"alias {name!r}: {alias.of!r} is not there, or is left out")

    def _note(self, detail: str) -> Diagnostic:
        told = f"virtual server {self.server!r}: {detail}"
        return Diagnostic(stage="catalog", code="config_warning", detail=told)

    def _has(self, kind: str, alias: Alias) -> bool:
        listing = self._listings[alias.server]
        offered = listing.tools if kind == "tool" else listing.things
        return any(each.kind == kind and each.name == alias.name for each in offered)

    def _with_things(self, whole: Listing) -> Listing:
        """Give *whole* with resources and prompts, and with the digest of everything."""
        found = {
            pin_key(kind, name): (alias, *each)
            for kind, name, alias in self._table.things
            if alias.server in self._listings
            for each in shown_as(
                kind, name, alias.description, self._listings[alias.server], alias.name
            )
        }
        digests = {tool.name: self._digest(tool.name) for tool in whole.tools}
        self._formerly = {
            key: definition_digest(alias.server, original)
            for key, (alias, _, original, _) in found.items()
        }
        of_things = {
            key: self._listings[alias.server].digests.get(
                pin_key(original.kind, original.name), self._formerly[key]
            )
            for key, (alias, _, original, _) in found.items()
        }
        doubts = {key: reasons for key, (_, _, _, reasons) in found.items() if reasons}
        return replace(
            whole,
            things=tuple(shown for _, shown, _, _ in found.values()),
            digests={**digests, **whole.digests, **of_things},
            suspicions={**whole.suspicions, **doubts},
        )

    def _digest(self, name: str) -> str:
        alias = self._table.tools[name]
        tools = self._listings[alias.server].tools
        (original,) = (tool for tool in tools if tool.name == alias.name)
        return definition_digest(alias.server, original)

    def _changed(self, digests: Mapping[str, str]) -> frozenset[str]:
        free = {name: each for name, each in digests.items() if not self._every[name].pin}
        try:
            changed = self._store.record_seen(self._owner, free)
            return changed - self._moved(changed, free)
        except StoreError:
            # The listings behind say so; without a store nothing is remembered.
            return frozenset()

    def _moved(self, changed: frozenset[str], digests: Mapping[str, str]) -> frozenset[str]:
        """Give what is as an earlier release pinned it, and pin that by its digest of now."""
        former = {name: self._formerly[name] for name in changed if name in self._formerly}
        if not former:
            return frozenset()
        moved = former.keys() - self._store.record_seen(self._owner, former)
        self._store.record_seen(self._owner, {name: digests[name] for name in former})
        if moved:
            self._store.approve(self._owner, sorted(moved))
        return frozenset(moved)

    def _as_pinned(self, listing: Listing) -> Listing:
        """Hold *listing* against the pins in the table."""
        differ = {
            name: digest
            for name, digest in listing.digests.items()
            if (pin := self._every[name].pin.lower())
            and pin not in {digest, self._formerly.get(name)}
        }
        blocked = differ if self._options.on_change == "block" else {}
        return replace(
            listing,
            tools=tuple(tool for tool in listing.tools if tool.name not in blocked),
            things=tuple(
                thing for thing in listing.things if pin_key(thing.kind, thing.name) not in blocked
            ),
            diagnostics=(
                *listing.diagnostics,
                *(
                    Diagnostic(
                        stage="catalog",
                        code="tool_changed",
                        detail=f"{self.server!r}: alias {name!r} was made for another "
                        f"{self._every[name].of!r}; look at it, then pin {digest}"
                        + ("; it is left out" if name in blocked else ""),
                    )
                    for name, digest in differ.items()
                ),
            ),
        )

    def _described(self, listing: Listing) -> Listing:
        texts = {name: alias.description for name, alias in self._table.tools.items()}
        return replace(
            listing,
            tools=tuple(
                replace(tool, description=texts[tool.name] or tool.description)
                for tool in listing.tools
            ),
        )
