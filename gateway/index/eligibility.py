"""Masks of the entities that a search may find, shared by all retrievers. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from gateway.runtime.vectors import NDArray
from gateway.types import ALL_SCOPES, Entity, FilterName, Filters, Kind

Mask = NDArray[np.bool_]
"""True for each eligible entity, shape (n,)."""
Positions = NDArray[np.intp]
Trait: TypeAlias = tuple[str, Hashable]
_NO_POSITIONS = np.zeros(0, dtype=np.intp)
_MAX_MASKS = 64
"""Maximum number of cached masks. Callers with different scopes have different filters."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Eligibility:
    """Index of the traits of all entities, from which masks are made."""

    by_trait: Mapping[Trait, Positions]
    """Positions of the entities with a trait, ascending, keyed by the trait's name and value."""
    by_id: Mapping[str, int]
    masks: dict[Filters, Mask] = field(default_factory=dict)
    """Masks cached by `mask`, keyed by filters."""

    @classmethod
    def of(cls, ids: Sequence[str], traits: Sequence[tuple[Trait, ...]]) -> Eligibility:
        """Index the entities with these *ids* by *traits*, which `traits_of` returned.

        Indexing is faster if equal tuples of traits are the same object.
        """
        objects = np.fromiter(map(id, traits), dtype=np.int64, count=len(traits))
        order = objects.argsort(kind="stable")
        groups = np.split(order, np.flatnonzero(np.diff(objects[order])) + 1)
        parts: defaultdict[Trait, list[Positions]] = defaultdict(list)
        for positions in groups if traits else ():
            for trait in traits[positions[0]]:
                parts[trait].append(positions)
        by_trait = {
            trait: groups_of_trait[0]
            if len(groups_of_trait) == 1
            else np.sort(np.concatenate(groups_of_trait))
            for trait, groups_of_trait in parts.items()
        }
        return cls(by_trait=by_trait, by_id=dict(zip(ids, range(len(ids)), strict=True)))

    @property
    def size(self) -> int:
        """Number of entities."""
        return len(self.by_id)

    def mask(self, filters: Filters) -> Mask:
        """Return the read-only mask of the entities that pass *filters*.

        ``healthy_only`` is ignored, because it must be resolved before.
        """
        mask = self.masks.get(filters)
        if mask is None:
            if len(self.masks) >= _MAX_MASKS:
                self.masks.clear()
            mask = self._combine(filters)
            mask.setflags(write=False)
            self.masks[filters] = mask
        return mask

    def has(self, trait: str, value: Hashable) -> Mask:
        """Return the mask of the entities with this value of a trait, such as ``kind``."""
        return self._has_any(trait, [value])

    def of_parent(self, parent: str) -> Positions:
        """Return the positions of the entities whose parent has this id, ascending."""
        return self.by_trait.get(("parent", parent), _NO_POSITIONS)

    def of_server(self, server: str) -> Positions:
        """Return the positions of the entities of this server or namespace, ascending."""
        return self.by_trait.get(("server", server), _NO_POSITIONS)

    def kinds(self, positions: Positions) -> list[Kind]:
        """Return the kind of the entity at each of *positions*."""
        table = np.zeros(self.size, dtype=np.intp)
        names: list[Kind] = []
        for (trait, kind), kind_positions in self.by_trait.items():
            if trait == "kind":
                table[kind_positions] = len(names)
                names.append(str(kind))
        return [names[number] for number in table[positions].tolist()]

    def positions_not_of_kinds(self, kinds: Container[Hashable]) -> Positions:
        """Return the positions of the entities whose kind is not in *kinds*, ascending."""
        others = [
            positions
            for (trait, kind), positions in self.by_trait.items()
            if trait == "kind" and kind not in kinds
        ]
        return np.sort(np.concatenate([_NO_POSITIONS, *others]))

    def servers(self, mask: Mask) -> set[str]:
        """Return the servers of the entities in *mask*."""
        return {
            str(value)
            for (trait, value), positions in self.by_trait.items()
            if trait == "server" and mask[positions].any()
        }

    def tags(self, mask: Mask) -> dict[str, int]:
        """Return the casefolded tags of the entities in *mask*, sorted, with their counts."""
        counts = {
            str(value): int(np.count_nonzero(mask[positions]))
            for (trait, value), positions in self.by_trait.items()
            if trait == "tag"
        }
        return {tag: counts[tag] for tag in sorted(counts) if counts[tag]}

    def _combine(self, filters: Filters) -> Mask:
        mask = self._has_any("kind", filters.kinds) & self._has_any("status", filters.statuses)
        if not filters.include_disabled:
            mask &= self.has("enabled", True)
        if not filters.include_described:
            mask &= self.has("described", False)
        for tag in filters.tags:
            mask &= self._has_any("tag", [tag.casefold()])
        if filters.servers:
            mask &= self._has_any("server", filters.servers)
        if filters.without:
            mask &= ~self._has_any("server", filters.without)
            mask[[self.by_id[key] for key in filters.without if key in self.by_id]] = False
        return mask & self.open_to(filters.scopes)

    def open_to(self, scopes: frozenset[str]) -> Mask:
        """Return the mask of the entities that a caller with *scopes* may see."""
        opened = [
            needed
            for trait, needed in self.by_trait
            if trait == "scopes" and isinstance(needed, frozenset)
            if needed <= scopes or ALL_SCOPES in scopes
        ]
        return self._has_any("scopes", opened)

    def _has_any(self, trait: str, values: Iterable[Hashable]) -> Mask:
        mask = np.zeros(self.size, dtype=np.bool_)
        for value in values:
            mask[self.by_trait.get((trait, value), _NO_POSITIONS)] = True
        return mask


def passes_all(mask: Mask) -> bool:
    """Return whether all entities pass *mask*."""
    # Faster than numpy's `all`, which runs Python code.
    return int(np.count_nonzero(mask)) == len(mask)


def failed_filters(entity: Entity, filters: Filters) -> tuple[FilterName, ...]:
    """Return the names of the *filters* that exclude *entity*; empty if it passes all."""
    tags, without = {tag.casefold() for tag in entity.hints.tags}, filters.without
    open_to_all = ALL_SCOPES in filters.scopes
    passed: dict[FilterName, bool] = {
        "kind": entity.kind in filters.kinds,
        "status": entity.status in filters.statuses,
        "disabled": entity.hints.enabled or filters.include_disabled,
        "described": not entity.described or filters.include_described,
        "tag": tags.issuperset(tag.casefold() for tag in filters.tags),
        "server": not filters.servers or entity.server in filters.servers,
        "left_out": without.isdisjoint((entity.server, entity.id)),
        "scope": open_to_all or entity.scopes <= filters.scopes,
    }
    return tuple(name for name, passes in passed.items() if not passes)


def traits_of(entity: Entity) -> tuple[Trait, ...]:
    """Return the properties of *entity* that filters can test, as pairs of name and value."""
    hints = entity.hints
    return (
        ("kind", entity.kind),
        ("status", entity.status),
        ("server", entity.server),
        ("scopes", entity.scopes),
        ("enabled", hints.enabled),
        ("described", entity.described),
        ("parent", entity.parent),
        *(("tag", tag) for tag in dict.fromkeys(tag.casefold() for tag in hints.tags)),
    )
