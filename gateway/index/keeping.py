"""Reads the index that an earlier process saved, and saves what this one made.

* It is read at the first build, if its mark is the same.
* It is saved in the background after a full build, and at the end if it changed since.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gateway.embed.protocol import EmbedderInfo
from gateway.index.shelf import Found, Shelf, mark
from gateway.index.snapshot import Snapshot
from gateway.sources.registry import ListResult, Registration
from gateway.types import Diagnostic

_LASTING = frozenset({"name_qualified", "graph_document_invalid"})
"""Codes of what is wrong with a catalog at every build, whatever the state of its servers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What an index is made of."""

    registrations: Mapping[str, Registration]
    listed: Mapping[str, ListResult]
    documents: object
    """The host's own graph documents, or a digest of their files."""

    @property
    def notes(self) -> list[Diagnostic]:
        """The diagnostics of the sources as they were just listed."""
        return [note for each in self.listed.values() for note in each.listing.diagnostics]


class Keeper:
    """Reads and saves the indexes of one gateway.

    Args:
        shelf: Where they are kept.
        model: What made the vectors; None if there are none.
        made_with: What they depend on besides, each with a `repr` that says all of it.
    """

    def __init__(self, shelf: Shelf, model: EmbedderInfo | None, *made_with: object) -> None:
        self._shelf = shelf
        self._made_with = (model, *made_with)
        self._unsaved: tuple[Ground, Snapshot] | None = None

    def find(self, ground: Ground, *, version: int) -> Found:
        """Open the index that was made of the same *ground*, for the model of today."""
        return self._shelf.find(self._mark(ground), version=version, diagnostics=ground.notes)

    def made(self, ground: Ground, snapshot: Snapshot) -> None:
        """Remember *snapshot* as the one to save next, instead of any older one."""
        self._unsaved = ground, snapshot

    def keep(self) -> tuple[Diagnostic, ...]:
        """Save the newest index, unless it is saved already; give what went wrong."""
        if self._unsaved is None:
            return ()
        ground, snapshot = self._unsaved
        self._unsaved = None
        if len(snapshot.entities) < self._shelf.options.min_tools:
            return ()
        own = [note for note in snapshot.diagnostics if note.code in _LASTING]
        return self._shelf.keep(self._mark(ground), snapshot, own)

    def _mark(self, ground: Ground) -> str:
        made_with = (*self._made_with, ground.documents)
        return mark(ground.registrations, ground.listed, made_with)
