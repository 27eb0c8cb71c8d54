"""Entities, their vectors and the host's graph documents -> a snapshot. Pure.

Every build compiles the whole catalog. What is dear is kept per entity: its texts, its vector, its
tokens and its derived edges.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from gateway.catalog.entries import LISTED
from gateway.catalog.kinds import KINDS
from gateway.embed.cache import text_key
from gateway.index.eligibility import Eligibility, Mask, Positions
from gateway.index.snapshot import Snapshot, recurring
from gateway.index.texts import embedding_text, lexical_fields, name_text
from gateway.index.tool_graph_builder import ToolGraphBuilder
from gateway.index.vectors.exact import VectorIndex
from gateway.options import GraphOptions
from gateway.runtime.vectors import Matrix, Vector, unit_rows
from gateway.types import Diagnostic, Entity
from graphs.lexical.analysis import fold
from graphs.lexical.bm25_index import BM25Index
from graphs.lexical.token_cache import TokenCache
from graphs.markdown.document import Document

NAME_WEIGHT = 0.4
"""What the vector of an entity's name, or of what its kind leans to, counts beside that of the
whole text, which counts 1."""
_WEIGHTS = {str(name): weight for row in KINDS.values() for name, weight in row.indexed.items()}


def compile_snapshot(
    entities: Sequence[Entity],
    *,
    version: int = 1,
    rows: Mapping[str, Vector],
    documents: Sequence[Document] = (),
    diagnostics: Sequence[Diagnostic] = (),
    graph_options: GraphOptions | None = None,
) -> Snapshot:
    """Compile *entities* into a snapshot.

    Args:
        entities: In any order.
        version: The number of the snapshot.
        rows: Vectors by text key; missing ones become rows of zeros.
        documents: The host's own graph documents.
        diagnostics: What went wrong so far.
        graph_options: Which edges are derived; None derives all.
    """
    compiler = SnapshotCompiler(graph_options or GraphOptions())
    compiler.prepare(entities)
    compiler.add_vectors(rows)
    return compiler.compile(version=version, documents=documents, diagnostics=diagnostics)


@dataclass(slots=True, kw_only=True, eq=False)
class _PreparedEntity:
    """What is kept of one entity from build to build."""

    entity: Entity
    sort_key: tuple[str, str]
    names: tuple[str, ...]
    """Its exposed name, own name and id, folded."""
    fields: Mapping[str, str]
    """Its indexed words by field."""
    texts: tuple[str, str]
    """What is embedded: the whole text, and the name."""
    keys: tuple[str, str]
    """Their keys."""
    row: Vector | None = None
    """Its vector; None if it was not made yet, or since a text of it was embedded."""

    @classmethod
    def of(cls, entity: Entity) -> _PreparedEntity:
        texts = embedding_text(entity), name_text(entity)
        names = map(fold, (entity.exposed_name, entity.name, entity.id))
        return cls(
            entity=entity,
            sort_key=(entity.exposed_name.casefold(), entity.id),
            names=tuple(dict.fromkeys(names)),
            fields={str(name): text for name, text in lexical_fields(entity).items()},
            texts=texts,
            keys=(text_key(texts[0]), text_key(texts[1])),
        )


@dataclass(slots=True)
class SnapshotCompiler:
    """Compiles the snapshots of one catalog. Not for two threads at once.

    Args:
        graph_options: Which edges are derived.
    """

    graph_options: GraphOptions
    _prepared: dict[str, _PreparedEntity] = field(default_factory=dict)
    """In the order of the exposed names, by entity id."""
    _vectors: dict[str, Vector] = field(default_factory=dict)
    """By text key."""
    _missing: dict[str, str] = field(default_factory=dict)
    """The texts without a vector, by text key."""
    _tokens: TokenCache = field(default_factory=TokenCache)
    _graphs: ToolGraphBuilder = field(init=False)

    def __post_init__(self) -> None:
        """Begin without a catalog."""
        self._graphs = ToolGraphBuilder(self.graph_options)

    def prepare(self, entities: Iterable[Entity]) -> None:
        """Make *entities* the catalog, in any order; what is known of equal ones is kept."""
        prepared = []
        for entity in entities:
            known = self._prepared.get(entity.id)
            same = known is not None and (known.entity is entity or known.entity == entity)
            prepared.append(known if known and same else _PreparedEntity.of(entity))
        prepared.sort(key=lambda item: item.sort_key)
        self._prepared = {item.entity.id: item for item in prepared}
        vectors, self._vectors, self._missing = self._vectors, {}, {}
        for item in prepared:
            for key, text in zip(item.keys, item.texts, strict=True):
                if key in vectors:
                    self._vectors[key] = vectors[key]
                else:
                    self._missing[key] = text

    @property
    def missing_texts(self) -> list[str]:
        """The texts that have no vector, each once."""
        return list(self._missing.values())

    @property
    def text_count(self) -> int:
        """How many different texts there are."""
        return len(self._vectors) + len(self._missing)

    def add_vectors(self, rows: Mapping[str, Vector]) -> None:
        """Take *rows* for the vectors of missing texts, by text key; others are ignored."""
        fresh = {key: row for key, row in rows.items() if self._missing.pop(key, None) is not None}
        self._vectors |= fresh
        for item in self._prepared.values() if fresh else ():
            if not fresh.keys().isdisjoint(item.keys):
                item.row = None

    def compile(
        self,
        *,
        version: int,
        documents: Sequence[Document],
        diagnostics: Sequence[Diagnostic],
    ) -> Snapshot:
        """Compile the catalog.

        Args:
            version: The number of the snapshot.
            documents: The host's own graph documents.
            diagnostics: What went wrong so far.
        """
        prepared = list(self._prepared.values())
        entities = tuple(item.entity for item in prepared)
        by_name: dict[str, list[int]] = {}
        for position, item in enumerate(prepared):
            for name in item.names:
                by_name.setdefault(name, []).append(position)
        fields = [item.fields for item in prepared]
        graph = self._graphs.build(entities, documents)
        return self.with_vectors(
            Snapshot(
                version=version,
                entities=entities,
                by_name=by_name,
                eligibility=Eligibility.of(entities),
                lexical=BM25Index.build(fields, weights=_WEIGHTS, cache=self._tokens),
                graph=graph if entities else None,
                vectors=None,
                mean_vector=None,
                server_ids=_server_ids(entities),
            ),
            version=version,
            diagnostics=diagnostics,
        )

    def with_vectors(
        self, snapshot: Snapshot, *, version: int, diagnostics: Sequence[Diagnostic]
    ) -> Snapshot:
        """Return *snapshot* with the vectors that there are now.

        Args:
            snapshot: Of this catalog.
            version: The number of the new snapshot.
            diagnostics: Instead of those that it had.
        """
        matrix = self._matrix(snapshot.entities)
        return replace(
            snapshot,
            version=version,
            vectors=None if matrix is None else VectorIndex.of(matrix),
            mean_vector=None if matrix is None else _mean(matrix, snapshot.eligibility),
            diagnostics=tuple(diagnostics),
            recurring_diagnostics=recurring(diagnostics),
        )

    def _matrix(self, entities: Sequence[Entity]) -> Matrix | None:
        """Return the rows of *entities*, shape (n, d); None if none has a vector."""
        items = [self._prepared.get(entity.id) for entity in entities]
        fresh = [
            item for item in items if item and item.row is None and item.keys[0] in self._vectors
        ]
        wholes = [self._vectors[item.keys[0]] for item in fresh]
        names = [self._vectors.get(item.keys[1]) for item in fresh]
        for item, row in zip(fresh, blend_name_vectors(wholes, names), strict=True):
            item.row = row
        rows = [item.row if item else None for item in items]
        first = next((row for row in rows if row is not None), None)
        if first is None:
            return None
        zeros = np.zeros_like(first)
        return np.stack([zeros if row is None else row for row in rows])


def blend_name_vectors(wholes: Sequence[Vector], names: Sequence[Vector | None]) -> Matrix:
    """Blend each entity's vector out of those of its whole text and its name.

    In the whole text the description drowns the name, which says best what a tool is for.

    Args:
        wholes: The vectors of the whole texts.
        names: The vectors of the names. Without one the whole text's stands alone.

    Returns:
        Unit rows, shape (n, d).
    """
    if not wholes:
        return np.zeros((0, 0), dtype=np.float32)
    zeros = np.zeros_like(wholes[0])
    leaning = np.stack([zeros if name is None else name for name in names])
    return unit_rows(np.stack(wholes) + NAME_WEIGHT * leaning)


def _mean(matrix: Matrix, eligibility: Eligibility) -> Vector:
    """Return the mean row of what servers list: what stands beside it must not move it."""
    has_vector: Mask = np.asarray(matrix.any(axis=1))
    listed = has_vector.copy()
    listed[eligibility.positions_not_of_kinds(LISTED)] = False
    chosen = listed if listed.any() else has_vector
    total = np.dot(chosen.astype(np.float32), matrix)
    return np.asarray(total / max(int(np.count_nonzero(chosen)), 1), dtype=np.float32)


def _server_ids(entities: Sequence[Entity]) -> Positions:
    numbers: dict[str, int] = {}
    keys = (entity.server if entity.kind in LISTED else entity.id for entity in entities)
    return np.asarray([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.intp)
