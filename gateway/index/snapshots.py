"""Snapshots of a catalog that changes: each is made from the last one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from gateway.catalog.entries import LISTED
from gateway.catalog.kinds import KINDS
from gateway.index.eligibility import Eligibility
from gateway.index.embedding_texts import Texts
from gateway.index.order import Order, Step
from gateway.index.snapshot import Named, Snapshot, repeated
from gateway.index.texts import lexical_fields
from gateway.index.vectors.exact import VectorIndex
from gateway.index.vectors.segments import Positions
from gateway.options import GraphOptions
from gateway.runtime.vectors import Matrix, Vector, unit_rows
from gateway.search.index.toolgraphs import ToolGraphs
from gateway.sources.entity_registry import EntityDelta
from gateway.types import Diagnostic, Entity
from graphs.lexical.bm25_index import Postings
from graphs.markdown.document import Document

NAME_WEIGHT = 0.4
"""What the vector of an entity's name, or of what its kind leans to, counts beside that of the
whole text, which counts 1."""


def compile_snapshot(
    entities: Sequence[Entity],
    *,
    version: int = 1,
    rows: Mapping[str, Vector],
    documents: Sequence[Document] = (),
    diagnostics: Sequence[Diagnostic] = (),
    derive: GraphOptions | None = None,
) -> Snapshot:
    """Compile *entities* into a snapshot; see `Snapshots`.

    Args:
        entities: In any order.
        version: The number of this build.
        rows: Vectors by text key; missing ones become rows of zeros.
        documents: The host's own graph documents.
        diagnostics: What went wrong so far.
        derive: Which edges are derived; None derives all.
    """
    snapshots = Snapshots(derive or GraphOptions())
    snapshots.texts.change((), entities)
    snapshots.texts.embedded(rows)
    turnover = EntityDelta(removed=(), added=tuple(entities))
    return snapshots.change(
        turnover,
        version=version,
        documents=documents,
        diagnostics=diagnostics,
    )


class Snapshots:
    """The index of a catalog that changes: each snapshot is made from the last one.

    What differs is worked on in Python, what stays only by passes over arrays. However a catalog
    came to be, its snapshot equals that of a fresh build. Not for two builds at once.

    Args:
        derive: Which edges are derived.
    """

    def __init__(self, derive: GraphOptions) -> None:
        self.texts = Texts()
        self.graphs = ToolGraphs(derive)
        self._order = Order()
        self._last: Snapshot | None = None

    def change(
        self,
        turnover: EntityDelta,
        *,
        version: int,
        documents: Sequence[Document],
        diagnostics: Sequence[Diagnostic],
    ) -> Snapshot:
        """Make the snapshot after *turnover*; `texts` must have been changed by it already.

        Args:
            turnover: How the catalog changed.
            version: The number of this build.
            documents: The host's own graph documents.
            diagnostics: What went wrong so far.
        """
        last = self._last or _nothing()
        step = self._order.change(turnover.removed, turnover.added)
        eligibility = last.eligibility.changed(step, last.by_name.places)
        lexical = _lexical(last.lexical, step)
        vectors = self._vectors(last.vectors, step)
        graph = self.graphs.build(step.entities, documents)
        beside = eligibility.beside(LISTED)
        self._last = Snapshot(
            version=version,
            entities=step.entities,
            by_name=last.by_name.changed(step),
            eligibility=eligibility,
            lexical=lexical,
            graph=graph if step.entities else None,
            vectors=vectors,
            common=_common(vectors, beside),
            server_ids=_server_ids(step.entities),
            diagnostics=tuple(diagnostics),
            repeated=repeated(diagnostics),
        )
        return self._last

    def _vectors(self, last: VectorIndex | None, step: Step) -> VectorIndex | None:
        """Give the vectors after *step*."""
        late = self.texts.late()
        if last is None or len(late) + len(step.new) > len(step.entities) / 2:
            matrix = blended(self.texts.of(step.entities))
            return None if matrix is None else VectorIndex.of(matrix)
        entities = step.entities
        places = step.moves.table()
        numbers = dict.fromkeys(step.new)
        numbers |= dict.fromkeys(map(step.places.position, late))
        spots = np.asarray(sorted(numbers), dtype=np.intp)
        stays = places >= 0
        fresh = np.zeros(len(entities), dtype=np.bool_)
        fresh[spots] = True
        stays[stays] = ~fresh[places[stays]]
        kept = np.flatnonzero(stays)
        order = np.empty(len(entities), dtype=np.intp)
        order[places[kept]] = np.arange(len(kept))
        order[spots] = len(kept) + np.arange(len(spots))
        rows = blended(self.texts.of([entities[at] for at in spots.tolist()]))
        if rows is None:
            rows = np.zeros((len(spots), last.dimensions), dtype=np.float32)
        found = last.changed(kept, rows, order)
        return found if found.mean.count else None


def _common(vectors: VectorIndex | None, beside: Positions) -> Vector | None:
    """Give the mean vector of what servers list; None without vectors.

    What stands *beside* that must not move what the tools have in common.
    """
    if vectors is None:
        return None
    listed = vectors.mean.changed(vectors.rows(beside), vectors.rows(beside[:0]))
    return (listed if listed.count else vectors.mean).row


def _server_ids(entities: Sequence[Entity]) -> Positions:
    """Number the servers of *entities*, shape (n,); other kinds have numbers of their own."""
    names = (entity.server if entity.kind in LISTED else entity.id for entity in entities)
    ids: dict[str, int] = {}
    numbers = (ids.setdefault(name, len(ids)) for name in names)
    return np.fromiter(numbers, np.intp, len(entities))


def _nothing() -> Snapshot:
    weights = {str(name): each for row in KINDS.values() for name, each in row.indexed.items()}
    lexical = Postings.build([], weights=weights)
    return Snapshot(
        version=0,
        entities=(),
        by_name=Named.of(Step.first(())),
        eligibility=Eligibility.of(()),
        lexical=lexical,
        graph=None,
        vectors=None,
        common=None,
        server_ids=_server_ids(()),
    )


def _lexical(last: Postings, step: Step) -> Postings:
    if len(step.new) > len(step.entities) / 2:
        scale = last.inverted.scale
        weights = dict(zip(scale.fields, scale.weights, strict=True))
        return Postings.build(list(map(_fields, step.entities)), weights=weights)
    return last.changed(
        {at: _fields(entity) for at, entity in step.gone.items()},
        {at: _fields(entity) for at, entity in step.new.items()},
    )


def _fields(entity: Entity) -> Mapping[str, str]:
    return {str(name): text for name, text in lexical_fields(entity).items()}


def blended(pairs: Sequence[tuple[Vector | None, Vector | None]]) -> Matrix | None:
    """Make each entity's vector out of the whole text's and the name's.

    In the whole text the description drowns the name, which says best what a tool is for. Without
    the name's vector the whole text's stands alone.

    Args:
        pairs: The vectors of the whole text and of the name, None where there is none.

    Returns:
        Unit rows, shape (n, d); zeros where the whole text has no vector. None if none has one.
    """
    known = next((whole for whole, _ in pairs if whole is not None), None)
    if known is None:
        return None
    zeros = np.zeros_like(known, dtype=np.float32)
    wholes = np.stack([zeros if whole is None else whole for whole, _ in pairs])
    names = np.stack([zeros if name is None else name for _, name in pairs])
    names[~wholes.any(axis=1)] = 0
    return unit_rows(wholes + NAME_WEIGHT * names)
