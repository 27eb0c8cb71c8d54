"""Which entities may be found, as one mask that every retriever uses. Pure.

The traits of the catalog are read once for each snapshot; equal filters are combined once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from gateway.runtime.vectors import NDArray
from gateway.types import ALL_SCOPES, Entity, FilterName, Filters, Kind

Mask = NDArray[np.bool_]
"""Shape (n,): True where an entity may be found."""
Positions = NDArray[np.intp]
"""Positions of entities in a snapshot."""
Trait: TypeAlias = tuple[str, Hashable]
_NONE = np.zeros(0, dtype=np.intp)
_MAX_MASKS = 64
"""How many combinations of filters are remembered: scopes differ from caller to caller."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Eligibility:
    """Which entities have which trait."""

    by_trait: Mapping[Trait, Positions]
    """The positions of the entities that have a trait, ascending, by its name and value."""
    by_id: Mapping[str, int]
    """The position of each entity."""
    masks: dict[Filters, Mask] = field(default_factory=dict)
    """The masks of the last filters: a cache, filled by `mask`."""

    @classmethod
    def of(cls, ids: Sequence[str], traits: Sequence[tuple[Trait, ...]]) -> Eligibility:
        """Index the entities of these *ids* by their traits.

        Args:
            ids: By position.
            traits: See `traits_of`. It is faster where equal ones are the same object.
        """
        objects = np.fromiter(map(id, traits), dtype=np.int64, count=len(traits))
        order = objects.argsort(kind="stable")
        groups = np.split(order, np.flatnonzero(np.diff(objects[order])) + 1)
        parts: defaultdict[Trait, list[Positions]] = defaultdict(list)
        for positions in groups if traits else ():
            for trait in traits[positions[0]]:
                parts[trait].append(positions)
        by_trait = {
            trait: found[0] if len(found) == 1 else np.sort(np.concatenate(found))
            for trait, found in parts.items()
        }
        return cls(by_trait=by_trait, by_id=dict(zip(ids, range(len(ids)), strict=True)))

    @property
    def size(self) -> int:
        """How many entities there are."""
        return len(self.by_id)

    def mask(self, filters: Filters) -> Mask:
        """Return the mask of *filters*, read-only.

        Args:
            filters: ``healthy_only`` is not looked at: it is resolved before.
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
        """Return the mask of one value of a trait: ``kind``, ``status``, ``server`` or ``tag``."""
        return self._has_any(trait, [value])

    def of_parent(self, parent: str) -> Positions:
        """Return the positions of the entities that belong to the one of this id, ascending."""
        return self.by_trait.get(("parent", parent), _NONE)

    def of_server(self, server: str) -> Positions:
        """Return the positions of the entities of this server or namespace, ascending."""
        return self.by_trait.get(("server", server), _NONE)

    def kinds(self, positions: Positions) -> list[Kind]:
        """Return the kind of each of *positions*."""
        table = np.zeros(self.size, dtype=np.intp)
        names: list[Kind] = []
        for (trait, kind), found in self.by_trait.items():
            if trait == "kind":
                table[found] = len(names)
                names.append(str(kind))
        return [names[number] for number in table[positions].tolist()]

    def positions_not_of_kinds(self, kinds: Container[Hashable]) -> Positions:
        """Return the positions of the entities of other *kinds* than these, ascending."""
        others = [
            found
            for (trait, kind), found in self.by_trait.items()
            if trait == "kind" and kind not in kinds
        ]
        return np.sort(np.concatenate([_NONE, *others]))

    def servers(self, mask: Mask) -> set[str]:
        """Return the servers of the entities that *mask* lets pass."""
        return {
            str(value)
            for (trait, value), found in self.by_trait.items()
            if trait == "server" and mask[found].any()
        }

    def tags(self, mask: Mask) -> dict[str, int]:
        """Count the entities that *mask* lets pass by tag, casefolded; sorted by tag."""
        counts = {
            str(value): int(np.count_nonzero(mask[found]))
            for (trait, value), found in self.by_trait.items()
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
        """Return the mask of what a holder of *scopes* may see, whatever else filters ask."""
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
            mask[self.by_trait.get((trait, value), _NONE)] = True
        return mask


def passes_all(mask: Mask) -> bool:
    """Return whether *mask* lets every entity pass."""
    # Counting is faster than numpy's own `all`, which goes through Python.
    return int(np.count_nonzero(mask)) == len(mask)


def failed_filters(entity: Entity, filters: Filters) -> tuple[FilterName, ...]:
    """Return which of *filters* leave *entity* out; none if it passes `Eligibility.mask`."""
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
    """Return all that filters may ask of *entity*."""
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
