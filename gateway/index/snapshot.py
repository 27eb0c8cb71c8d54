"""An immutable snapshot of the catalog for searches, and the build that made it."""

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
"""Maximum number of diagnostics with the same harmless code that every search repeats."""
_MAX_AUDIENCES = 64
MIN_EMBEDDED_SHARE = 0.8
"""Minimum share of eligible entities with a vector. Below it, words rank instead, because entities
without a vector would always come last. Figures are in ADR 53."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Snapshot:
    """The index at one moment: entities, words, graph and vectors."""

    version: int
    """Version of the index, part of the key of cached search results."""
    entities: Sequence[Entity]
    """Entities, ordered by exposed name. Ties in a ranking are ordered by position."""
    by_name: Mapping[str, Sequence[int]]
    """Positions of entities, ascending, keyed by exposed name and by name at the source, both
    folded."""
    eligibility: Eligibility
    lexical: BM25Index
    graph: ToolGraph | None
    """The graph of the entities. None for an empty catalog."""
    vectors: CatalogVectors | None
    """The vectors of the entities. None if all entities lack a vector."""
    server_ids: Positions
    """Id of each entity's server, shape (n,). An entity of a kind that servers do not list has an
    id of its own."""
    visibility: Visibility = EVERYTHING_VISIBLE
    """Rules that decide which entities a caller may see."""
    diagnostics: tuple[Diagnostic, ...] = ()
    """Problems found by the build."""

    @cached_property
    def recurring_diagnostics(self) -> tuple[Diagnostic, ...]:
        """Diagnostics that every search repeats, without duplicates.

        Only the first few with the same harmless code are repeated, because a folder may contain
        very many broken documents.
        """
        recurring: list[Diagnostic] = []
        counts: Counter[str] = Counter()
        for note in dict.fromkeys(note for note in self.diagnostics if note.code in REPEATED):
            counts[note.code] += 1
            is_missing = note.code in DEGRADING or note.code == "source_load_failed"
            if is_missing or counts[note.code] <= _MAX_RECURRING:
                recurring.append(note)
        return tuple(recurring)

    def with_diagnostics(self, diagnostics: Iterable[Diagnostic]) -> Self:
        """Return the snapshot with more *diagnostics*."""
        return replace(self, diagnostics=(*self.diagnostics, *diagnostics))

    def position(self, entity_id: str) -> int:
        """Return the position of an entity. Raise `KeyError` if the id is unknown."""
        return self.eligibility.by_id[entity_id]

    def named(self, name: str) -> Sequence[int]:
        """Return the positions of entities with this id, exposed name or name at the source."""
        position = self.eligibility.by_id.get(name)
        return self.by_name.get(fold(name), ()) if position is None else [position]

    @property
    def dimensions(self) -> int | None:
        """Number of dimensions of the vectors; None if all entities lack a vector."""
        return None if self.vectors is None else self.vectors.dimensions

    def ranks_by_vectors(self, mask: Mask | None = None) -> bool:
        """Return whether enough entities in *mask* have a vector; None means all entities."""
        if self.vectors is None or self.vectors.present is None:
            return self.vectors is not None
        present = self.vectors.present[... if mask is None else mask]
        return int(present.sum()) >= MIN_EMBEDDED_SHARE * len(present)

    def gauges(self) -> Mapping[str, Mapping[str, float]]:
        """Return the number of entities of each kind, and the number of pending approvals."""
        traits = self.eligibility.by_trait.items()
        kinds = {
            str(kind): len(positions) for (trait, kind), positions in traits if trait == "kind"
        }
        codes = Counter(note.code for note in self.diagnostics)
        pending = codes["tool_changed"] + codes["server_changed"]
        return {"gateway.index.entities": kinds, "gateway.approvals.pending": {"": pending}}

    def mask(self, filters: Filters) -> Mask:
        """Return the read-only mask of the entities that pass *filters*, shape (n,)."""
        base_filters = filters
        if filters.user or filters.tenant or filters.unrestricted:
            base_filters = replace(filters, user="", tenant="", unrestricted=False)
        mask = self._without_denied(self.eligibility.mask(base_filters), filters)
        mask.setflags(write=False)
        return mask

    def open_to(self, filters: Filters) -> Mask:
        """Return the mask of the entities that the caller in *filters* may see.

        Other filters are ignored.
        """
        return self._without_denied(self.eligibility.open_to(filters.scopes), filters)

    def _without_denied(self, mask: Mask, filters: Filters) -> Mask:
        if filters.unrestricted or not self.visibility.hiding:
            return mask
        return mask & self._audience_mask(self.visibility.audience(filters))

    def audience(self, caller: Party) -> tuple[frozenset[str], Audience]:
        """Return a key of *caller*. Callers with equal keys may see the same entities."""
        return caller.scopes, self.visibility.audience(caller)

    @cached_property
    def _audience_mask(self) -> Callable[[Audience], Mask]:
        """Returns the mask of the entities visible to an audience. The latest masks are cached."""
        classes = self.visibility.classify(self.entities)
        return lru_cache(_MAX_AUDIENCES)(partial(self.visibility.open, classes))

    def visible(self, filters: Filters) -> tuple[Entity, ...]:
        """Return the entities that pass *filters*."""
        return tuple(
            self.entities[position] for position in np.flatnonzero(self.mask(filters)).tolist()
        )

    def exposed(self, name: str, mask: Mask) -> tuple[int, ...]:
        """Return the position of the eligible entity exposed as exactly *name*; () if missing."""
        return tuple(
            position
            for position in self.by_name.get(fold(name), ())
            if mask[position] and self.entities[position].exposed_name == name
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexBuild:
    """A snapshot, its inputs, and the cost of its build."""

    generation: int
    """Generation of the gateway's registrations; see `Registry.generation`."""
    listed: Mapping[str, ListResult]
    """Listings from which the snapshot was built, keyed by server."""
    settings: tuple[object, ...] = ()
    """All other inputs of the snapshot; see `gateway.index.storage.IndexStore`."""
    snapshot: Snapshot
    saved: bool = False
    """True if the snapshot was loaded from a file that an earlier process saved."""
    missing: int = 0
    """Number of texts that still have to be embedded."""
    failed: bool = False
    """True if texts could not be embedded or graph documents are late. The build is then
    retried."""
    embedded: int = 0
    """Number of texts sent to the embedder in this build."""
    tokens: int = 0
    """Number of tokens in these texts, as the embedder reported it."""
    duration_s: float = 0.0
    built_at: float = 0.0
    """Time of the build, by the clock of the `Indexer`."""
    retry_at: float | None = None
    """Time of the next retry, by the clock of the `Indexer`. None if nothing failed."""

    @property
    def report(self) -> IndexReport:
        """Report of the build."""
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
        """Return the build with other access rules."""
        if self.snapshot.visibility is visibility:
            return self
        return replace(self, snapshot=replace(self.snapshot, visibility=visibility))

    def without_model(self, failed: Failed) -> IndexBuild:
        """Return the build with a diagnostic that the model is not ready, because of *failed*."""
        note = Diagnostic(stage="embed", code="embedding_failed", detail=failed.reason)
        notes = tuple(dict.fromkeys((*self.snapshot.diagnostics, note)))
        return replace(self, snapshot=replace(self.snapshot, diagnostics=notes))


def resolve(snapshot: Snapshot, tool: str, filters: Filters) -> Entity:
    """Return the callable entity with *tool* as id, exposed name, or unique name at the source.

    Raises:
        InvalidRequestError: If *tool* is not a text, is blank, or may name several tools, even
            hidden or former ones.
        UnknownToolError: If *tool* does not name a callable entity.
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
        if len(matches) > 1 or (key == "name" and any(map(_has_ambiguous_name, matches))):
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
    exposed_names = (
        entity.exposed_name for index, entity in enumerate(snapshot.entities) if mask[index]
    )
    # The message contains only a number of servers, because the caller may not see their names.
    unlisted = sum(note.code == "source_load_failed" for note in snapshot.diagnostics)
    raise UnknownToolError(tool, near(tool, exposed_names), unlisted=unlisted)


def _has_ambiguous_name(entity: Entity) -> bool:
    """Return whether the source's name of *entity* may refer to another tool.

    The name of a callable entity is ambiguous if the exposed name differs from the result of
    `plain_name`. `resolve` does not find an entity by its ambiguous name.
    """
    plain = plain_name(entity.name, entity.id if entity.trusted else "")
    return row_of(entity.kind).callable and entity.exposed_name != plain
