"""What a person selects of a catalog: by words and facets, page by page or at once. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from gateway.types import Entity, Kind, Status


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which entities are wanted. An empty value wants all."""

    text: str = ""
    """Words, all of which stand in name, title, description or server, in any case."""
    kinds: frozenset[Kind] = frozenset()
    servers: frozenset[str] = frozenset()
    tags: frozenset[str] = frozenset()
    """All of these, compared without case."""
    statuses: frozenset[Status] = frozenset()
    enabled: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Some of the catalog's entities."""

    entities: tuple[Entity, ...]
    """Ordered by id."""
    next: str = ""
    """What to give as *after* for the next page; empty on the last one."""
    total: int
    """The number of entities on all pages."""
    facets: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Of a selection the number of entities by value of ``kind``, ``server``, ``tag``, ``status``
    and ``enabled``: what it would hold with that value instead of its own; with that tag too. The
    most frequent value first."""


def _tags(entity: Entity) -> set[str]:
    return {tag.casefold() for tag in entity.hints.tags}


_VALUES: Mapping[str, Callable[[Entity], Iterable[str]]] = {
    "kind": lambda entity: (entity.kind,),
    "server": lambda entity: (entity.server,),
    "tag": _tags,
    "status": lambda entity: (entity.status,),
    "enabled": lambda entity: ("true" if entity.hints.enabled else "false",),
}
"""What an entity has of each facet."""


def select(
    entities: Iterable[Entity], selection: Selection
) -> tuple[list[Entity], Mapping[str, Mapping[str, int]]]:
    """Return those of *entities* that are selected, and the facets; see `Page.facets`."""
    wanted: Mapping[str, frozenset[str]] = {
        "kind": selection.kinds,
        "server": selection.servers,
        "status": selection.statuses,
        "enabled": frozenset(() if selection.enabled is None else [str(selection.enabled).lower()]),
    }
    checks = [(facet, values) for facet, values in wanted.items() if values]
    words, tags = selection.text.casefold().split(), {tag.casefold() for tag in selection.tags}
    counts: Mapping[str, Counter[str]] = {facet: Counter() for facet in _VALUES}
    selected = []
    for entity in entities:
        if (words and not _holds(entity, words)) or (tags and not tags <= _tags(entity)):
            continue
        missed = [facet for facet, values in checks if values.isdisjoint(_VALUES[facet](entity))]
        if not missed:
            selected.append(entity)
        for facet in missed if len(missed) == 1 else () if missed else _VALUES:
            counts[facet].update(_VALUES[facet](entity))
    # Of equally frequent values the first in the alphabet comes first.
    facets = {
        name: dict(Counter(dict(sorted(found.items()))).most_common())
        for name, found in counts.items()
    }
    return selected, facets


def _holds(entity: Entity, words: Sequence[str]) -> bool:
    texts = entity.name, entity.definition.title, entity.description, entity.server
    text = "\n".join(texts).casefold()
    return all(word in text for word in words)
