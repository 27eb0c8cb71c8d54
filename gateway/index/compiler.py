"""Entities, their vectors and the host's graph documents -> a snapshot. Pure.

* Every build compiles the whole catalog. What is dear is kept per entity: its texts, its vector,
  its tokens, its facts and its derived edges.
* In its documents a host may call an entity by its canonical id, its exposed name, or its own name
  at its source if only one entity has that.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from operator import attrgetter

import numpy as np

from gateway.catalog.entries import LISTED
from gateway.catalog.kinds import KINDS, row_of
from gateway.embed.cache import text_key
from gateway.index.eligibility import Eligibility, Mask, Trait, traits_of
from gateway.index.rules import EdgeDeriver, Edges
from gateway.index.snapshot import Snapshot
from gateway.index.statistics import CatalogStatistics
from gateway.index.texts import (
    document_of,
    embedding_text,
    example_texts,
    lexical_fields,
    name_text,
)
from gateway.index.tool_graph import STEP_PREDICATE, ToolGraph, node_of
from gateway.index.tool_words import Relation
from gateway.index.vectors import VectorIndex
from gateway.options import GraphOptions
from gateway.runtime.vectors import Matrix, Vector, unit_rows
from gateway.types import Diagnostic, Entity
from gateway.types.entities import MAX_SEARCH_TEXT_CHARS
from graphs.facts.extraction import DocumentReader, LabelResolver
from graphs.facts.fact import Fact
from graphs.facts.vocabulary import NO_NAMES
from graphs.graph_builder import GraphBuilder
from graphs.lexical.analysis import fold
from graphs.lexical.bm25_index import BM25Index
from graphs.markdown.document import Document
from graphs.parameters import FIELD_WEIGHTS

NAME_WEIGHT = 0.4
"""What the vector of an entity's name, or of what its kind leans to, counts beside that of the
whole text, which counts 1."""
EXAMPLE_SHARE = 0.5
"""How far the vector of an entity leans to those of requests that it serves, if there are many; one
such request counts half as much."""
_BLOCKS = 256
_WEIGHTS = {
    **FIELD_WEIGHTS,
    **{str(name): weight for row in KINDS.values() for name, weight in row.indexed.items()},
}
_PREDICATES: Mapping[Relation, str] = {"requires": "requires", "next_steps": STEP_PREDICATE}


@dataclass(slots=True, kw_only=True, eq=False)
class _PreparedEntity:
    """What is kept of one entity from build to build."""

    entity: Entity
    sort_key: tuple[str, str]
    names: tuple[str, ...]
    """Its exposed name and own name, folded."""
    traits: tuple[Trait, ...]
    block: int
    """One of some hundred: what all entities of a block state is one source of the graph."""
    group: str
    """What it is served together with: its server, or itself."""
    node: str
    document: Document | None
    """None for an entity whose kind is no node of the graph."""
    facts: tuple[Fact, ...]
    """What the document states."""
    statements: tuple[Fact, ...]
    """The same, and the edges that rules derive."""
    fields: Mapping[str, str]
    """Its indexed words by field."""
    texts: Mapping[str, str]
    """What is embedded, by text key: the whole text, the name, and the examples."""
    keys: tuple[str, str]
    """Those of the whole text and the name."""
    examples: tuple[str, ...]
    """Those of the examples."""
    row: Vector | None = None
    """Its vector; None if that of the whole text was not made yet."""


class SnapshotCompiler:
    """Compiles the snapshots of one catalog. Not for two threads at once.

    Args:
        options: Which edges are derived.
    """

    def __init__(self, options: GraphOptions) -> None:
        self._options = options
        self._version = 0
        self._prepared: dict[str, _PreparedEntity] = {}
        """In the order of the exposed names, by entity id."""
        self._incomplete: list[_PreparedEntity] = []
        """Those whose texts have not all a vector."""
        self._vectors: dict[str, Vector] = {}
        """By text key."""
        self._missing: dict[str, str] = {}
        """The texts without a vector, by text key."""
        self._traits: dict[tuple[Trait, ...], tuple[Trait, ...]] = {}
        """Equal ones are one object."""
        self._documents: Sequence[Document] = ()
        """The host's own, as they were compiled last."""
        self._statements: dict[int, tuple[Fact, ...]] = {}
        """What blocks of entities state; those of a block where something changed are absent."""
        self._deriver = EdgeDeriver(options)
        self._graph = GraphBuilder(weights=_WEIGHTS)

    def prepare(self, entities: Iterable[Entity], documents: Iterable[Document] = ()) -> None:
        """Make *entities* the catalog, in any order; what is known of equal ones is kept.

        Args:
            entities: With all that hints and rules say.
            documents: The host's own, for the search texts in them.
        """
        listed = _with_search_texts(entities, documents)
        before, wanted = self._prepared, {entity.id: entity for entity in listed}
        same = {
            key: item
            for key, item in before.items()
            if (entity := wanted.get(key)) is item.entity or entity == item.entity
        }
        new = [self._prepare(entity) for key, entity in wanted.items() if key not in same]
        gone = [item for key, item in before.items() if key not in same]
        prepared = sorted([*same.values(), *new], key=attrgetter("sort_key"))
        self._prepared = {item.entity.id: item for item in prepared}
        read = prepared if gone else new
        texts = dict(chain.from_iterable(item.texts.items() for item in read))
        if gone:
            self._vectors = {key: row for key, row in self._vectors.items() if key in texts}
            self._missing.clear()
        self._missing |= {key: text for key, text in texts.items() if key not in self._vectors}
        self._incomplete = [
            item for item in (*self._incomplete, *new) if self._prepared.get(item.entity.id) is item
        ]
        changed = self._deriver.update(
            [item.entity for item in gone if item.document],
            [item.entity for item in new if item.document],
        )
        changed_items = [*new, *(self._prepared[key] for key in changed if key in same)]
        for item in changed_items:
            edges = self._deriver.edges.get(item.entity.id, {})
            item.statements = (*item.facts, *_derived_facts(item.node, edges))
        for item in (*gone, *changed_items):
            self._statements.pop(item.block, None)

    def _prepare(self, entity: Entity) -> _PreparedEntity:
        whole, name = embedding_text(entity), name_text(entity)
        keys = text_key(whole), text_key(name)
        examples = {text_key(text): text for text in example_texts(entity)}
        is_node = row_of(entity.kind).graph and not entity.described
        document = document_of(entity, self._options) if is_node else None
        facts = DocumentReader().read([document])[0][0] if document else ()
        names = map(fold, (entity.exposed_name, entity.name))
        traits = traits_of(entity)
        return _PreparedEntity(
            entity=entity,
            sort_key=(entity.exposed_name.casefold(), entity.id),
            names=tuple(dict.fromkeys(names)),
            traits=self._traits.setdefault(traits, traits),
            block=zlib.crc32(entity.id.encode("utf-8", "surrogatepass")) % _BLOCKS,
            group=entity.server if entity.kind in LISTED else entity.id,
            node=node_of(entity.id),
            document=document,
            facts=facts,
            statements=facts,
            fields={str(field): text for field, text in lexical_fields(entity).items()},
            texts={keys[0]: whole, keys[1]: name, **examples},
            keys=keys,
            examples=tuple(examples),
        )

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
        self._vectors |= {
            key: row for key, row in rows.items() if self._missing.pop(key, None) is not None
        }
        ready = [item for item in self._incomplete if item.keys[0] in self._vectors]
        wholes = [self._vectors[item.keys[0]] for item in ready]
        names = [self._vectors.get(item.keys[1]) for item in ready]
        for item, row in zip(ready, blend_name_vectors(wholes, names), strict=True):
            examples = [self._vectors[key] for key in item.examples if key in self._vectors]
            item.row = lean_to_examples(row, examples)
        self._incomplete = [
            item for item in self._incomplete if not item.texts.keys() <= self._vectors.keys()
        ]

    def compile(
        self, *, documents: Sequence[Document] = (), diagnostics: Sequence[Diagnostic] = ()
    ) -> Snapshot:
        """Compile the catalog.

        Args:
            documents: The host's own graph documents.
            diagnostics: What went wrong so far.
        """
        prepared = list(self._prepared.values())
        by_name: dict[str, tuple[int, ...]] = {}
        for position, item in enumerate(prepared):
            for name in item.names:
                by_name[name] = (*by_name.get(name, ()), position)
        groups = [item.group for item in prepared]
        numbers = {group: number for number, group in enumerate(dict.fromkeys(groups))}
        self._documents = documents
        lexical, graph = self._texts(documents)
        snapshot = Snapshot(
            version=0,
            entities=tuple(item.entity for item in prepared),
            by_name=by_name,
            eligibility=Eligibility.of(list(self._prepared), [item.traits for item in prepared]),
            lexical=lexical,
            graph=graph if prepared else None,
            vectors=None,
            mean_vector=None,
            server_ids=np.asarray([numbers[group] for group in groups], dtype=np.intp),
        )
        return self.with_vectors(snapshot, diagnostics)

    def part(self, snapshot: Snapshot, whole: CatalogStatistics) -> Snapshot | None:
        """Return *snapshot* as a part of the catalog that *whole* counts.

        Args:
            snapshot: The last one, compiled by itself.
            whole: Of all parts, this one among them.

        Returns:
            None if the catalog that was prepared is another one.
        """
        if [*snapshot.eligibility.by_id] != [*self._prepared]:
            return None
        lexical, graph = self._texts(self._documents, whole)
        return replace(snapshot, lexical=lexical, graph=graph if self._prepared else None)

    def _texts(
        self, documents: Sequence[Document], whole: CatalogStatistics | None = None
    ) -> tuple[BM25Index, ToolGraph]:
        prepared = self._prepared.values()
        rows = {item.node: item.fields for item in prepared}
        lexical = self._graph.index(rows, None if whole is None else whole.words)
        graph = self._graph.build(
            documents,
            names=host_names([item.entity for item in prepared]) if documents else NO_NAMES,
            others=[item.document for item in prepared if item.document] if documents else (),
            derived=self._blocks(),
            rows=rows,
            texts=lexical,
            whole=None if whole is None else whole.graph_words,
        )
        return lexical, ToolGraph.of(graph)

    def _blocks(self) -> list[tuple[Fact, ...]]:
        """Return what the entities state, in blocks; what did not change is the same object."""
        if len(self._statements) < _BLOCKS:
            blocks: dict[int, list[Fact]] = {
                block: [] for block in range(_BLOCKS) if block not in self._statements
            }
            for item in self._prepared.values():
                if item.block in blocks:
                    blocks[item.block] += item.statements
            self._statements |= {block: tuple(facts) for block, facts in blocks.items()}
        return [self._statements[block] for block in range(_BLOCKS)]

    def with_vectors(self, snapshot: Snapshot, diagnostics: Sequence[Diagnostic]) -> Snapshot:
        """Return a new snapshot: *snapshot* with the vectors that there are now.

        Args:
            snapshot: Of this catalog.
            diagnostics: Instead of those that it had.
        """
        self._version += 1
        items = map(self._prepared.get, snapshot.eligibility.by_id)
        rows = [None if item is None else item.row for item in items]
        matrix, mean = None, None
        has_vector: Mask = np.array([row is not None for row in rows], dtype=np.bool_)
        if has_vector.any():
            zeros = np.zeros_like(rows[int(has_vector.argmax())])
            matrix = np.concatenate([zeros if row is None else row for row in rows])
            matrix = matrix.reshape(len(rows), -1)
            mean = _mean(matrix, has_vector, snapshot.eligibility)
        present = None if has_vector.all() else has_vector
        return replace(
            snapshot,
            version=self._version,
            vectors=None if matrix is None else VectorIndex.of(matrix, present=present),
            mean_vector=mean,
            diagnostics=tuple(diagnostics),
        )


def _derived_facts(node: str, edges: Edges) -> Iterator[Fact]:
    """Yield the edges that rules derive as facts with the rule as their origin."""
    for (relation, target), rule in edges.items():
        yield Fact(
            subject=node,
            predicate=_PREDICATES[relation],
            object=node_of(target),
            literal=False,
            origin=rule,
            declared=False,
        )


def host_names(entities: Sequence[Entity]) -> Mapping[str, str]:
    """Return ids, exposed names and own names that only one entity has, with their nodes."""
    own = Counter(entity.name for entity in entities)
    nodes = {entity.id: node_of(entity.id) for entity in entities}
    names = {entity.name: nodes[entity.id] for entity in entities if own[entity.name] == 1}
    names |= {entity.exposed_name: nodes[entity.id] for entity in entities}
    return names | nodes


def _with_search_texts(entities: Iterable[Entity], documents: Iterable[Document]) -> list[Entity]:
    """Return *entities* with the search texts that the host's *documents* give them.

    What hints or rules say wins. A text that is too long is cut.
    """
    listed = list(entities)
    stated = [each for each in documents if each.declared and each.search_text.strip()]
    if not stated:
        return listed
    labels = LabelResolver(stated, host_names(listed))
    texts = {labels.subject(each): each.search_text[:MAX_SEARCH_TEXT_CHARS] for each in stated}
    for position, entity in enumerate(listed):
        if (text := texts.get(node_of(entity.id))) and not entity.hints.search_text:
            listed[position] = entity.with_hints(search_text=text)
    return listed


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


def _mean(matrix: Matrix, has_vector: Mask, eligibility: Eligibility) -> Vector:
    """Return the mean row of what servers list: what stands beside it must not move it."""
    listed = has_vector.copy()
    listed[eligibility.positions_not_of_kinds(LISTED)] = False
    listed &= eligibility.has("described", False)
    chosen = listed if listed.any() else has_vector
    total = np.dot(chosen.astype(np.float32), matrix)
    return np.asarray(total / np.count_nonzero(chosen), dtype=np.float32)


def lean_to_examples(row: Vector, examples: Sequence[Vector]) -> Vector:
    """Turn an entity's vector towards those of requests that it serves.

    A few of them may be unlike the rest, so n of them count n / (n + 1) of `EXAMPLE_SHARE`.

    Args:
        row: The entity's vector, of unit length.
        examples: The requests' vectors; without any the row stays as it is.
    """
    if not examples:
        return row
    share = EXAMPLE_SHARE * len(examples) / (len(examples) + 1)
    mean = unit_rows(np.mean(examples, axis=0, keepdims=True))
    leaning: Vector = unit_rows((1 - share) * row[None] + share * mean)[0]
    return leaning
