"""Who may be found, as one mask that every retriever uses. Pure.

The traits of the catalog are read once for each index, and equal filters are combined once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from gateway.index.order import Places, Step
from gateway.runtime.vectors import NDArray
from gateway.types import Entity, Filters, Kind

Mask = NDArray[np.bool_]
"""Shape (n,): True where an entity may be found."""
Trait: TypeAlias = tuple[str, Hashable]
_NOBODY = np.zeros(0, dtype=np.intp)
_UNNUMBERED: Mapping[str, int] = {}
_REMEMBERED = 64
"""How many combinations of filters are remembered: scopes differ from caller to caller."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Eligibility:
    """Which entities have which trait."""

    size: int
    """How many entities there are."""
    enabled: Mask
    """True where an entity is enabled."""
    by_trait: Mapping[Trait, NDArray[np.intp]]
    """The numbers of the entities that have a trait, by its name and value."""
    positions: NDArray[np.intp]
    """The position of each number; see `gateway.index.order.Places`."""
    masks: dict[Filters, Mask] = field(default_factory=dict)
    """The masks of the last filters: a cache, filled by `mask`."""

    @classmethod
    def of(cls, entities: Sequence[Entity]) -> Eligibility:
        """Read the traits of *entities*, in their order."""
        by_trait: defaultdict[Trait, list[int]] = defaultdict(list)
        for position, entity in enumerate(entities):
            for trait in _traits(entity):
                by_trait[trait].append(position)
        enabled = (entity.hints.enabled for entity in entities)
        return cls(
            size=len(entities),
            enabled=np.fromiter(enabled, np.bool_, len(entities)),
            by_trait={trait: np.asarray(spots, np.intp) for trait, spots in by_trait.items()},
            positions=np.arange(len(entities), dtype=np.intp),
        )

    def changed(self, step: Step, before: Places) -> Eligibility:
        """Give the traits after *step*; *before* are the places until then."""
        if step.places.fresh:
            return self.of(step.entities)
        by_trait = dict(self.by_trait)
        enabled = step.moves.rows(self.enabled)
        for entity in step.gone.values():
            number = before.numbers[entity.id]
            for trait in _traits(entity):
                left = by_trait[trait][by_trait[trait] != number]
                if left.size:
                    by_trait[trait] = left
                else:
                    del by_trait[trait]
        for position, entity in step.new.items():
            enabled[position] = entity.hints.enabled
            for trait in _traits(entity):
                known = by_trait.get(trait, _NOBODY)
                by_trait[trait] = np.append(known, step.places.numbers[entity.id])
        return Eligibility(
            size=len(step.entities),
            enabled=enabled,
            by_trait=by_trait,
            positions=step.places.positions,
        )

    def mask(self, filters: Filters, numbers: Mapping[str, int] = _UNNUMBERED) -> Mask:
        """Give the mask of *filters*, read-only.

        Args:
            filters: ``healthy_only`` is not looked at: `gateway.sources.health` resolves it before.
            numbers: The number of each entity, by id.
        """
        known = self.masks.get(filters)
        if known is None:
            if len(self.masks) >= _REMEMBERED:
                self.masks.clear()
            known = self._combined(filters)
            gone = [numbers[key] for key in filters.without if key in numbers]
            known[self.positions[gone]] = False
            known.setflags(write=False)
            self.masks[filters] = known
        return known

    def has(self, trait: str, value: Hashable) -> Mask:
        """Give the mask of one value of a trait: ``kind``, ``status``, ``server`` or ``tag``."""
        return self._any(trait, [value])

    def of_server(self, server: str) -> NDArray[np.intp]:
        """Give the positions of the entities of *server*, in no order."""
        return self.positions[self.by_trait.get(("server", server), _NOBODY)]

    def kinds(self, spots: NDArray[np.intp]) -> list[Kind]:
        """Give the kind of each of *spots*."""
        held = {
            str(kind): numbers
            for (trait, kind), numbers in self.by_trait.items()
            if trait == "kind"
        }
        if len(held) == 1:
            return [*held] * len(spots)
        table = np.zeros(self.size, dtype=np.intp)
        for number, numbers in enumerate(held.values()):
            table[self.positions[numbers]] = number
        names = list(held)
        return [names[number] for number in table[spots].tolist()]

    def beside(self, kinds: Container[Hashable]) -> NDArray[np.intp]:
        """Give the positions of the entities of other *kinds* than these, ascending."""
        others = [
            self.positions[numbers]
            for (trait, kind), numbers in self.by_trait.items()
            if trait == "kind" and kind not in kinds
        ]
        return np.sort(np.concatenate([_NOBODY, *others]))

    def servers(self, mask: Mask) -> set[str]:
        """Give the servers of the entities that *mask* lets pass."""
        return {
            str(value)
            for (trait, value), numbers in self.by_trait.items()
            if trait == "server" and mask[self.positions[numbers]].any()
        }

    def tags(self, mask: Mask) -> dict[str, int]:
        """Count the entities that *mask* lets pass by tag, casefolded; sorted by tag."""
        counted = {
            str(value): int(np.count_nonzero(mask[self.positions[numbers]]))
            for (trait, value), numbers in self.by_trait.items()
            if trait == "tag"
        }
        return {tag: counted[tag] for tag in sorted(counted) if counted[tag]}

    def _combined(self, filters: Filters) -> Mask:
        mask = self._any("kind", filters.kinds) & self._any("status", filters.statuses)
        if not filters.include_disabled:
            mask &= self.enabled
        for tag in filters.tags:
            mask &= self._any("tag", [tag.casefold()])
        if filters.servers:
            mask &= self._any("server", filters.servers)
        if filters.without:
            mask &= ~self._any("server", filters.without)
        open_to = [
            needed
            for trait, needed in self.by_trait
            if trait == "scopes" and isinstance(needed, frozenset) and needed <= filters.scopes
        ]
        return mask & self._any("scopes", open_to)

    def _any(self, trait: str, values: Iterable[Hashable]) -> Mask:
        mask = np.zeros(self.size, dtype=np.bool_)
        for value in values:
            if (spots := self.by_trait.get((trait, value))) is not None:
                mask[self.positions[spots]] = True
        return mask


def everybody(mask: Mask) -> bool:
    """Say whether *mask* lets every entity pass."""
    # Counting is faster than numpy's own `all`, which goes through Python.
    return int(np.count_nonzero(mask)) == len(mask)


def _traits(entity: Entity) -> Iterable[Trait]:
    yield ("kind", entity.kind)
    yield ("status", entity.status)
    yield ("server", entity.server)
    yield ("scopes", entity.scopes)
    for tag in dict.fromkeys(tag.casefold() for tag in entity.hints.tags):
        yield ("tag", tag)
