"""Entities <-> Markdown-LD: a tool becomes a document, a node becomes an entity again.

* What is generated here is *derived*; only the host's own documents are *declared*. What an
  upstream says of itself is never declared, whatever its text claims.
* Names a host may use in its documents: the canonical id, the exposed name, the source's own name
  if only one entity has it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from urllib.parse import quote, unquote

import numpy as np
from numpy.typing import NDArray

from gateway.catalog.kinds import KINDS
from gateway.config import GraphOptions
from gateway.search.derive import derive, nouns_of
from gateway.search.eligible import Mask
from gateway.search.kept import Kept, Memo
from gateway.search.namewords import Relation
from gateway.search.texts import humanized, lexical_fields
from gateway.types import Entity, JsonObject, PathStep
from graphs import Document, Fact, GraphIndex, Link, Section, Step
from graphs.index import EDGE_PREDICATES
from graphs.text import fold

NODE_BASE = "urn:tool-gateway:tool:"
DERIVED = "derived/"
"""Where derived edges come from, as their source says it: this, and the name of the rule."""
USAGE = "usage"
"""The rule of edges that calls have shown."""
_PREDICATES: Mapping[Relation, str] = {
    "requires": "requires",
    "next_steps": "nextStep",
    "related": "relatedTo",
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ToolGraph:
    """The compiled graph, and the way between its nodes and the catalog."""

    index: GraphIndex
    facts: tuple[Fact, ...]
    nodes: tuple[str, ...]
    """The node of each entity, by position."""
    positions: Mapping[str, int]
    """The entity of each node that is one."""
    owners: NDArray[np.intp]
    """The entity of each of the graph's documents, by its place; the last + 1 if it has none."""
    conditioned: frozenset[str]
    """The nodes of which the host declares what must come before them, or what they consume."""
    owned: bool
    """Whether every document is some entity's."""

    def steps(self, path: Iterable[Step]) -> tuple[PathStep, ...]:
        """Say the graph's evidence in the gateway's words: entities by their ids."""
        return tuple(
            PathStep(
                subject=self.said(step.subject),
                predicate=step.predicate,
                object=self.said(step.object),
                source=_source(step),
                declared=step.declared,
            )
            for step in path
        )

    def said(self, node: str) -> str:
        """Give the id of the entity that *node* is; another node stays what it is."""
        return unquote(node.removeprefix(NODE_BASE)) if node in self.positions else node

    def allowed(self, mask: Mask) -> Mask | None:
        """Say of each document of the graph whether its entity passes *mask*; None if all do."""
        if self.owned and mask.all():
            return None
        # The last place stands for documents of no entity, which nobody may find.
        return np.append(mask, np.False_)[self.owners]


def build(
    entities: Sequence[Entity],
    documents: Iterable[Document] = (),
    *,
    options: GraphOptions | None = None,
    learned: Iterable[Fact] = (),
    kept: Kept | None = None,
) -> ToolGraph:
    """Compile the graph of *entities* and of the host's own *documents*.

    Args:
        entities: The catalog.
        documents: What the host declares; it wins over what is derived.
        options: Which edges are derived; None derives all.
        learned: Edges that use has shown, between nodes of *entities* (`node_of`), each weighed
            by how sure it is. Whatever they say of themselves, they are derived, by the rule
            ``usage``: what the host wrote wins, what it forbids is dropped. Edges of tools that
            are gone are left out.
        kept: What the last build leaves to this one; it must have had the same *options*.
    """
    chosen = options or GraphOptions()
    kept = kept or Kept()
    kept.documents = kept.documents or Memo(lambda entity: document_of(entity, chosen))
    nodes = tuple(node_of(entity.id) for entity in entities)
    told = [entity for entity in entities if KINDS[entity.kind].graph]
    positions = {node: position for position, node in enumerate(nodes)}
    index = kept.compiler.compile(
        [*documents, *kept.documents.of(told)],
        names=names_of(entities),
        derived=[*_derived(told, chosen), *_learned(learned, positions)],
    )
    owned = [positions.get(node, len(nodes)) for node in index.nodes[: index.document_count]]
    return ToolGraph(
        index=index,
        facts=tuple(index.facts),
        nodes=nodes,
        positions=positions,
        owners=np.asarray(owned, dtype=np.intp),
        owned=len(nodes) not in owned,
        conditioned=frozenset(
            fact.subject
            for fact in index.facts
            if fact.declared and EDGE_PREDICATES.get(fact.predicate) in {"prerequisite", "consumes"}
        ),
    )


def _derived(entities: Sequence[Entity], options: GraphOptions) -> Iterator[Fact]:
    """Give what the rules derive; each edge says which rule it comes from."""
    nodes = [node_of(entity.id) for entity in entities]
    for edge in derive(entities, options):
        yield Fact(
            subject=nodes[edge.subject],
            predicate=_PREDICATES[edge.relation],
            object=nodes[edge.object],
            literal=False,
            origin=edge.rule,
            declared=False,
        )


def _learned(edges: Iterable[Fact], positions: Mapping[str, int]) -> Iterator[Fact]:
    for edge in edges:
        known = edge.subject in positions and edge.object in positions
        if known and not edge.literal and edge.predicate in _PREDICATES.values():
            yield replace(edge, origin=USAGE, path="", line=0, declared=False)


def _source(step: Step) -> str:
    if step.origin:
        return DERIVED + step.origin
    return f"{step.path}:{step.line}" if step.line else step.path


def node_of(entity_id: str) -> str:
    """Give the graph's node of an entity."""
    return NODE_BASE + quote(entity_id, safe="/")


def document_of(entity: Entity, options: GraphOptions) -> Document:
    """Write what is known of *entity* as a Markdown-LD document."""
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
            Parameters=texts.get("parameters", ""), Examples=texts.get("examples", "")
        ),
        declared=False,
    )


def _title(entity: Entity) -> str:
    return entity.definition.title or humanized(entity.name)


def _data(names: Iterable[str]) -> tuple[Link, ...]:
    """Name kinds of data by the fields that carry them: equal names are equal data."""
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


def names_of(entities: Sequence[Entity]) -> dict[str, str]:
    """Give the node of each name that a host may use in its documents."""
    own = Counter(entity.name for entity in entities)
    names: dict[str, str] = {}
    for entity in entities:
        node = node_of(entity.id)
        if own[entity.name] == 1:
            names[entity.name] = node
        names[entity.exposed_name] = node
        names[entity.id] = node
    return names


def _groups(entity: Entity) -> list[str]:
    domains = [f"{entity.server} {noun}" for noun in nouns_of(entity)]
    return [*domains, *(f"category {category}" for category in entity.hints.categories)]
