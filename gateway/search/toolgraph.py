"""Entities <-> Markdown-LD: a tool becomes a document, a node becomes an entity again.

* What is generated here is *derived*; only the host's own documents are *declared*. What an
  upstream says of itself is never declared, whatever its text claims.
* Names a host may use in its documents: the canonical id, the exposed name, the source's own name
  if only one entity has it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote, unquote

import numpy as np
from numpy.typing import NDArray

from gateway.catalog.kinds import KINDS
from gateway.config import GraphOptions
from gateway.search.derive import Relation, derive, nouns_of
from gateway.search.eligible import Mask
from gateway.search.kept import Kept, Memo
from gateway.search.texts import humanized, lexical_fields
from gateway.types import Entity, JsonObject, PathStep
from graphs import Document, Fact, GraphIndex, Link, Section, Step
from graphs.text import fold

NODE_BASE = "urn:tool-gateway:tool:"
DERIVED = "derived/"
"""Where derived edges come from, as their source says it: this, and the name of the rule."""


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

    def steps(self, path: Iterable[Step]) -> tuple[PathStep, ...]:
        """Say the graph's evidence in the gateway's words: entities by their ids."""
        return tuple(
            PathStep(
                subject=self.said(step.subject),
                predicate=step.predicate,
                object=self.said(step.object),
                source=f"{step.path}:{step.line}" if step.line else step.path,
                declared=step.declared,
            )
            for step in path
        )

    def said(self, node: str) -> str:
        """Give the id of the entity that *node* is; another node stays what it is."""
        return unquote(node.removeprefix(NODE_BASE)) if node in self.positions else node

    def allowed(self, mask: Mask) -> Mask:
        """Say of each document of the graph whether its entity passes *mask*."""
        # The last place stands for documents of no entity, which nobody may find.
        return np.append(mask, np.False_)[self.owners]


def build(
    entities: Sequence[Entity],
    documents: Iterable[Document] = (),
    *,
    options: GraphOptions | None = None,
    kept: Kept | None = None,
) -> ToolGraph:
    """Compile the graph of *entities* and of the host's own *documents*.

    Args:
        entities: The catalog.
        documents: What the host declares; it wins over what is derived.
        options: Which edges are derived; None derives all.
        kept: What the last build leaves to this one; it must have had the same *options*.
    """
    chosen = options or GraphOptions()
    kept = kept or Kept()
    kept.documents = kept.documents or Memo(lambda entity: document_of(entity, chosen))
    nodes = tuple(node_of(entity.id) for entity in entities)
    told = [entity for entity in entities if KINDS[entity.kind].graph]
    index = kept.compiler.compile(
        [*documents, *kept.documents.of(told), *_derived(told, chosen)], names=names_of(entities)
    )
    positions = {node: position for position, node in enumerate(nodes)}
    owned = [positions.get(node, len(nodes)) for node in index.nodes[: index.document_count]]
    return ToolGraph(
        index=index,
        facts=tuple(index.facts),
        nodes=nodes,
        positions=positions,
        owners=np.asarray(owned, dtype=np.intp),
    )


def _derived(entities: Sequence[Entity], options: GraphOptions) -> list[Document]:
    """Write what was derived as documents too: one an entity and rule, so that each edge says
    which rule it comes from.
    """
    links: dict[tuple[int, str], dict[Relation, list[Link]]] = {}
    for edge in derive(entities, options):
        by_relation = links.setdefault((edge.subject, edge.rule), {})
        target = Link(target=node_of(entities[edge.object].id))
        by_relation.setdefault(edge.relation, []).append(target)
    return [
        Document(
            id=node_of(entities[subject].id),
            path=DERIVED + rule,
            title=_title(entities[subject]),
            requires=tuple(found.get("requires", ())),
            next_steps=tuple(found.get("next_steps", ())),
            related=tuple(found.get("related", ())),
            declared=False,
        )
        for (subject, rule), found in links.items()
    ]


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
