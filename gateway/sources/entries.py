from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from gateway.catalog.catalog import Entries
from gateway.catalog.entries import TOOLS, Entry, entry_from_json, entry_to_json, to_entity
from gateway.catalog.identity import SERVER_KINDS, definition_digest, entity_id
from gateway.catalog.kinds import KINDS, tool_details
from gateway.errors import ClosedError, ConfigError, StoreError
from gateway.options import CustomKind, UpstreamOptions
from gateway.sources.listing_store import store_note
from gateway.sources.protocol import unknown_tool
from gateway.types import Access, Code, Diagnostic, Entity, InvokeResult, JsonObject, ToolDefinition
from gateway.types.listing import Listing

ENTRIES = "catalog:"
"""Reserved name of the source that lists the catalog's stored entries."""
MAX_SERVER_CHARS = 64

_Row: TypeAlias = tuple[tuple[Entity, ...], tuple[Diagnostic, ...]]
"""Entities and diagnostics of a stored row (such as a server with its tools). Both may be empty."""


class EntrySource:
    """Source of the stored entries of the catalog, which can be found but not called.

    Args:
        store: Store of the entries.
        options: Options; `on_suspicion` decides whether suspicious entries are left out.
        kinds: Custom kinds of the host, keyed by name.
    """

    def __init__(
        self, store: Entries, options: UpstreamOptions, kinds: Mapping[str, CustomKind]
    ) -> None:
        self.server = ENTRIES
        self.trusted = False
        """False, because entries may come from manifests of strangers."""
        self.store = store
        self._host_kinds = dict(kinds)
        self.kinds = dict(kinds)
        """Custom kinds of the host and of its configuration files, keyed by name."""
        self._options = options
        self._rows: dict[tuple[str, str], _Row] = {}
        self._rules: dict[str, Access] = {}
        self._closed = False

    async def list_tools(self) -> Listing:
        """Return the entries. While the store fails, they stay unchanged."""
        if self._closed:
            raise ClosedError("the catalog is closed; make a new gateway")
        notes: list[Diagnostic] = []
        try:
            rows, rules = self.store.rows(), self.store.rules()
        except StoreError as error:
            notes.append(store_note(error))
        else:
            self._rows = {
                row: self._rows.get(row) or self._parse_row(*row) for row in sorted(rows.items())
            }
            self._rules = {pattern: _read_rule(text) for pattern, text in sorted(rules.items())}
        return Listing(
            entities=tuple(entity for entities, _ in self._rows.values() for entity in entities),
            rules=self._rules,
            diagnostics=(
                *notes,
                *(note for _, row_notes in self._rows.values() for note in row_notes),
            ),
        )

    def declare(self, kinds: Mapping[str, CustomKind]) -> bool:
        """Replace the custom kinds of configuration files. Return True if a kind changed."""
        after = {**self._host_kinds, **kinds}
        changed = after != self.kinds
        if changed:
            self.kinds = after
            self._rows = {}
        return changed

    def _parse_row(self, key: str, text: str) -> _Row:
        try:
            entry = entry_from_json(json.loads(text))
        except (ConfigError, ValueError) as error:
            return (), (_note("tool_quarantined", key, str(error)),)
        from gateway.mcp.injection_scanner import scan_definition  # noqa: PLC0415  (only who has entries pays for it)

        reasons = scan_definition(entry_to_json(entry))
        blocked = bool(reasons) and self._options.on_suspicion == "block"
        detail = f"{', '.join(reasons)}{'; it is left out' if blocked else ''}"
        notes = (_note("tool_suspicious", key, detail),) if reasons else ()
        if blocked:
            return (), notes
        kind = self.kinds.get(entry.kind, CustomKind())
        entity = to_entity(entry, searchable=None if entry.kind in KINDS else kind.searchable)
        entity = replace(entity, definition=replace(entity.definition, diagnostics=notes))
        listed = entry.metadata.get(TOOLS) if entry.kind in SERVER_KINDS else None
        if not isinstance(listed, list):
            return (entity,), notes
        listing = self._list_described(key, listed)
        details = {**entity.definition.details, **tool_details(listing.tools)}
        server = replace(entity, definition=replace(entity.definition, details=details))
        tools = (_described_tool(entry, tool, notes) for tool in listing.tools)
        return (server, *tools), (*notes, *listing.diagnostics)

    def _list_described(self, key: str, listed: Sequence[object]) -> Listing:
        """Return a listing of the tools described in an entry.

        The tools get the same checks as tools listed by an MCP server.
        """
        from gateway.mcp import definitions  # noqa: PLC0415  (only who has such entries pays for it)
        from gateway.mcp.collector import DefinitionCollector  # noqa: PLC0415  (as above)

        collector = DefinitionCollector(key, self._options, "")
        default = {"type": "object"}
        schemas = (
            {**tool, "inputSchema": tool.get("inputSchema") or tool.get("schema") or default}
            if isinstance(tool, dict)
            else tool
            for tool in listed
        )
        collector.add_page(definitions.TOOLS, list(schemas))
        return collector.listing()

    async def call(self, tool: str, _arguments: JsonObject, *, tool_id: str) -> InvokeResult:
        """Return an error result, because entries cannot be called."""
        return unknown_tool(tool_id, tool)

    async def close(self) -> None:
        """Close the source and its store."""
        self._closed = True
        self.store.close()


def _read_rule(text: str) -> Access:
    """Parse a stored access rule. An unreadable one disables entries."""
    try:
        return Access(**json.loads(text))
    except (ValueError, TypeError):
        return Access(enabled=False)


def described_server(name: str) -> str:
    """Return the server name of the tools that the server entry *name* describes."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", name)[:MAX_SERVER_CHARS]


def _described_tool(entry: Entry, tool: ToolDefinition, notes: tuple[Diagnostic, ...]) -> Entity:
    """Return the entity of a *tool* of the server *entry*, with the id that a connected server
    gives it.
    """
    server = described_server(entry.name)
    key = entity_id("tool", server, tool.name)
    return Entity(
        id=key,
        exposed_name=key,
        server=server,
        definition=replace(tool, diagnostics=notes),
        digest=definition_digest(server, tool),
        parent=entry.id,
        described=True,
    )


def _note(code: Code, key: str, detail: str) -> Diagnostic:
    return Diagnostic(stage="catalog", code=code, detail=f"entry {key!r}: {detail}")
