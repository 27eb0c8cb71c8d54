"""What a person selects of a catalog: by words and facets, page by page or at once. Pure."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedPage(Page):
    """Some of the selected entities, and what may be selected beside or instead."""

    facets: Mapping[str, Mapping[str, int]]
    """The number of entities by value of ``kind``, ``server``, ``tag``, ``status`` and ``enabled``:
    what the selection would hold with that value instead of its own; with that tag too. The most
    frequent value first."""


_VALUES: Mapping[str, Callable[[Entity], Iterable[str]]] = {
    "kind": lambda entity: (entity.kind,),
    "server": lambda entity: (entity.server,),
    "tag": lambda entity: {tag.casefold() for tag in entity.hints.tags},
    "status": lambda entity: (entity.status,),
    "enabled": lambda entity: ("true" if entity.hints.enabled else "false",),
}
"""What an entity has of each facet."""


def page_of(entities: Sequence[Entity], *, after: str, limit: int | None) -> Page:
    """Return the entities that follow the id *after*, by id; *limit* None returns all of them."""
    following = [entity for entity in entities if entity.id > after]
    if limit is None:
        limit = len(following)
    page = heapq.nsmallest(limit + 1, following, key=lambda entity: entity.id)
    more = page[limit - 1].id if len(page) > limit else ""
    return Page(entities=tuple(page[:limit]), next=more, total=len(entities))


def select(
    entities: Iterable[Entity], selection: Selection, *, after: str = "", limit: int | None = None
) -> SelectedPage:
    """Return those of *entities* that are selected and follow the id *after*, by id.

    Args:
        entities: Those that may be seen.
        selection: Which of them are wanted.
        after: The `Page.next` of the page before.
        limit: How many at most, >= 1; None is all.
    """
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
        if (words and not _holds(entity, words)) or (tags and not tags <= {*_tags(entity)}):
            continue
        missed = [facet for facet, values in checks if values.isdisjoint(_VALUES[facet](entity))]
        if not missed:
            selected.append(entity)
        for facet in missed if len(missed) == 1 else () if missed else _VALUES:
            counts[facet].update(_VALUES[facet](entity))
    page = page_of(selected, after=after, limit=limit)
    facets = {facet: _ordered(found) for facet, found in counts.items()}
    return SelectedPage(entities=page.entities, next=page.next, total=page.total, facets=facets)


def _tags(entity: Entity) -> Iterable[str]:
    return _VALUES["tag"](entity)


def _holds(entity: Entity, words: Sequence[str]) -> bool:
    texts = entity.name, entity.definition.title, entity.description, entity.server
    text = "\n".join(texts).casefold()
    return all(word in text for word in words)


def _ordered(counts: Mapping[str, int]) -> Mapping[str, int]:
    return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))
