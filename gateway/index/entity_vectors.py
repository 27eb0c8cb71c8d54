"""The vector of each entity, blended from those of its texts.

* A text and its vector are held only while an entity that they belong to lacks another one. After
  that the entity's row is all that stays, in the matrix that searches read.
* An entity that changes keeps its row if its texts are the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import eq

import numpy as np

from gateway.embed.cache import text_key
from gateway.index.eligibility import Mask
from gateway.index.texts import embedding_text, example_texts, name_text
from gateway.runtime.vectors import Matrix, Vector, unit_rows
from gateway.types import Entity

NAME_WEIGHT = 0.4
"""What the vector of an entity's name, or of what its kind leans to, counts beside that of the
whole text, which counts 1."""
EXAMPLE_SHARE = 0.5
"""How far the vector of an entity leans to those of requests that it serves, if there are many; one
such request counts half as much."""
_COPIED_ROWS = 4096
"""Rows at a time where a matrix is copied: no second matrix stands between."""


@dataclass(slots=True, eq=False)
class _PendingEntity:
    """An entity some of whose texts have no vector yet."""

    id: str
    whole: str
    """The key of the whole text."""
    name: str
    """The key of the name."""
    examples: tuple[str, ...]
    """The keys of the examples."""
    lacking: int
    """How many of these have no vector."""

    @property
    def keys(self) -> Iterable[str]:
        """The keys of all its texts, each once."""
        return dict.fromkeys((self.whole, self.name, *self.examples))


@dataclass(slots=True, eq=False)
class _PendingText:
    """A text of such entities."""

    text: str
    row: Vector | None = None
    users: list[_PendingEntity] = field(default_factory=list)
    """All entities that wanted it, also those that left since."""
    uses: int = 0
    """How many entities want it now."""


@dataclass(slots=True, eq=False)
class _Batch:
    """Rows that are being made."""

    places: dict[str, int]
    """The row of each entity by its id; one that changed or left is absent."""
    matrix: Matrix
    """Zeros where there is no vector yet."""
    present: Mask
    """Which rows are vectors."""

    @classmethod
    def of(cls, ids: Iterable[str], dimensions: int) -> _Batch:
        """Make room for the rows of entities."""
        places = {key: place for place, key in enumerate(ids)}
        matrix = np.zeros((len(places), dimensions), dtype=np.float32)
        return cls(places, matrix, np.zeros(len(places), dtype=np.bool_))

    def is_whole(self, places: Mapping[str, int]) -> bool:
        """Return whether the rows stand as in *places*."""
        return len(places) == len(self.present) and all(map(eq, places, self.places))


class EntityVectors:
    """The vectors of the entities of one catalog. Not for two threads at once."""

    def __init__(self) -> None:
        self._entities: dict[str, _PendingEntity] = {}
        """By id."""
        self._texts: dict[str, _PendingText] = {}
        """By text key."""
        self._batches: list[_Batch] = []
        """Of entities that were added since the newest matrix; each is in one of them."""
        self._matrix: Matrix = np.zeros((0, 0), dtype=np.float32)
        """The newest matrix; searches read it, and nothing changes it."""
        self._places: Mapping[str, int] = {}
        """The row of each entity there."""
        self._present: Mask = np.zeros(0, dtype=np.bool_)
        """Which rows of it are vectors."""
        self._outdated: set[str] = set()
        """The ids of entities whose rows there are no more theirs."""

    def update(self, removed: Iterable[Entity], added: Iterable[Entity]) -> None:
        """Take entities out and put others in; one that changed is among both."""
        before = {entity.id: entity for entity in removed}
        for entity in added:
            old, texts = before.pop(entity.id, None), _texts_of(entity)
            if old is None or _texts_of(old) != texts:
                self._forget(entity.id)
                self._add(entity.id, *texts)
        for key in before:
            self._forget(key)

    def _add(self, entity_id: str, whole: str, name: str, examples: Sequence[str]) -> None:
        texts = {text_key(text): text for text in (whole, name, *examples)}
        pending = _PendingEntity(
            id=entity_id,
            whole=text_key(whole),
            name=text_key(name),
            examples=tuple(map(text_key, examples)),
            lacking=0,
        )
        self._entities[entity_id] = pending
        for key, text in texts.items():
            wanted = self._texts.get(key)
            if wanted is None:
                wanted = self._texts[key] = _PendingText(text)
            wanted.users.append(pending)
            wanted.uses += 1
            pending.lacking += wanted.row is None

    def _forget(self, entity_id: str) -> None:
        for batch in self._batches:
            batch.places.pop(entity_id, None)
        self._outdated.add(entity_id)
        if pending := self._entities.get(entity_id):
            self._release(pending)

    def _release(self, pending: _PendingEntity) -> None:
        del self._entities[pending.id]
        for key in pending.keys:
            text = self._texts[key]
            text.uses -= 1
            if not text.uses:
                del self._texts[key]

    @property
    def missing_texts(self) -> list[str]:
        """The texts that have no vector, each once, entity by entity."""
        return [text.text for text in self._texts.values() if text.row is None]

    def add(self, rows: Mapping[str, Vector]) -> None:
        """Take *rows* for the vectors of missing texts, by text key; others are ignored."""
        changed: dict[str, _PendingEntity] = {}
        for key, row in rows.items():
            text = self._texts.get(key)
            if text is None or text.row is not None:
                continue
            text.row = row
            users = [each for each in text.users if self._entities.get(each.id) is each]
            changed |= {user.id: user for user in users}
            for user in users:
                user.lacking -= 1
        self._blend(changed.values())
        for pending in changed.values():
            if not pending.lacking:
                self._release(pending)
        for key in rows:
            if (text := self._texts.get(key)) and text.row is not None:
                # Else it would hold all rows of its request.
                text.row = text.row.copy()

    def _blend(self, entities: Iterable[_PendingEntity]) -> None:
        """Make the rows of those whose whole text has a vector."""
        ready = [
            (pending, row)
            for pending in entities
            if (row := self._texts[pending.whole].row) is not None
        ]
        names = [self._texts[pending.name].row for pending, _ in ready]
        blended = blend_name_vectors([row for _, row in ready], names)
        for (pending, _), row in zip(ready, blended, strict=True):
            examples = (self._texts[key].row for key in pending.examples)
            found = [example for example in examples if example is not None]
            batch = self._batch(pending.id, len(row))
            place = batch.places[pending.id]
            batch.matrix[place], batch.present[place] = lean_to_examples(row, found), True

    def _batch(self, entity_id: str, dimensions: int) -> _Batch:
        """Return the batch of an entity; begin one for all that wait and are in none."""
        for batch in self._batches:
            if entity_id in batch.places:
                return batch
        batched = set[str]().union(*(batch.places for batch in self._batches))
        ids = (key for key in self._entities if key not in batched)
        self._batches.append(_Batch.of(ids, dimensions))
        return self._batches[-1]

    def matrix(self, places: Mapping[str, int]) -> tuple[Matrix, Mask] | None:
        """Return the rows of the entities by position, and which of them are vectors.

        Args:
            places: The position of each entity by its id, ascending from 0.

        Returns:
            Unit rows, shape (n, d), zeros for an entity without a vector, and a mask, shape (n,).
            None if no entity has one.
        """
        batch = self._batches[0] if len(self._batches) == 1 else None
        if batch and batch.is_whole(places) and not self._present.any():
            # The first build: a large catalog has no memory for a second matrix.
            matrix, present = batch.matrix, batch.present
        else:
            matrix, present = self._merge_batches(places)
        self._matrix, self._places, self._present = matrix, places, present
        self._batches.clear()
        self._outdated.clear()
        return (matrix, present) if present.any() else None

    def _merge_batches(self, places: Mapping[str, int]) -> tuple[Matrix, Mask]:
        """Join the rows of the newest matrix and of the batches."""
        old = self._current_rows(places)
        present = old >= 0
        newest = self._batches[0].matrix if self._batches else self._matrix
        matrix = np.zeros((len(places), newest.shape[1]), dtype=np.float32)
        for start in range(0, len(places) if present.any() else 0, _COPIED_ROWS):
            part = slice(start, start + _COPIED_ROWS)
            matrix[part][present[part]] = self._matrix[old[part][present[part]]]
        for batch in self._batches:
            for key, row in batch.places.items():
                place = places.get(key)
                if place is not None and batch.present[row]:
                    matrix[place], present[place] = batch.matrix[row], True
        return matrix, present

    def _current_rows(self, places: Mapping[str, int]) -> np.ndarray:
        """Return the row of each entity in the matrix that there is, -1 if it has none there."""
        outdated, before = self._outdated, self._places
        wanted = (-1 if key in outdated else before.get(key, -1) for key in places)
        found = np.fromiter(wanted, dtype=np.intp, count=len(places))
        if len(self._present):
            found[~self._present[found]] = -1
        return found


def _texts_of(entity: Entity) -> tuple[str, str, Sequence[str]]:
    """Return the whole text, the name and the examples of *entity*."""
    return embedding_text(entity), name_text(entity), example_texts(entity)


def blend_name_vectors(wholes: Sequence[Vector], names: Sequence[Vector | None]) -> Matrix:
    """Blend each entity's vector out of those of its whole text and its name.

    In the whole text the description drowns the name, which says best what a tool is for.

    Args:
        wholes: The vectors of the whole texts.
        names: The vectors of the names. Without one the whole text's stands alone.

    Returns:
        Unit rows, shape (n, d).
    """
    if not wholes:
        return np.zeros((0, 0), dtype=np.float32)
    zeros = np.zeros_like(wholes[0])
    leaning = np.stack([zeros if name is None else name for name in names])
    return unit_rows(np.stack(wholes) + NAME_WEIGHT * leaning)


def lean_to_examples(row: Vector, examples: Sequence[Vector]) -> Vector:
    """Turn an entity's vector towards those of requests that it serves.

    A few of them may be unlike the rest, so n of them count n / (n + 1) of `EXAMPLE_SHARE`.

    Args:
        row: The entity's vector, of unit length.
        examples: The requests' vectors; without any the row stays as it is.
    """
    if not examples:
        return row
    share = EXAMPLE_SHARE * len(examples) / (len(examples) + 1)
    mean = unit_rows(np.mean(examples, axis=0, keepdims=True))
    leaning: Vector = unit_rows((1 - share) * row[None] + share * mean)[0]
    return leaning
