"""Virtual servers: a table of names for tools of other servers, each with a text of its own.

* An alias is made for one definition: when the original is another one later, that is told, or the
  alias left out, until somebody approves it. Its pin is the digest in the table or, without one,
  the digest that was seen first.
* Aliases name a server's own tools, whatever its shapes show of them: with an empty ``allow`` a
  server is reached through aliases alone.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from gateway.catalog.identity import definition_digest
from gateway.catalog.records import Records
from gateway.catalog.vetting import vetted
from gateway.errors import ClosedError, ConfigError, StoreError, UpstreamError
from gateway.limits import UpstreamOptions
from gateway.types import Diagnostic, InvokeResult, JsonObject, ToolDefinition
from gateway.upstream.shapes import check_tool_name
from gateway.upstream.source import Listing, Source, check_server_name, unknown_tool
from gateway.upstream.wrappers import joined, parts


@dataclass(frozen=True, slots=True, kw_only=True)
class Alias:
    """Another name for a tool.

    Raises:
        ConfigError: If *of* is no ``server/tool``.
    """

    of: str
    """The tool: ``server/tool``, by the server's own name of it."""
    description: str = ""
    """Shown instead of the tool's own; empty leaves that."""
    pin: str = ""
    """SHA-256 (hex) of the definition that it was made for; empty pins the first one seen."""

    def __post_init__(self) -> None:
        """Check what it stands for."""
        if not (self.server and self.tool):
            raise ConfigError(f"an alias stands for a tool, written server/tool, not {self.of!r}")

    @property
    def server(self) -> str:
        """Whose tool it is."""
        return self.of.partition("/")[0]

    @property
    def tool(self) -> str:
        """The server's own name of it."""
        return self.of.partition("/")[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class VirtualServer:
    """What a virtual server offers.

    Raises:
        ConfigError: If a name cannot be used.
    """

    name: str
    tools: Mapping[str, Alias]
    """By the name that is shown, in their order."""
    description: str = ""

    def __post_init__(self) -> None:
        """Check the names."""
        check_server_name(self.name)
        for name in self.tools:
            check_tool_name(name)

    @property
    def servers(self) -> frozenset[str]:
        """Whose tools it shows."""
        return frozenset(alias.server for alias in self.tools.values())

    @property
    def fingerprint(self) -> str:
        """SHA-256 (hex) of its table."""
        table = {name: alias.of for name, alias in self.tools.items()}
        return hashlib.sha256(json.dumps([self.name, table]).encode()).hexdigest()


class VirtualSource:
    """The tools of a virtual server.

    Args:
        table: What it offers.
        sources: Gives the sources behind it as they are now, by name.
        records: Where pins are kept.
        owner: Under which name; empty is the table's fingerprint.
        options: The policies.
    """

    def __init__(
        self,
        table: VirtualServer,
        *,
        sources: Callable[[], Mapping[str, Source]],
        records: Records,
        owner: str,
        options: UpstreamOptions,
    ) -> None:
        self._table = table
        self._sources = sources
        self._records = records
        self._owner = owner or table.fingerprint
        self._options = options
        self._listings: Mapping[str, Listing] = {}
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
        """The server behind each of its tools, by the name that is shown."""
        return {name: alias.server for name, alias in self._table.tools.items()}

    async def list_tools(self) -> Listing:
        """Give the aliases whose tool is there and as it was approved; see `Source.list_tools`.

        What is missing or changed is told.
        """
        self._check_open()
        behind = self._behind()
        self._listings = await parts(behind, self._listings)
        whole = joined(
            {name: (alias.server, alias.tool) for name, alias in self._table.tools.items()},
            self._listings,
            tuple(self._notes(behind)),
        )
        digests = {
            tool.name: whole.digests.get(tool.name) or self._digest(tool.name)
            for tool in whole.tools
        }
        seen = vetted(
            replace(whole, digests=digests),
            self._changed(digests),
            server=self.server,
            options=self._options,
        )
        shown = replace(self._described(self._as_pinned(seen)), things=(self._itself(),))
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
        return await source.call(alias.tool, arguments, tool_id=tool_id)

    async def close(self) -> None:
        """Refuse what comes later; the servers behind it stay open."""
        self._closed = True

    def _itself(self) -> ToolDefinition:
        """Give the virtual server as an entity, to be found by what it is for and what it has."""
        told = f"{self._table.description} Tools: {', '.join(self._table.tools)}".strip()
        return ToolDefinition(name=self.server, description=told, kind="virtual_server")

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
        for name, alias in self._table.tools.items():
            if alias.server not in behind:
                yield self._note(f"alias {name!r}: there is no server {alias.server!r}")
            elif alias.server not in failed and not self._has(alias):
                yield self._note(f"alias {name!r}: {alias.of!r} is not there, or is left out")

    def _note(self, detail: str) -> Diagnostic:
        told = f"virtual server {self.server!r}: {detail}"
        return Diagnostic(stage="catalog", code="config_warning", detail=told)

    def _has(self, alias: Alias) -> bool:
        return any(tool.name == alias.tool for tool in self._listings[alias.server].tools)

    def _digest(self, name: str) -> str:
        alias = self._table.tools[name]
        tools = self._listings[alias.server].tools
        (original,) = (tool for tool in tools if tool.name == alias.tool)
        return definition_digest(alias.server, original)

    def _changed(self, digests: Mapping[str, str]) -> frozenset[str]:
        free = {name: each for name, each in digests.items() if not self._table.tools[name].pin}
        try:
            return self._records.see(self._owner, free)
        except StoreError:
            # The listings behind say so; without a store nothing is remembered.
            return frozenset()

    def _as_pinned(self, listing: Listing) -> Listing:
        """Hold *listing* against the pins in the table."""
        differ = {
            name: digest
            for name, digest in listing.digests.items()
            if (pin := self._table.tools[name].pin) and pin.lower() != digest
        }
        blocked = differ if self._options.on_change == "block" else {}
        return replace(
            listing,
            tools=tuple(tool for tool in listing.tools if tool.name not in blocked),
            diagnostics=(
                *listing.diagnostics,
                *(
                    Diagnostic(
                        stage="catalog",
                        code="tool_changed",
                        detail=f"{self.server!r}: alias {name!r} was made for another "
                        f"{self._table.tools[name].of!r}; look at it, then pin {digest}"
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
