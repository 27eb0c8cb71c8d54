"""Entities <-> Markdown-LD: a tool becomes a document, a node becomes an entity again.

* What is generated here is *derived*; only the host's own documents are *declared*. What an
  upstream says of itself is never declared, whatever its text claims.
* Names a host may use in its documents: the canonical id, the exposed name, the source's own name
  if only one entity has it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote, unquote

import numpy as np
from numpy.typing import NDArray

from gateway.catalog.kinds import KINDS
from gateway.search.eligible import Mask
from gateway.search.texts import humanized, lexical_fields
from gateway.types import Entity, JsonObject, PathStep
from graphs import Document, Fact, GraphIndex, Link, Section, Step, facts
from graphs.text import fold, split_identifier

NODE_BASE = "urn:tool-gateway:tool:"
MAX_DERIVED_STEPS = 3
MAX_GROUP = 64
"""A word that more tools of one server share than this relates nobody to anybody."""

_DISCOVER = frozenset({"search", "find", "list", "query", "discover", "browse", "lookup", "scan"})
_INSPECT = frozenset(
    {"get", "read", "fetch", "show", "describe", "inspect", "view", "details", "info", "check"}
)
_PHASES: Mapping[int, frozenset[str]] = {0: _DISCOVER, 1: _INSPECT}
_ACT = 2


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
                subject=self._said(step.subject),
                predicate=step.predicate,
                object=self._said(step.object),
                source=f"{step.path}:{step.line}" if step.path else "",
                declared=step.declared,
            )
            for step in path
        )

    def _said(self, node: str) -> str:
        return unquote(node.removeprefix(NODE_BASE)) if node in self.positions else node

    def allowed(self, mask: Mask) -> Mask:
        """Say of each document of the graph whether its entity passes *mask*."""
        # The last place stands for documents of no entity, which nobody may find.
        return np.append(mask, np.False_)[self.owners]


def build(entities: Sequence[Entity], documents: Iterable[Document] = ()) -> ToolGraph:
    """Compile the graph of *entities* and of the host's own *documents*."""
    nodes = tuple(node_of(entity.id) for entity in entities)
    phases = _next_steps(entities)
    generated = [
        document_of(entity, next_steps=phases.get(entity.id, ()))
        for entity in entities
        if KINDS[entity.kind].graph
    ]
    found = facts([*documents, *generated], names=_names(entities))
    index = GraphIndex.compile(found)
    positions = {node: position for position, node in enumerate(nodes)}
    owned = [positions.get(node, len(nodes)) for node in index.nodes[: index.document_count]]
    return ToolGraph(
        index=index,
        facts=found,
        nodes=nodes,
        positions=positions,
        owners=np.asarray(owned, dtype=np.intp),
    )


def node_of(entity_id: str) -> str:
    """Give the graph's node of an entity."""
    return NODE_BASE + quote(entity_id, safe="/")


def document_of(entity: Entity, *, next_steps: Iterable[str] = ()) -> Document:
    """Write what is known of *entity* as a Markdown-LD document."""
    texts = lexical_fields(entity)
    hints = entity.hints
    parameters = texts.get("parameters", "")
    return Document(
        id=node_of(entity.id),
        title=entity.definition.title or humanized(entity.name),
        summary=entity.description,
        keywords=(entity.exposed_name, *hints.keywords),
        tags=(*hints.tags, *hints.categories),
        aliases=hints.aliases,
        groups=tuple(Link(target=group) for group in _groups(entity)),
        next_steps=tuple(Link(target=node_of(step)) for step in next_steps),
        consumes=_data(entity.required),
        produces=_data(_properties(entity.definition.output_schema)),
        sections=_sections(Parameters=parameters, Examples=texts.get("examples", "")),
        declared=False,
    )


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


def _names(entities: Sequence[Entity]) -> dict[str, str]:
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
    domains = [f"{entity.server} {noun}" for noun in _nouns(entity)]
    return [*domains, *(f"category {category}" for category in entity.hints.categories)]


def _phase(entity: Entity) -> int:
    verbs = set(_words(entity))
    return next((phase for phase, words in _PHASES.items() if verbs & words), _ACT)


def _words(entity: Entity) -> list[str]:
    return [word.casefold() for word in split_identifier(entity.name)]


def _nouns(entity: Entity) -> list[str]:
    """The words of the name but its first, which is the verb, and but single letters."""
    words = [word for word in _words(entity) if len(word) > 1]
    verbs = _DISCOVER | _INSPECT
    return list(dict.fromkeys(word for word in words[1:] or words if word not in verbs))


def _next_steps(entities: Sequence[Entity]) -> dict[str, list[str]]:
    """Discover -> inspect -> act, among one server's tools about the same thing.

    Linear in the catalog: a tool looks only at those that share its rarest words.
    """
    about: dict[tuple[str, str], list[int]] = defaultdict(list)
    for position, entity in enumerate(entities):
        for noun in _nouns(entity):
            about[entity.server, _singular(noun)].append(position)
    phases = [_phase(entity) for entity in entities]
    return {
        entity.id: [entities[step].id for step in _followers(position, entity, phases, about)]
        for position, entity in enumerate(entities)
        if phases[position] < _ACT
    }


def _followers(
    position: int,
    entity: Entity,
    phases: Sequence[int],
    about: Mapping[tuple[str, str], Sequence[int]],
) -> list[int]:
    shared: Counter[int] = Counter()
    for noun in _nouns(entity):
        group = about[entity.server, _singular(noun)]
        if len(group) <= MAX_GROUP:
            shared.update(other for other in group if phases[other] > phases[position])
    ranked = sorted(shared, key=lambda other: (-shared[other], phases[other], other))
    return ranked[:MAX_DERIVED_STEPS]


def _singular(noun: str) -> str:
    return noun[:-1] if len(noun) > 3 and noun.endswith("s") and not noun.endswith("ss") else noun
