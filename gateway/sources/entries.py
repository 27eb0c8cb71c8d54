"""Where entries are kept, and the source that puts them into the catalog."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

from gateway.catalog.catalog import Entries
from gateway.catalog.entries import Entry, entry_from_json, entry_to_json, to_entity
from gateway.catalog.kinds import KINDS
from gateway.errors import ClosedError, ConfigError, StoreError
from gateway.options import CustomKind, UpstreamOptions
from gateway.sources.protocol import unknown_tool
from gateway.types import Code, Diagnostic, Entity, InvokeResult, JsonObject
from gateway.types.listing import Listing

ENTRIES = "catalog:"
"""The name of the source of entries: no server may be called so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """One row of the store, as it was read."""

    text: str
    entity: Entity | None
    """None if it is left out."""
    notes: tuple[Diagnostic, ...] = ()


class EntrySource:
    """Puts what `Entries` keep into the catalog. Lists no tool and calls none.

    Args:
        store: Where entries are kept.
        options: Say whether entries that look like an attack on a model are left out.
        kinds: What the host says of kinds of its own.
    """

    def __init__(
        self, store: Entries, options: UpstreamOptions, kinds: Mapping[str, CustomKind]
    ) -> None:
        self.store = store
        self._own = dict(kinds)
        self.kinds = dict(kinds)
        """The kinds that are declared so far, by name."""
        self._options = options
        self._rows: dict[str, _Row] = {}
        self._closed = False

    @property
    def server(self) -> str:
        """A name that no server can have."""
        return ENTRIES

    @property
    def trusted(self) -> bool:
        """False: entries may come from manifests of strangers."""
        return False

    async def list_tools(self) -> Listing:
        """Return the entries; see `Source.list_tools`.

        Only rows that changed are parsed anew. While the store fails the entries stay as they were.
        """
        if self._closed:
            raise ClosedError("the catalog is closed; make a new gateway")
        notes: list[Diagnostic] = []
        try:
            rows = self.store.rows()
        except StoreError as error:
            notes.append(Diagnostic(stage="store", code="catalog_unavailable", detail=str(error)))
        else:
            self._rows = {key: self._row(key, text) for key, text in sorted(rows.items())}
        notes += (note for row in self._rows.values() for note in row.notes)
        entities = (row.entity for row in self._rows.values() if row.entity is not None)
        return Listing(entities=tuple(entities), diagnostics=tuple(notes))

    def declare(self, kinds: Mapping[str, CustomKind]) -> bool:
        """Replace the kinds that configuration files declare beside the host's own.

        Returns:
            Whether any differs from before: then all entries are read anew.
        """
        after = {**self._own, **kinds}
        changed = after != self.kinds
        if changed:
            self.kinds = after
            self._rows = {}
        return changed

    def _row(self, key: str, text: str) -> _Row:
        before = self._rows.get(key)
        if before is not None and before.text == text:
            return before
        try:
            entry = entry_from_json(json.loads(text))
        except (ConfigError, ValueError) as error:
            return _Row(text=text, entity=None, notes=(_note("tool_quarantined", key, str(error)),))
        from gateway.mcp.injection_scanner import scan_definition  # noqa: PLC0415  (only who has entries pays for it)

        reasons = scan_definition(entry_to_json(entry))
        blocked = bool(reasons) and self._options.on_suspicion == "block"
        detail = f"{', '.join(reasons)}{'; it is left out' if blocked else ''}"
        notes = (_note("tool_suspicious", key, detail),) if reasons else ()
        entity = None if blocked else self._entity(entry)
        if notes and entity is not None:
            entity = replace(entity, definition=replace(entity.definition, doubts=notes))
        return _Row(text=text, entity=entity, notes=notes)

    def _entity(self, entry: Entry) -> Entity:
        if entry.kind in KINDS:
            return to_entity(entry)
        declared = self.kinds.get(entry.kind, CustomKind())
        return to_entity(entry, searchable=declared.searchable)

    async def call(self, tool: str, _arguments: JsonObject, *, tool_id: str) -> InvokeResult:
        """Refuse: an entry is not called; see `Source.call`."""
        return unknown_tool(tool_id, tool)

    async def close(self) -> None:
        """Refuse what comes later, and let go of the store."""
        self._closed = True
        self.store.close()


def _note(code: Code, key: str, detail: str) -> Diagnostic:
    return Diagnostic(stage="catalog", code=code, detail=f"entry {key!r}: {detail}")
