"""Compilation of a snapshot from entities, vectors and the host's graph documents. Pure.

Every build compiles the whole catalog, but keeps the vector, tokens and derived edges of each
unchanged entity.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

import numpy as np

from gateway.catalog.entries import LISTED
from gateway.catalog.kinds import KINDS, row_of
from gateway.index.added_texts import add_texts
from gateway.index.edge_sources import EdgeSource, read_edges
from gateway.index.eligibility import Eligibility, Trait, traits_of
from gateway.index.entity_rows import EntityRows
from gateway.index.entity_vectors import EntityVectors, texts_of
from gateway.index.rules import EdgeDeriver, Edges
from gateway.index.snapshot import Snapshot
from gateway.index.texts import document_of, lexical_fields, title_of
from gateway.index.tool_graph import STEP_PREDICATE, ToolGraph, host_names, node_of
from gateway.index.tool_words import Relation
from gateway.options import GraphOptions
from gateway.types import Diagnostic, Entity
from graphs.facts.extraction import DocumentReader
from graphs.facts.fact import Fact
from graphs.facts.vocabulary import NO_NAMES
from graphs.graph_builder import GraphBuilder
from graphs.lexical.analysis import fold
from graphs.lexical.bm25_index import BM25Index
from graphs.markdown.document import Document
from graphs.parameters import FIELD_WEIGHTS

_BLOCKS = 256
_WEIGHTS = {
    **FIELD_WEIGHTS,
    **{str(name): weight for row in KINDS.values() for name, weight in row.indexed.items()},
}
_SORT_KEY = attrgetter("sort_name", "entity.id")
_NO_EDGES: Edges = {}
_PREDICATES: Mapping[Relation, str] = {"requires": "requires", "next_steps": STEP_PREDICATE}


@dataclass(slots=True, kw_only=True, eq=False)
class _PreparedEntity:
    """Data of one entity that is kept between builds."""

    entity: Entity
    sort_name: str
    """Exposed name, casefolded. The catalog is sorted by this name and then by id."""
    names: tuple[str, ...]
    """The entity's exposed name and its name at the source, folded."""
    traits: tuple[Trait, ...]
    block: int
    """Index of the entity's block, whose statements are one source of the graph; below
    `_BLOCKS`."""
    group: str
    """Server of the entity; for kinds that servers do not list, the entity's id."""
    node: str
    is_node: bool
    """True if the entity is a node of the graph."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Statements:
    """Graph statements of all entities in a block, computed at each iteration, which is rare."""

    options: GraphOptions
    entities: Sequence[Entity]
    edges: Sequence[Edges]
    """Edges that rules derive, for each entity of the block."""

    def __iter__(self) -> Iterator[Fact]:
        for entity, edges in zip(self.entities, self.edges, strict=True):
            yield from DocumentReader().read([document_of(entity, self.options)])[0][0]
            yield from _derived_facts(node_of(entity.id), edges)


class SnapshotCompiler:
    """Compiles the snapshots of one catalog. Not thread-safe.

    Args:
        options: Options that enable the rules for edges.
        rows: Storage of the entities' vectors. None to store them in memory.
        edge_sources: Further sources of edges.
    """

    def __init__(
        self,
        options: GraphOptions,
        rows: EntityRows | None = None,
        edge_sources: Sequence[EdgeSource] = (),
    ) -> None:
        self._options = options
        self._edge_sources = edge_sources
        self._edges: list[tuple[Fact, ...] | Diagnostic] = []
        """Edges of each of `_edge_sources`, or the reason why it failed."""
        self._faults: list[Diagnostic] = []
        """Sources whose examples could not be read."""
        self._version = 0
        self._prepared: dict[str, _PreparedEntity] = {}
        """Entities, keyed by id, in the order of their exposed names."""
        self.vectors: EntityRows = EntityVectors() if rows is None else rows
        self._traits: dict[tuple[Trait, ...], tuple[Trait, ...]] = {}
        """Traits, each mapped to itself, so that equal traits share one object in memory."""
        self._statements: dict[int, _Statements] = {}
        """Graph statements, keyed by block. Blocks with a changed entity are absent."""
        self._deriver = EdgeDeriver(options)
        self._graph = GraphBuilder(weights=_WEIGHTS, fields=lexical_fields)

    def texts(self, entities: Iterable[Entity]) -> Iterator[str]:
        """Yield the texts of *entities* to embed, if no document of the host changes them."""
        for entity in add_texts(entities, (), self._edge_sources)[0]:
            whole, name, examples = texts_of(entity)
            yield from (whole, name, *examples)

    def prepare(self, entities: Iterable[Entity], documents: Iterable[Document] = ()) -> None:
        """Replace the catalog by *entities*, in any order. Data of unchanged entities is kept.

        Hints and rules are already applied to *entities*. *documents* may contain search texts.
        """
        listed, self._faults = add_texts(entities, documents, self._edge_sources)
        before, entities_by_id = self._prepared, {entity.id: entity for entity in listed}
        same = {
            key: item
            for key, item in before.items()
            if (entity := entities_by_id.get(key)) is item.entity or entity == item.entity
        }
        new = [self._prepare(entity) for key, entity in entities_by_id.items() if key not in same]
        gone = [item for key, item in before.items() if key not in same]
        prepared = sorted([*same.values(), *new], key=_SORT_KEY)
        self._prepared = {item.entity.id: item for item in prepared}
        new.sort(key=_SORT_KEY)
        self.vectors.update([item.entity for item in gone], [item.entity for item in new])
        if self.vectors.has_gaps:
            self.vectors.update([], [item.entity for item in prepared])
        changed = self._deriver.update(
            [item.entity for item in gone if item.is_node],
            [item.entity for item in new if item.is_node],
        )
        for item in (*gone, *new, *(self._prepared[key] for key in changed if key in same)):
            self._statements.pop(item.block, None)
        if new or gone or not self._edges:
            self._update_edges()

    def _update_edges(self) -> None:
        tools = [item.entity for item in self._prepared.values() if item.is_node]
        edges = [read_edges(source, tools) for source in self._edge_sources]
        # The graph builder compares sources by identity, so equal edges are kept.
        if edges != self._edges:
            self._edges = edges

    def _prepare(self, entity: Entity) -> _PreparedEntity:
        # Equal strings share one object, to save memory in catalogs of a million entities.
        names = (sys.intern(fold(name)) for name in (entity.exposed_name, entity.name))
        traits = traits_of(entity)
        return _PreparedEntity(
            entity=entity,
            sort_name=sys.intern(entity.exposed_name.casefold()),
            names=tuple(dict.fromkeys(names)),
            traits=self._traits.setdefault(traits, traits),
            block=zlib.crc32(entity.id.encode("utf-8", "surrogatepass")) % _BLOCKS,
            group=entity.server if entity.kind in LISTED else entity.id,
            node=node_of(entity.id),
            is_node=row_of(entity.kind).graph and not entity.described,
        )

    def compile(
        self, *, documents: Sequence[Document] = (), diagnostics: Sequence[Diagnostic] = ()
    ) -> Snapshot:
        """Compile the catalog, with the host's graph *documents* and the *diagnostics* so far."""
        prepared = list(self._prepared.values())
        by_name: dict[str, list[int]] = {}
        for position, item in enumerate(prepared):
            for name in item.names:
                by_name.setdefault(name, []).append(position)
        groups = [item.group for item in prepared]
        numbers = {group: number for number, group in enumerate(dict.fromkeys(groups))}
        lexical, graph = self._compile_texts(documents)
        snapshot = Snapshot(
            version=0,
            entities=tuple(item.entity for item in prepared),
            by_name=by_name,
            eligibility=Eligibility.of(list(self._prepared), [item.traits for item in prepared]),
            lexical=lexical,
            graph=graph if prepared else None,
            vectors=None,
            server_ids=np.asarray([numbers[group] for group in groups], dtype=np.intp),
        )
        faults = (edges for edges in self._edges if isinstance(edges, Diagnostic))
        return self.with_vectors(snapshot, (*diagnostics, *self._faults, *faults))

    def _compile_texts(self, documents: Sequence[Document]) -> tuple[BM25Index, ToolGraph]:
        prepared = self._prepared.values()
        rows = {item.node: item.entity for item in prepared}
        lexical = self._graph.index(rows)
        graph = self._graph.build(
            documents,
            names=host_names([item.entity for item in prepared]) if documents else NO_NAMES,
            others=_titles(prepared) if documents else (),
            derived=[*self._blocks(), *self._plugin_edges()],
            rows=rows,
            texts=lexical,
        )
        return lexical, ToolGraph.of(graph)

    def _plugin_edges(self) -> Iterator[tuple[Fact, ...]]:
        return (edges for edges in self._edges if isinstance(edges, tuple))

    def _blocks(self) -> list[_Statements]:
        """Return the graph statements of each block. An unchanged block is the same object."""
        if len(self._statements) < _BLOCKS:
            blocks: dict[int, list[Entity]] = {
                block: [] for block in range(_BLOCKS) if block not in self._statements
            }
            for item in self._prepared.values():
                if item.block in blocks and item.is_node:
                    blocks[item.block].append(item.entity)
            edges = self._deriver.edges
            self._statements |= {
                block: _Statements(
                    options=self._options,
                    entities=entities,
                    edges=[edges.get(entity.id, _NO_EDGES) for entity in entities],
                )
                for block, entities in blocks.items()
            }
        return [self._statements[block] for block in range(_BLOCKS)]

    def with_vectors(self, snapshot: Snapshot, diagnostics: Sequence[Diagnostic]) -> Snapshot:
        """Return *snapshot* of this catalog with the current vectors and a new version.

        *diagnostics* replace the diagnostics of *snapshot*.
        """
        self._version += 1
        return replace(
            snapshot,
            version=self._version,
            vectors=self.vectors.index(snapshot.eligibility),
            diagnostics=tuple(diagnostics),
        )

    def refusal_notes(self, refused: Mapping[str, str]) -> Iterator[Diagnostic]:
        """Yield a diagnostic for each entity with a text that the embedder refused.

        *refused* contains the reasons, keyed by text.
        """
        for item in self._prepared.values() if refused else ():
            whole, name, examples = texts_of(item.entity)
            if reason := next(filter(None, map(refused.get, (whole, name, *examples))), None):
                detail = f"{item.entity.id}: {reason}"
                yield Diagnostic(stage="embed", code="text_refused", detail=detail)


def _titles(prepared: Iterable[_PreparedEntity]) -> Iterator[tuple[str, str]]:
    for item in prepared:
        if item.is_node:
            yield item.node, title_of(item.entity)


def _derived_facts(node: str, edges: Edges) -> Iterator[Fact]:
    """Yield the derived edges of *node* as facts with the rule as origin."""
    for (relation, target), rule in edges.items():
        yield Fact(
            subject=node,
            predicate=_PREDICATES[relation],
            object=node_of(target),
            literal=False,
            origin=rule,
            declared=False,
        )
