"""Entities <-> Markdown-LD: each tool becomes a document, and nodes of the graph lead back to them.

* What is generated here is *derived*; only the host's own documents are *declared*. What a server
  says of itself is never declared, whatever its text claims.
* In its documents a host may call an entity by its canonical id, its exposed name, or its own name
  at its source if only one entity has that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from gateway.catalog.kinds import row_of
from gateway.index.rules.edge_deriver import Deriver, Edges
from gateway.index.rules.name_words import Relation, nouns_of
from gateway.index.texts import humanized, lexical_fields
from gateway.options import GraphOptions
from gateway.runtime.vectors import NDArray
from gateway.search.index.toolgraph import ToolGraph, node_of, placed
from gateway.types import Entity, JsonObject
from graphs.arrays import Moves
from graphs.compiler import Compiler
from graphs.facts.build import content
from graphs.facts.fact import Fact
from graphs.facts.provenance import Content
from graphs.graph import GraphIndex
from graphs.lexical.analysis import fold
from graphs.markdown.document import Document
from graphs.markdown.parts import Link, Section
from graphs.standing import Standing

_PREDICATES: Mapping[Relation, str] = {
    "requires": "requires",
    "next_steps": "nextStep",
    "related": "relatedTo",
}


def build(
    entities: Sequence[Entity],
    documents: Iterable[Document] = (),
    *,
    options: GraphOptions | None = None,
) -> ToolGraph:
    """Compile the graph of *entities* and of the host's own *documents*; see `ToolGraphs`."""
    return ToolGraphs(options or GraphOptions()).build(entities, documents)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Change:
    """How the catalog changed since the last build."""

    moves: Moves
    gone: Mapping[int, Entity]
    """By their positions until now."""
    new: Mapping[int, Entity]
    """By their positions from now on."""

    @classmethod
    def between(cls, before: Sequence[Entity], after: Sequence[Entity]) -> _Change:
        """Compare two catalogs; an entity that changed is both gone and new."""
        known = {entity.id: position for position, entity in enumerate(before)}
        stays: list[tuple[int, int]] = []
        for position, entity in enumerate(after):
            old = known.get(entity.id)
            if old is not None and (before[old] is entity or before[old] == entity):
                stays.append((old, position))
        if any(left[0] > right[0] for left, right in pairwise(stays)):
            stays = []
        olds, positions = {old for old, _ in stays}, {position for _, position in stays}
        gone = {at: entity for at, entity in enumerate(before) if at not in olds}
        new = {at: entity for at, entity in enumerate(after) if at not in positions}
        moves = Moves(size=len(before), gone=list(gone), new=list(new))
        return cls(moves=moves, gone=gone, new=new)


class ToolGraphs:
    """The graph of a catalog that changes. Not for two threads at once.

    Args:
        options: Which edges are derived.
    """

    def __init__(self, options: GraphOptions) -> None:
        self._options = options
        self._entities: tuple[Entity, ...] = ()
        self.compiler = Compiler()
        self.deriver = Deriver(options)
        self._names = _Names()
        self._nodes: list[str] = []
        self._positions = Standing.of(())
        self._documents: dict[Content, None] = {}
        self._owners: NDArray[np.intp] = np.zeros(0, dtype=np.intp)

    def build(self, entities: Sequence[Entity], documents: Iterable[Document]) -> ToolGraph:
        """Compile the graph of *entities*; what did not change since the last build is reused.

        Args:
            entities: The whole catalog, in its order.
            documents: What the host declares; it wins over what is derived.
        """
        step = _Change.between(self._entities, entities)
        self._entities = tuple(entities)
        nodes = self._moved(step)
        left = [node_of(entity.id) for entity in step.gone.values()]
        positions = self._positions = self._positions.moved(nodes, left, step.moves)
        gone, new = _told(step.gone), _told(step.new)
        given = dict.fromkeys(map(content, documents))
        reread = self.deriver.change(gone, new)
        index = self.compiler.change(
            gone=[
                *(each[0] for each in self._documents if each not in given),
                *(document_of(entity, self._options) for entity in gone),
            ],
            new=[
                *(each[0] for each in given if each not in self._documents),
                *(document_of(entity, self._options) for entity in new),
            ],
            names=self._names.change(step.gone.values(), step.new.values()),
            unsaid=_facts(reread.before),
            said=_facts(reread.after),
        )
        self._documents = given
        self._owners = self._owned(step, index, positions)
        return self._graph(index, nodes, positions)

    def _moved(self, step: _Change) -> tuple[str, ...]:
        nodes = self._nodes
        for at in reversed(step.moves.gone):
            del nodes[at]
        for at in step.moves.new:
            nodes.insert(at, node_of(step.new[at].id))
        return tuple(nodes)

    def _graph(
        self, index: GraphIndex, nodes: tuple[str, ...], positions: Mapping[str, int]
    ) -> ToolGraph:
        owners = self._owners[: index.document_count]
        conditions = index.adjacency.stated(("prerequisite", "consumes"), declared=True)
        guesses = index.adjacency.stated(("prerequisite",), declared=False)
        return ToolGraph(
            index=index,
            nodes=nodes,
            positions=positions,
            owners=owners,
            places=placed(owners, len(nodes)),
            owned=bool((owners >= 0).all()),
            conditioned=frozenset(index.nodes[at] for at in conditions),
            guessed=frozenset(index.nodes[at] for at in guesses),
            forbidden=frozenset(
                (subject, target)
                for subject, predicate, target in self.compiler.forbidden
                if predicate in {"", _PREDICATES["next_steps"]}
            ),
        )

    def _owned(
        self, step: _Change, index: GraphIndex, positions: Mapping[str, int]
    ) -> NDArray[np.intp]:
        """Give the position of the entity of each document; -1 if it has none."""
        moves = index.moves or Moves(size=0, gone=(), new=range(len(index.nodes)))
        owners = step.moves.placed(moves.rows(self._owners))
        for at in moves.new:
            owners[at] = positions.get(index.nodes[at], -1)
        for position in step.new:
            place = index.position(self._nodes[position])
            if place is not None:
                owners[place] = position
        return np.asarray(owners, dtype=np.intp)


def _told(entities: Mapping[int, Entity]) -> list[Entity]:
    return [entity for entity in entities.values() if row_of(entity.kind).graph]


def _facts(edges: Mapping[str, Edges]) -> Iterator[Fact]:
    """Give the edges that rules derive as facts whose sources name the rules."""
    for subject, found in edges.items():
        for (relation, target), rule in found.items():
            yield Fact(
                subject=node_of(subject),
                predicate=_PREDICATES[relation],
                object=node_of(target),
                literal=False,
                origin=rule,
                declared=False,
            )


def document_of(entity: Entity, options: GraphOptions) -> Document:
    """Write *entity* as a Markdown-LD document."""
    texts = lexical_fields(entity)
    hints = entity.hints
    flows = options.data_flow
    return Document(
        id=node_of(entity.id),
        title=_title(entity),
        summary=entity.description,
        keywords=(entity.exposed_name, humanized(entity.server), *hints.keywords),
        tags=(*hints.tags, *hints.categories),
        aliases=hints.aliases,
        groups=tuple(Link(target=group) for group in _groups(entity)) if options.groups else (),
        consumes=_data(entity.required) if flows else (),
        produces=_data(_properties(entity.definition.output_schema)) if flows else (),
        sections=_sections(
            Parameters=texts.get("parameters", ""),
            Examples=texts.get("examples", ""),
            Skills=texts.get("skills", ""),
            Metadata=texts.get("metadata", ""),
            Tools=texts.get("tools", ""),
        ),
        declared=False,
    )


def _title(entity: Entity) -> str:
    return entity.definition.title or humanized(entity.name)


def _data(names: Iterable[str]) -> tuple[Link, ...]:
    """Give links to kinds of data, called as their fields are: equal names are equal data."""
    kinds = dict.fromkeys(f"data {fold(name)}" for name in names)
    return tuple(Link(target=kind) for kind in kinds)


def _properties(schema: JsonObject | None) -> tuple[str, ...]:
    properties = schema.get("properties") if schema else None
    return tuple(map(str, properties)) if isinstance(properties, Mapping) else ()


def _sections(**texts: str) -> tuple[Section, ...]:
    return tuple(
        Section(heading=heading, level=2, text=text, line=0)
        for heading, text in texts.items()
        if text
    )


def names_of(entities: Iterable[Entity]) -> Mapping[str, str]:
    """Give the node of each name that a host may use in its documents."""
    return _Names().change((), entities)


class _Names:
    """The names that a host may use: ids, exposed names, own names that only one tool has."""

    def __init__(self) -> None:
        self._ids: dict[str, str] = {}
        self._exposed: dict[str, str] = {}
        self._own: dict[str, tuple[str, ...]] = {}

    def change(self, gone: Iterable[Entity], new: Iterable[Entity]) -> dict[str, str]:
        """Take the names of some entities out and put others in.

        Returns:
            The names whose meaning changed, with the node each means now; empty if it means none.
        """
        old, fresh = tuple(gone), tuple(new)
        names = {
            name for each in (*old, *fresh) for name in (each.id, each.exposed_name, each.name)
        }
        before = {name: self._meaning(name) for name in sorted(names)}
        for entity in old:
            del self._ids[entity.id], self._exposed[entity.exposed_name]
            own = self._own.pop(entity.name)
            if len(own) > 1:
                self._own[entity.name] = tuple(key for key in own if key != entity.id)
        for entity in fresh:
            self._ids[entity.id] = self._exposed[entity.exposed_name] = entity.id
            self._own[entity.name] = (*self._own.get(entity.name, ()), entity.id)
        return {
            name: now for name, known in before.items() if (now := self._meaning(name)) != known
        }

    def _meaning(self, name: str) -> str:
        found = self._ids.get(name) or self._exposed.get(name)
        own = self._own.get(name, ())
        if not found and len(own) == 1:
            (found,) = own
        return node_of(found) if found else ""


def _groups(entity: Entity) -> list[str]:
    domains = [f"{entity.server} {noun}" for noun in nouns_of(entity)]
    return [*domains, *(f"category {category}" for category in entity.hints.categories)]
