"""One immutable snapshot of the catalog, ready to be searched. It is replaced, never changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import Self

import numpy as np

from gateway.catalog.identity import plain_name
from gateway.catalog.kinds import row_of
from gateway.catalog.visibility import EVERYTHING_VISIBLE, Audience, Party, Visibility
from gateway.errors import Failed, InvalidRequestError, UnknownToolError
from gateway.index.candidates import CatalogVectors
from gateway.index.eligibility import Eligibility, Mask, Positions
from gateway.index.tool_graph import ToolGraph
from gateway.runtime.text import near
from gateway.sources.registry import ListResult
from gateway.types import Diagnostic, Entity, Filters, IndexReport, Match
from gateway.types.diagnostics import DEGRADING, REPEATED
from graphs.lexical.analysis import fold
from graphs.lexical.bm25_index import BM25Index

_MAX_RECURRING = 5
"""How many diagnostics of a harmless code every search repeats."""
_MAX_AUDIENCES = 64
MIN_EMBEDDED_SHARE = 0.8
"""If fewer of the eligible entities have a vector, words alone rank better: the others would come
last, whatever is wanted. ADR 53 has the figures."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Snapshot:
    """The index at one moment."""

    version: int
    """Counts snapshots: the key of everything that is remembered about searches."""
    entities: Sequence[Entity]
    """In the order of their exposed names, so that ties by position are ties by name."""
    by_name: Mapping[str, Sequence[int]]
    """Positions by folded exposed name and folded own name; ascending."""
    eligibility: Eligibility
    lexical: BM25Index
    graph: ToolGraph | None
    """None for an empty catalog."""
    vectors: CatalogVectors | None
    """None without any vector."""
    server_ids: Positions
    """The number of each entity's server, shape (n,). An entity of a kind that servers do not list
    has a number of its own."""
    visibility: Visibility = EVERYTHING_VISIBLE
    """What callers may see and do."""
    diagnostics: tuple[Diagnostic, ...] = ()
    """What went wrong while building; a large catalog may have one for each of many tools."""

    @cached_property
    def recurring_diagnostics(self) -> tuple[Diagnostic, ...]:
        """Those of them that say what every search goes without, each once.

        Of a code that costs a search nothing only the first few: a folder may hold very many
        broken documents.
        """
        found: list[Diagnostic] = []
        counts: Counter[str] = Counter()
        for note in dict.fromkeys(note for note in self.diagnostics if note.code in REPEATED):
            counts[note.code] += 1
            is_missing = note.code in DEGRADING or note.code == "source_load_failed"
            if is_missing or counts[note.code] <= _MAX_RECURRING:
                found.append(note)
        return tuple(found)

    def with_diagnostics(self, diagnostics: Iterable[Diagnostic]) -> Self:
        """Return the same snapshot with more *diagnostics*."""
        return replace(self, diagnostics=(*self.diagnostics, *diagnostics))

    def position(self, entity_id: str) -> int:
        """Return the position of the entity with this id.

        Raises:
            KeyError: There is none.
        """
        return self.eligibility.by_id[entity_id]

    def named(self, name: str) -> Sequence[int]:
        """Return the positions of the entities with this id, exposed name or own name."""
        position = self.eligibility.by_id.get(name)
        return self.by_name.get(fold(name), ()) if position is None else [position]

    @property
    def dimensions(self) -> int | None:
        """How many numbers a vector has; None without any vector."""
        return None if self.vectors is None else self.vectors.dimensions

    def ranks_by_vectors(self, mask: Mask | None = None) -> bool:
        """Return whether enough of the eligible entities, None for all, have a vector."""
        if self.vectors is None or self.vectors.present is None:
            return self.vectors is not None
        present = self.vectors.present[... if mask is None else mask]
        return int(present.sum()) >= MIN_EMBEDDED_SHARE * len(present)

    def gauges(self) -> Mapping[str, Mapping[str, float]]:
        """Return entities by kind, and definitions to approve; see `Telemetry.observe`."""
        traits = self.eligibility.by_trait.items()
        kinds = {str(kind): len(found) for (trait, kind), found in traits if trait == "kind"}
        codes = Counter(note.code for note in self.diagnostics)
        pending = codes["tool_changed"] + codes["server_changed"]
        return {"gateway.index.entities": kinds, "gateway.approvals.pending": {"": pending}}

    def mask(self, filters: Filters) -> Mask:
        """Return the mask of *filters*, shape (n,), read-only."""
        own = filters
        if filters.user or filters.tenant or filters.unrestricted:
            own = replace(filters, user="", tenant="", unrestricted=False)
        mask = self._without_denied(self.eligibility.mask(own), filters)
        mask.setflags(write=False)
        return mask

    def open_to(self, filters: Filters) -> Mask:
        """Return the mask of what the caller behind *filters* may see, whatever else they ask."""
        return self._without_denied(self.eligibility.open_to(filters.scopes), filters)

    def _without_denied(self, mask: Mask, filters: Filters) -> Mask:
        if filters.unrestricted or not self.visibility.hiding:
            return mask
        return mask & self._open(self.visibility.audience(filters))

    def audience(self, caller: Party) -> tuple[frozenset[str], Audience]:
        """Return what callers have in common that may see the same."""
        return caller.scopes, self.visibility.audience(caller)

    @cached_property
    def _open(self) -> Callable[[Audience], Mask]:
        """Return the mask of what an audience may see; those asked for last are remembered."""
        classes = self.visibility.classify(self.entities)
        return lru_cache(_MAX_AUDIENCES)(partial(self.visibility.open, classes))

    def visible(self, filters: Filters) -> tuple[Entity, ...]:
        """Return the entities that *filters* hold; the others are not looked at."""
        return tuple(self.entities[at] for at in np.flatnonzero(self.mask(filters)).tolist())

    def exposed(self, name: str, mask: Mask) -> tuple[int, ...]:
        """Return the position of the eligible entity with exactly this exposed name; () if none."""
        return tuple(
            position
            for position in self.by_name.get(fold(name), ())
            if mask[position] and self.entities[position].exposed_name == name
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexBuild:
    """A snapshot, what it was built from, and what it cost."""

    generation: int
    """Of the registrations; see `Registry.generation`."""
    listed: Mapping[str, ListResult]
    """By server."""
    settings: tuple[object, ...] = ()
    """What else the snapshot depends on; see `gateway.index.storage.IndexStore`."""
    snapshot: Snapshot
    saved: bool = False
    """Whether the snapshot was read as an earlier process saved it."""
    missing: int = 0
    """How many texts are still to be embedded."""
    failed: bool = False
    """Whether texts could not be embedded, or documents are late: try again after a while."""
    embedded: int = 0
    """How many texts were sent to the embedder."""
    tokens: int = 0
    """What the embedder reported for them."""
    duration_s: float = 0.0
    built_at: float = 0.0
    """By the clock of the `Indexer`."""
    retry_at: float | None = None
    """When to try again what failed, by the clock of the `Indexer`; None if nothing did."""

    @property
    def report(self) -> IndexReport:
        """What the build did."""
        snapshot, graph = self.snapshot, self.snapshot.graph
        has = snapshot.eligibility.has
        return IndexReport(
            generation=self.generation,
            entities=len(snapshot.entities),
            tools=int((has("kind", "tool") & has("described", False)).sum()),
            vectors=0 if snapshot.vectors is None else snapshot.vectors.count,
            embedded_texts=self.embedded,
            tokens=self.tokens,
            graph_nodes=len(graph.index.kinds) if graph else 0,
            graph_edges=graph.edge_count if graph else 0,
            duration_s=self.duration_s,
            saved=self.saved,
            diagnostics=snapshot.diagnostics,
        )

    def under(self, visibility: Visibility) -> IndexBuild:
        """Return the same build, of which callers see what *visibility* says."""
        if self.snapshot.visibility is visibility:
            return self
        return replace(self, snapshot=replace(self.snapshot, visibility=visibility))

    def without_model(self, failed: Failed) -> IndexBuild:
        """Return the same build with a diagnostic that says why the model is not ready."""
        note = Diagnostic(stage="embed", code="embedding_failed", detail=failed.reason)
        notes = tuple(dict.fromkeys((*self.snapshot.diagnostics, note)))
        return replace(self, snapshot=replace(self.snapshot, diagnostics=notes))


def resolve(snapshot: Snapshot, tool: str, filters: Filters) -> Entity:
    """Return the one callable entity that *tool* names: by id, exposed name, or unique own name.

    Raises:
        InvalidRequestError: If *tool* is no text, blank, or an own name that several tools have or
            that another tool holds, also while that tool is withheld or gone.
        UnknownToolError: If nothing that may be called has this name.
    """
    if not isinstance(tool, str):
        kind = type(tool).__name__
        advice = f": pass {kind.lower()}.id" if isinstance(tool, Match | Entity) else ""
        raise InvalidRequestError(f"the tool must be a text, got {kind}{advice}")
    if not tool.strip():
        raise InvalidRequestError("the tool's name is empty: give an id or a name")
    mask = snapshot.mask(filters)
    positions = [position for position in snapshot.named(tool) if mask[position]]
    entities = [snapshot.entities[position] for position in positions]
    for key in ("id", "exposed_name", "name"):
        matches = [entity for entity in entities if getattr(entity, key) == tool]
        if len(matches) > 1 or (key == "name" and any(map(_lost_name, matches))):
            names = ", ".join(entity.exposed_name for entity in matches)
            raise InvalidRequestError(f"{tool!r} may name another tool: say which one ({names})")
        if matches and row_of(matches[0].kind).callable:
            return matches[0]
    described = snapshot.mask(replace(filters, include_described=True))
    for position in snapshot.named(tool):
        if described[position] and snapshot.entities[position].described:
            entity = snapshot.entities[position]
            raise InvalidRequestError(
                f"{entity.id!r} is only described by the catalog's entry {entity.parent!r}: "
                f"connect the server {entity.server!r} to call it"
            )
    every = (entity.exposed_name for at, entity in enumerate(snapshot.entities) if mask[at])
    # How many, not which: a caller may not be meant to know them.
    unlisted = sum(note.code == "source_load_failed" for note in snapshot.diagnostics)
    raise UnknownToolError(tool, near(tool, every), unlisted=unlisted)


def _lost_name(entity: Entity) -> bool:
    """Return whether the own name of *entity* may be the name of another tool.

    A name that cannot be exposed, such as one in another script, has no holder. Only a tool that
    the host trusts is called by it.
    """
    held = plain_name(entity.name, entity.id if entity.trusted else "")
    return row_of(entity.kind).callable and entity.exposed_name != held
