"""Entities in a saved index: each is made when somebody first looks at it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any, overload

import numpy as np

from gateway.types import Diagnostic, Entity, Hints, ToolDefinition

_SEQUENCES = frozenset({"aliases", "keywords", "categories", "tags", "examples"})


class Entities(Sequence[Entity]):
    """Entities by position; each is made at most once.

    Args:
        lines: One entity's JSON after another, uint8.
        offsets: Where each begins, and where the last one ends, int64.
    """

    def __init__(self, lines: np.ndarray, offsets: np.ndarray) -> None:
        self._lines = lines
        self._offsets = offsets
        self._made: dict[int, Entity] = {}

    def __len__(self) -> int:
        """Count them."""
        return len(self._offsets) - 1

    @overload
    def __getitem__(self, at: int) -> Entity: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Entity, ...]: ...
    def __getitem__(self, at: int | slice) -> Entity | tuple[Entity, ...]:
        """Give the entity at a position, or those of a slice."""
        if isinstance(at, slice):
            return tuple(map(self.__getitem__, range(*at.indices(len(self)))))
        place = at + len(self) if at < 0 else at
        known = self._made.get(place)
        if known is None:
            if not 0 <= place < len(self):
                raise IndexError(at)
            start, end = self._offsets[place : place + 2].tolist()
            known = self._made[place] = _entity(json.loads(self._lines[start:end].tobytes()))
        return known

    def __iter__(self) -> Iterator[Entity]:
        """Give all of them in order, and so make all."""
        return map(self.__getitem__, range(len(self)))


def written(entities: Sequence[Entity]) -> tuple[np.ndarray, np.ndarray]:
    """Write *entities* for `Entities` to read: their lines, and the offsets.

    Raises:
        ValueError: If one would come back as another.
    """
    lines = list(map(line, entities))
    for entity, told in zip(entities, lines, strict=True):
        if _entity(json.loads(told)) != entity:
            raise ValueError(f"{entity.id!r} cannot be written as JSON")
    lengths = np.fromiter(map(len, lines), dtype=np.int64, count=len(lines))
    offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])
    return np.frombuffer(b"".join(lines), dtype=np.uint8), offsets


def line(entity: Entity) -> bytes:
    """Write one entity as JSON; equal entities give equal lines."""
    return json.dumps(_raw(entity)).encode()


def _raw(entity: Entity) -> Mapping[str, object]:
    found = {each.name: getattr(entity, each.name) for each in fields(Entity)}
    found["scopes"] = sorted(entity.scopes)
    tool = entity.definition
    found["definition"] = {each.name: getattr(tool, each.name) for each in fields(ToolDefinition)}
    found["definition"]["hints"] = {
        each.name: getattr(tool.hints, each.name) for each in fields(Hints)
    }
    found["definition"]["doubts"] = [(each.code, each.detail) for each in tool.doubts]
    return found


def _entity(raw: Any) -> Entity:
    told = raw.pop("definition")
    hints = told.pop("hints")
    hints |= {name: tuple(hints[name]) for name in _SEQUENCES}
    doubts = tuple(
        Diagnostic(stage="catalog", code=code, detail=detail) for code, detail in told.pop("doubts")
    )
    definition = ToolDefinition(hints=Hints(**hints), doubts=doubts, **told)
    return Entity(definition=definition, **{**raw, "scopes": frozenset(raw["scopes"])})
