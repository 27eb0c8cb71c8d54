"""Entities -> the graph: each tool becomes a Markdown-LD document.

* What is generated here is *derived*; only the host's own documents are *declared*. What a server
  says of itself is never declared, whatever its text claims.
* In its documents a host may call an entity by its canonical id, its exposed name, or its own name
  at its source if only one entity has that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from gateway.catalog.kinds import row_of
from gateway.index.rules.edge_deriver import EdgeDeriver, Edges
from gateway.index.rules.name_words import Relation, nouns_of
from gateway.index.texts import humanized, lexical_fields
from gateway.index.tool_graph import ToolGraph, node_of
from gateway.options import GraphOptions
from gateway.types import Entity, JsonObject
from graphs.facts.fact import Fact
from graphs.graph_builder import GraphBuilder
from graphs.lexical.analysis import fold
from graphs.markdown.document import Document, Link, Section

_PREDICATES: Mapping[Relation, str] = {
    "requires": "requires",
    "next_steps": "nextStep",
    "related": "relatedTo",
}


def build_tool_graph(
    entities: Sequence[Entity],
    documents: Iterable[Document] = (),
    *,
    options: GraphOptions | None = None,
) -> ToolGraph:
    """Compile the graph of *entities* and of the host's own *documents* once."""
    return ToolGraphBuilder(options or GraphOptions()).build(entities, documents)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """One entity in the graph."""

    entity: Entity
    node: str
    document: Document | None
    """None for an entity whose kind has no part in the graph."""


class ToolGraphBuilder:
    """Compiles the graph of a catalog that changes. Not for two threads at once.

    What is dear is remembered for each entity: its document with its facts and tokens, and the
    edges that rules derive.

    Args:
        options: Which edges are derived.
    """

    def __init__(self, options: GraphOptions) -> None:
        self._options = options
        self._builder = GraphBuilder()
        self._deriver = EdgeDeriver(options)
        self._entries: dict[str, _Entry] = {}
        self._derived: dict[str, tuple[Fact, ...]] = {}
        """Derived facts by the id of the entity where they start."""

    @property
    def extracted(self) -> int:
        """How many documents the last build worked out; the others were as before."""
        return self._builder.extracted

    def build(self, entities: Sequence[Entity], documents: Iterable[Document]) -> ToolGraph:
        """Compile the graph of *entities*.

        Args:
            entities: The whole catalog, in its order.
            documents: What the host declares; it wins over what is derived.
        """
        before = self._entries
        entries = [self._entry(entity) for entity in entities]
        self._entries = {entry.entity.id: entry for entry in entries}
        self._derive(
            [entry for key, entry in before.items() if self._entries.get(key) is not entry],
            [entry for entry in entries if before.get(entry.entity.id) is not entry],
        )
        index = self._builder.build(
            [*documents, *(entry.document for entry in entries if entry.document is not None)],
            names=host_names(entries),
            derived=[
                self._derived[entry.entity.id]
                for entry in entries
                if entry.entity.id in self._derived
            ],
        )
        forbidden = frozenset(
            (subject, target)
            for subject, predicate, target in index.forbidden
            if predicate in {"", _PREDICATES["next_steps"]}
        )
        return ToolGraph.of(index, tuple(entry.node for entry in entries), forbidden)

    def _entry(self, entity: Entity) -> _Entry:
        cached = self._entries.get(entity.id)
        if cached is not None and (cached.entity is entity or cached.entity == entity):
            return cached
        document = document_of(entity, self._options) if row_of(entity.kind).graph else None
        return _Entry(entity=entity, node=node_of(entity.id), document=document)

    def _derive(self, gone: Iterable[_Entry], new: Iterable[_Entry]) -> None:
        reread = self._deriver.update(
            [entry.entity for entry in gone if entry.document is not None],
            [entry.entity for entry in new if entry.document is not None],
        )
        for subject, edges in reread.after.items():
            self._derived[subject] = tuple(_derived_facts(subject, edges))
            if not edges:
                del self._derived[subject]


def _derived_facts(subject: str, edges: Edges) -> Iterator[Fact]:
    """Yield the edges that rules derive as facts with the rule as their origin."""
    for (relation, target), rule in edges.items():
        yield Fact(
            subject=node_of(subject),
            predicate=_PREDICATES[relation],
            object=node_of(target),
            literal=False,
            origin=rule,
            declared=False,
        )


def document_of(entity: Entity, options: GraphOptions) -> Document:
    """Describe *entity* as a Markdown-LD document."""
    texts = lexical_fields(entity)
    hints = entity.hints
    flows = options.data_flow
    return Document(
        id=node_of(entity.id),
        title=entity.definition.title or humanized(entity.name),
        summary=entity.description,
        keywords=(entity.exposed_name, humanized(entity.server), *hints.keywords),
        tags=(*hints.tags, *hints.categories),
        aliases=hints.aliases,
        groups=tuple(Link(target=group) for group in _groups(entity)) if options.groups else (),
        consumes=_data_links(entity.required) if flows else (),
        produces=_data_links(_properties(entity.definition.output_schema)) if flows else (),
        sections=tuple(
            Section(heading=name.capitalize(), level=2, text=texts[name])
            for name in ("parameters", "examples", "skills", "metadata", "tools")
            if texts.get(name)
        ),
        declared=False,
    )


def _data_links(names: Iterable[str]) -> tuple[Link, ...]:
    """Return links to kinds of data, called as their fields are: equal names are equal data."""
    kinds = dict.fromkeys(f"data {fold(name)}" for name in names)
    return tuple(Link(target=kind) for kind in kinds)


def _properties(schema: JsonObject | None) -> tuple[str, ...]:
    properties = schema.get("properties") if schema else None
    return tuple(map(str, properties)) if isinstance(properties, Mapping) else ()


def _groups(entity: Entity) -> list[str]:
    domains = [f"{entity.server} {noun}" for noun in nouns_of(entity)]
    return [*domains, *(f"category {category}" for category in entity.hints.categories)]


def names_of(entities: Iterable[Entity]) -> Mapping[str, str]:
    """Return the node of each name that a host may use in its documents."""
    return host_names(
        [_Entry(entity=entity, node=node_of(entity.id), document=None) for entity in entities]
    )


def host_names(entries: Sequence[_Entry]) -> Mapping[str, str]:
    """Return ids, exposed names and own names that only one entity has, with their nodes."""
    own: dict[str, str] = {}
    for entry in entries:
        name = entry.entity.name
        own[name] = "" if name in own else entry.node
    names = {name: node for name, node in own.items() if node}
    names |= {entry.entity.exposed_name: entry.node for entry in entries}
    names |= {entry.entity.id: entry.node for entry in entries}
    return names
