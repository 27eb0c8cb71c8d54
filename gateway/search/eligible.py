"""Who may be found, as one mask that every retriever uses. Pure.

The catalog's traits are turned into bitmaps once an index; a search only combines them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gateway.types import Entity, Filters

Mask = NDArray[np.bool_]
"""Shape (n,): True where an entity may be found."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Eligibility:
    """Bitmaps of a catalog's traits."""

    size: int
    enabled: Mask
    by_trait: dict[tuple[str, Hashable], Mask]

    @classmethod
    def of(cls, entities: Sequence[Entity]) -> Eligibility:
        """Read the traits of *entities*, in their order."""
        size = len(entities)
        by_trait: dict[tuple[str, Hashable], Mask] = {}
        for position, entity in enumerate(entities):
            for trait in _traits(entity):
                by_trait.setdefault(trait, np.zeros(size, dtype=np.bool_))[position] = True
        enabled = np.fromiter((entity.hints.enabled for entity in entities), np.bool_, size)
        return cls(size=size, enabled=enabled, by_trait=by_trait)

    def mask(self, filters: Filters) -> Mask:
        """Give who passes *filters*."""
        mask = self._any("kind", filters.kinds) & self._any("status", filters.statuses)
        if not filters.include_disabled:
            mask &= self.enabled
        for tag in filters.tags:
            mask &= self._any("tag", [tag.casefold()])
        if filters.servers:
            mask &= self._any("server", filters.servers)
        open_to = [
            needed
            for trait, needed in self.by_trait
            if trait == "scopes" and isinstance(needed, frozenset) and needed <= filters.scopes
        ]
        return mask & self._any("scopes", open_to)

    def has(self, trait: str, value: Hashable) -> Mask:
        """Give who has one value of a trait: ``kind``, ``status``, ``server``, ``tag``."""
        return self._any(trait, [value])

    def _any(self, trait: str, values: Iterable[Hashable]) -> Mask:
        mask = np.zeros(self.size, dtype=np.bool_)
        for value in values:
            bitmap = self.by_trait.get((trait, value))
            if bitmap is not None:
                mask |= bitmap
        return mask


def _traits(entity: Entity) -> Iterable[tuple[str, Hashable]]:
    yield ("kind", entity.kind)
    yield ("status", entity.status)
    yield ("server", entity.server)
    yield ("scopes", entity.scopes)
    for tag in entity.hints.tags:
        yield ("tag", tag.casefold())
