"""Selection of entities by words and facets, for lists that people read. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from gateway.types import Entity, Kind, Status


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Conditions for entities; an empty value means any."""

    text: str = ""
    """Texts, separated by spaces, that must all occur in name, title, description or server, in any
    case."""
    kinds: frozenset[Kind] = frozenset()
    servers: frozenset[str] = frozenset()
    tags: frozenset[str] = frozenset()
    """Tags that an entity must all have, compared without case."""
    statuses: frozenset[Status] = frozenset()
    enabled: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One page of entities."""

    entities: tuple[Entity, ...]
    """Entities, ordered by id."""
    next: str = ""
    """Argument *after* for the next page; "" on the last page."""
    total: int
    """Number of entities on all pages."""
    facets: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Number of entities for each value of ``kind``, ``server``, ``tag``, ``status`` and
    ``enabled``, most frequent first. Except for tags, a count ignores the selection's condition on
    the same facet. Empty without a selection."""


def _tags(entity: Entity) -> set[str]:
    return {tag.casefold() for tag in entity.hints.tags}


_VALUES: Mapping[str, Callable[[Entity], Iterable[str]]] = {
    "kind": lambda entity: (entity.kind,),
    "server": lambda entity: (entity.server,),
    "tag": _tags,
    "status": lambda entity: (entity.status,),
    "enabled": lambda entity: ("true" if entity.hints.enabled else "false",),
}
"""Functions that return an entity's values for a facet, keyed by facet."""


def select(
    entities: Iterable[Entity], selection: Selection
) -> tuple[list[Entity], Mapping[str, Mapping[str, int]]]:
    """Return the selected entities and their facets (`Page.facets`)."""
    conditions: Mapping[str, frozenset[str]] = {
        "kind": selection.kinds,
        "server": selection.servers,
        "status": selection.statuses,
        "enabled": frozenset(() if selection.enabled is None else [str(selection.enabled).lower()]),
    }
    checks = [(facet, values) for facet, values in conditions.items() if values]
    words, tags = selection.text.casefold().split(), {tag.casefold() for tag in selection.tags}
    counts: Mapping[str, Counter[str]] = {facet: Counter() for facet in _VALUES}
    selected = []
    for entity in entities:
        if (words and not _contains_words(entity, words)) or (tags and not tags <= _tags(entity)):
            continue
        failed_facets = [
            facet for facet, values in checks if values.isdisjoint(_VALUES[facet](entity))
        ]
        if not failed_facets:
            selected.append(entity)
        for facet in failed_facets if len(failed_facets) == 1 else () if failed_facets else _VALUES:
            counts[facet].update(_VALUES[facet](entity))
    # Sort by frequency, then alphabetically.
    facets = {
        name: dict(Counter(dict(sorted(counter.items()))).most_common())
        for name, counter in counts.items()
    }
    return selected, facets


def _contains_words(entity: Entity, words: Sequence[str]) -> bool:
    texts = entity.name, entity.definition.title, entity.description, entity.server
    text = "\n".join(texts).casefold()
    return all(word in text for word in words)
