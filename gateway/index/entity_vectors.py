"""The vector of each entity, blended from the vectors of its texts, and storage in memory.

* An entity's vector is called its row.
* A text and its vector are kept only until all texts of their entities have vectors.
* A changed entity keeps its row if its texts are unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import eq

import numpy as np

from gateway.catalog.entries import LISTED
from gateway.embed.cache import text_key
from gateway.index.eligibility import Eligibility, Mask
from gateway.index.texts import embedding_text, example_texts, name_text
from gateway.index.vectors import VectorIndex
from gateway.runtime.vectors import Matrix, Vector, unit_rows
from gateway.types import Entity

NAME_WEIGHT = 0.4
"""Weight of the vector of an entity's `name_text`, compared with that of its whole text."""
EXAMPLE_SHARE = 0.5
"""Weight that an entity's examples approach with their number. One example has half of it."""
_COPIED_ROWS = 4096
"""Number of rows copied at a time, to avoid a second full matrix in memory."""


@dataclass(slots=True, eq=False)
class _PendingEntity:
    """An entity with texts that still need a vector."""

    id: str
    whole: str
    """Key of the entity's whole text."""
    name: str
    """Key of the entity's `name_text`."""
    examples: tuple[str, ...]
    """Keys of the entity's examples."""
    lacking: int
    """Number of the entity's texts that still need a vector."""

    @property
    def keys(self) -> Iterable[str]:
        return dict.fromkeys((self.whole, self.name, *self.examples))


@dataclass(slots=True, eq=False)
class _PendingText:
    text: str
    row: Vector | None = None
    users: list[_PendingEntity] = field(default_factory=list)
    """All entities that have or had the text, including removed ones."""
    uses: int = 0
    """Number of entities that have the text now."""


@dataclass(slots=True, eq=False)
class _Batch:
    """Rows of entities that were added together; filled as their texts are embedded."""

    places: dict[str, int]
    """Index in `matrix` of each entity's row, keyed by id, without changed and removed entities."""
    matrix: Matrix
    """Rows of the entities; zeros for an entity without a vector."""
    present: Mask

    @classmethod
    def of(cls, ids: Iterable[str], dimensions: int) -> _Batch:
        places = {key: place for place, key in enumerate(ids)}
        matrix = np.zeros((len(places), dimensions), dtype=np.float32)
        return cls(places, matrix, np.zeros(len(places), dtype=np.bool_))

    def is_whole(self, places: Mapping[str, int]) -> bool:
        """Return whether the batch has exactly the entities of *places*, in the same order."""
        return len(places) == len(self.present) and all(map(eq, places, self.places))


class PendingTexts:
    """Entities with texts that still need a vector, and these texts."""

    def __init__(self) -> None:
        self.entities: dict[str, _PendingEntity] = {}
        self._texts: dict[str, _PendingText] = {}

    @property
    def missing(self) -> list[str]:
        """Texts that still need a vector, without duplicates, entity by entity."""
        return [text.text for text in self._texts.values() if text.row is None]

    def add(self, entity_id: str, whole: str, name: str, examples: Sequence[str]) -> None:
        """Add an entity with its whole text, its `name_text` and its examples."""
        texts = {text_key(text): text for text in (whole, name, *examples)}
        pending = _PendingEntity(
            id=entity_id,
            whole=text_key(whole),
            name=text_key(name),
            examples=tuple(map(text_key, examples)),
            lacking=0,
        )
        self.entities[entity_id] = pending
        for key, text in texts.items():
            pending_text = self._texts.get(key)
            if pending_text is None:
                pending_text = self._texts[key] = _PendingText(text)
            pending_text.users.append(pending)
            pending_text.uses += 1
            pending.lacking += pending_text.row is None

    def forget(self, entity_id: str) -> None:
        """Remove a pending entity, and its texts unless another pending entity has them."""
        pending = self.entities.pop(entity_id, None)
        for key in pending.keys if pending else ():
            text = self._texts[key]
            text.uses -= 1
            if not text.uses:
                del self._texts[key]

    def take(self, rows: Mapping[str, Vector]) -> Iterator[tuple[str, Vector, bool]]:
        """Store *rows*, the vectors of texts, keyed by text key. Remove entities that are complete.

        Yields:
            For each entity with a text in *rows*, if its whole text has a vector: its id, its
            blended row, and True if all its texts have a vector.
        """
        changed: dict[str, _PendingEntity] = {}
        for key, row in rows.items():
            text = self._texts.get(key)
            if text is None or text.row is not None:
                continue
            text.row = row
            users = [entity for entity in text.users if self.entities.get(entity.id) is entity]
            changed |= {user.id: user for user in users}
            for user in users:
                user.lacking -= 1
        yield from self._blend(changed.values())
        for pending in changed.values():
            if not pending.lacking:
                self.forget(pending.id)
        for key in rows:
            if (text := self._texts.get(key)) and text.row is not None:
                # Copy the vector, because a view would keep all vectors of its request in memory.
                text.row = text.row.copy()

    def _blend(self, entities: Iterable[_PendingEntity]) -> Iterator[tuple[str, Vector, bool]]:
        ready = [
            (pending, row)
            for pending in entities
            if (row := self._texts[pending.whole].row) is not None
        ]
        names = [self._texts[pending.name].row for pending, _ in ready]
        blended = blend_name_vectors([row for _, row in ready], names)
        for (pending, _), row in zip(ready, blended, strict=True):
            examples = (self._texts[key].row for key in pending.examples)
            example_rows = [example for example in examples if example is not None]
            yield pending.id, lean_to_examples(row, example_rows), not pending.lacking


class EntityVectors:
    """`EntityRows` in memory. Not thread-safe."""

    blocking = False
    has_gaps = False

    def __init__(self) -> None:
        self._pending = PendingTexts()
        self._batches: list[_Batch] = []
        """Rows of the entities added since `_matrix` was made. Each entity is in one batch."""
        self._matrix: Matrix = np.zeros((0, 0), dtype=np.float32)
        """Rows of all entities at the latest call of `index`. Searches read it; it never
        changes."""
        self._places: Mapping[str, int] = {}
        """Index in `_matrix` of each entity's row, keyed by entity id."""
        self._present: Mask = np.zeros(0, dtype=np.bool_)
        self._outdated: set[str] = set()
        """Ids of entities whose rows in `_matrix` are outdated."""

    def update(self, removed: Iterable[Entity], added: Iterable[Entity]) -> None:
        """Remove and add entities."""
        gone, new = changed_texts(removed, added)
        for entity_id in gone:
            self._forget(entity_id)
        for entity in new:
            self._pending.add(entity.id, *texts_of(entity))

    def _forget(self, entity_id: str) -> None:
        for batch in self._batches:
            batch.places.pop(entity_id, None)
        self._outdated.add(entity_id)
        self._pending.forget(entity_id)

    def load(self) -> None:
        """Do nothing, because the rows are already in memory."""

    def maintain(self) -> None:
        """Do nothing, because rows in memory need no maintenance."""

    @property
    def missing_texts(self) -> Sequence[str]:
        """Texts that still need a vector, without duplicates."""
        return self._pending.missing

    @property
    def missing(self) -> int:
        """Number of texts that still need a vector."""
        return len(self._pending.missing)

    def add(self, rows: Mapping[str, Vector]) -> None:
        """Add the vectors of missing texts, keyed by text key."""
        for entity_id, row, _ in self._pending.take(rows):
            batch = self._batch(entity_id, len(row))
            place = batch.places[entity_id]
            batch.matrix[place], batch.present[place] = row, True

    def _batch(self, entity_id: str, dimensions: int) -> _Batch:
        """Return the entity's batch, or a new one for all pending entities without a batch."""
        for batch in self._batches:
            if entity_id in batch.places:
                return batch
        batched = set[str]().union(*(batch.places for batch in self._batches))
        ids = (key for key in self._pending.entities if key not in batched)
        self._batches.append(_Batch.of(ids, dimensions))
        return self._batches[-1]

    def index(self, eligibility: Eligibility) -> VectorIndex | None:
        """Return the vectors of all entities as an index; None if all entities lack a vector.

        *eligibility* determines the positions, and the listed entities used for the mean.
        """
        rows = self.matrix(eligibility.by_id)
        if rows is None:
            return None
        matrix, present = rows
        listed = listed_rows(eligibility, present)
        total = np.dot(listed.astype(np.float32), matrix)
        mean = np.asarray(total / np.count_nonzero(listed), dtype=np.float32)
        return VectorIndex.of(matrix, present=None if present.all() else present, mean=mean)

    def matrix(self, places: Mapping[str, int]) -> tuple[Matrix, Mask] | None:
        """Return each entity's unit row, shape (n, d), and a mask of the entities with a vector.

        *places* is the position of each entity, keyed by id, ascending from 0. Missing rows are
        zeros. None if all entities lack a vector.
        """
        batch = self._batches[0] if len(self._batches) == 1 else None
        if batch and batch.is_whole(places) and not self._present.any():
            # In the first build, use the batch's own matrix, because a second one may not fit into
            # memory.
            matrix, present = batch.matrix, batch.present
        else:
            matrix, present = self._merge_batches(places)
        self._matrix, self._places, self._present = matrix, places, present
        # Keep batches with other entities, because the previous catalog may be indexed once more
        # while the next one is compiled.
        placed = places.keys()
        self._batches = [batch for batch in self._batches if not batch.places.keys() <= placed]
        self._outdated.clear()
        return (matrix, present) if present.any() else None

    def _merge_batches(self, places: Mapping[str, int]) -> tuple[Matrix, Mask]:
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
        """Return the index in `_matrix` of each entity's row, by position; -1 if missing there."""
        outdated, before = self._outdated, self._places
        numbers = (-1 if key in outdated else before.get(key, -1) for key in places)
        rows = np.fromiter(numbers, dtype=np.intp, count=len(places))
        if len(self._present):
            rows[~self._present[rows]] = -1
        return rows


def listed_rows(eligibility: Eligibility, present: Mask) -> Mask:
    """Return a mask of the entities whose vectors give the mean of the catalog.

    These are the entities in *present* that servers list; if there are none, all in *present*.
    """
    listed = present.copy()
    listed[eligibility.positions_not_of_kinds(LISTED)] = False
    listed &= eligibility.has("described", False)
    return listed if listed.any() else present


def changed_texts(
    removed: Iterable[Entity], added: Iterable[Entity]
) -> tuple[list[str], list[Entity]]:
    """Return the ids of the entities whose rows are dropped, and the entities with new texts.

    A changed entity is in *removed* with its previous version and in *added* with its new one.
    """
    before = {entity.id: entity for entity in removed}
    new = []
    for entity in added:
        old = before.get(entity.id)
        if old is None or texts_of(old) != texts_of(entity):
            new.append(entity)
        else:
            del before[entity.id]
    return [*before, *(entity.id for entity in new if entity.id not in before)], new


def texts_of(entity: Entity) -> tuple[str, str, Sequence[str]]:
    """Return the whole text, the `name_text` and the examples of *entity*."""
    return embedding_text(entity), name_text(entity), example_texts(entity)


def blend_name_vectors(wholes: Sequence[Vector], names: Sequence[Vector | None]) -> Matrix:
    """Blend the unit vector of each entity from the vectors of its whole text and its `name_text`.

    The name describes a tool best, but has little weight in the whole text. A name without a vector
    is None.
    """
    if not wholes:
        return np.zeros((0, 0), dtype=np.float32)
    zeros = np.zeros_like(wholes[0])
    leaning = np.stack([zeros if name is None else name for name in names])
    return unit_rows(np.stack(wholes) + NAME_WEIGHT * leaning)


def lean_to_examples(row: Vector, examples: Sequence[Vector]) -> Vector:
    """Turn the unit vector *row* of an entity towards the vectors of its examples, if any.

    The weight of n examples is n / (n + 1) of `EXAMPLE_SHARE`, because a few may not be typical.
    """
    if not examples:
        return row
    share = EXAMPLE_SHARE * len(examples) / (len(examples) + 1)
    mean = unit_rows(np.mean(examples, axis=0, keepdims=True))
    leaning: Vector = unit_rows((1 - share) * row[None] + share * mean)[0]
    return leaning
