"""The order of a catalog that changes: where each entity stands, now and before."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from gateway.runtime.vectors import NDArray
from gateway.types import Entity
from graphs.arrays import Moves
from graphs.patched import patched

Key = tuple[str, str]
_FEW = 256
_SLACK = 1024


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Places:
    """Where entities stand, by the numbers that they keep as long as they are there."""

    positions: NDArray[np.intp]
    """The position of each number, shape (numbers,); -1 for one that is gone."""
    numbers: Mapping[str, int]
    """The number of each entity, by id."""
    fresh: bool = True
    """Whether all were numbered anew, so that an older index knows none of the numbers."""

    def position(self, key: str) -> int:
        """Give the position of the entity with the id *key*; KeyError if there is none."""
        return int(self.positions[self.numbers[key]])


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One change of the order."""

    moves: Moves
    gone: Mapping[int, Entity]
    """By their positions until now."""
    new: Mapping[int, Entity]
    """By their positions from now on."""
    entities: tuple[Entity, ...]
    """All of them now, by exposed name."""
    places: Places

    @classmethod
    def first(cls, entities: Sequence[Entity]) -> Step:
        """Give the step from nothing to *entities*, in their order."""
        spots = range(len(entities))
        numbers = {entity.id: at for at, entity in enumerate(entities)}
        return cls(
            moves=Moves(size=0, gone=(), new=spots),
            gone={},
            new=dict(enumerate(entities)),
            entities=tuple(entities),
            places=Places(positions=np.arange(len(entities), dtype=np.intp), numbers=numbers),
        )


@dataclass(slots=True)
class Order:
    """Entities by exposed name. Not for two threads at once."""

    entities: list[Entity] = field(default_factory=list)
    _keys: list[Key] = field(default_factory=list)
    _places: Places = field(
        default_factory=lambda: Places(positions=np.zeros(0, dtype=np.intp), numbers={})
    )

    def change(self, gone: Iterable[Entity], new: Iterable[Entity]) -> Step:
        """Take entities out and put others in."""
        size = len(self.entities)
        left = {bisect_left(self._keys, key_of(entity)): entity for entity in gone}
        came = sorted(new, key=key_of)
        if len(left) + len(came) > _FEW:
            stay = [entity for at, entity in enumerate(self.entities) if at not in left]
            self.entities = sorted([*stay, *came], key=key_of)
            self._keys = list(map(key_of, self.entities))
            spots = [bisect_left(self._keys, key_of(entity)) for entity in came]
        else:
            spots = self._patched(sorted(left, reverse=True), came)
        moves = Moves(size=size, gone=sorted(left), new=spots)
        arrived = dict(zip(spots, came, strict=True))
        self._places = self._placed(moves, left.values(), arrived)
        return Step(
            moves=moves,
            gone=left,
            new=arrived,
            entities=tuple(self.entities),
            places=self._places,
        )

    def _patched(self, left: Sequence[int], came: Sequence[Entity]) -> list[int]:
        for at in left:
            del self.entities[at], self._keys[at]
        spots = []
        for entity in came:
            spots.append(at := bisect_left(self._keys, key_of(entity)))
            self.entities.insert(at, entity)
            self._keys.insert(at, key_of(entity))
        return spots

    def _placed(self, moves: Moves, gone: Iterable[Entity], new: Mapping[int, Entity]) -> Places:
        size = len(self._places.positions) + len(new)
        if not moves.size or size > 2 * moves.after + _SLACK:
            numbers = {entity.id: at for at, entity in enumerate(self.entities)}
            return Places(positions=np.arange(moves.after, dtype=np.intp), numbers=numbers)
        known = len(self._places.positions)
        came = {entity.id: known + at for at, entity in enumerate(new.values())}
        old = moves.placed(self._places.positions)
        return Places(
            positions=np.concatenate([old, np.fromiter(new, dtype=np.intp, count=len(new))]),
            numbers=patched(self._places.numbers, [entity.id for entity in gone], came),
            fresh=False,
        )


def key_of(entity: Entity) -> Key:
    """Give the key that the catalog is sorted by."""
    return entity.exposed_name.casefold(), entity.id
