"""The vector of each entity, blended from the vectors of its texts, and storage in memory.

* Rows are in memory (`EntityVectors`), or in another implementation of `EntityRows`.
* A text and its vector are kept only until all texts of their entities have vectors. After that
  only the entity's row remains, in the matrix that searches read.
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
"""Weight of the vector of an entity's name (or of its kind's leaning text), compared with 1 for the
whole text."""
EXAMPLE_SHARE = 0.5
"""Maximum weight of an entity's examples in its vector. One example has half the weight."""
_COPIED_ROWS = 4096
"""Number of rows copied at a time, to avoid a second full matrix in memory."""


@dataclass(slots=True, eq=False)
class _PendingEntity:
    """An entity with texts that lack a vector."""

    id: str
    whole: str
    """Key of the whole text."""
    name: str
    """Key of the name."""
    examples: tuple[str, ...]
    """Keys of the examples."""
    lacking: int
    """Number of texts without a vector."""

    @property
    def keys(self) -> Iterable[str]:
        """Keys of all texts of the entity, without duplicates."""
        return dict.fromkeys((self.whole, self.name, *self.examples))


@dataclass(slots=True, eq=False)
class _PendingText:
    """A text of pending entities."""

    text: str
    row: Vector | None = None
    users: list[_PendingEntity] = field(default_factory=list)
    """All entities that used the text, including removed ones."""
    uses: int = 0
    """Number of entities that use the text now."""


@dataclass(slots=True, eq=False)
class _Batch:
    """Rows that are being filled."""

    places: dict[str, int]
    """Row number of each entity, keyed by id. Changed and removed entities are absent."""
    matrix: Matrix
    """Rows; zeros for a missing vector."""
    present: Mask
    """True for each row with a vector."""

    @classmethod
    def of(cls, ids: Iterable[str], dimensions: int) -> _Batch:
        """Allocate the rows of entities."""
        places = {key: place for place, key in enumerate(ids)}
        matrix = np.zeros((len(places), dimensions), dtype=np.float32)
        return cls(places, matrix, np.zeros(len(places), dtype=np.bool_))

    def is_whole(self, places: Mapping[str, int]) -> bool:
        """Return whether the batch has exactly the entities of *places*, in the same order."""
        return len(places) == len(self.present) and all(map(eq, places, self.places))


class PendingTexts:
    """Entities with texts that lack a vector, and these texts."""

    def __init__(self) -> None:
        self.entities: dict[str, _PendingEntity] = {}
        """Pending entities, keyed by id."""
        self._texts: dict[str, _PendingText] = {}
        """Texts, keyed by text key."""

    @property
    def missing(self) -> list[str]:
        """Texts without a vector, without duplicates, entity by entity."""
        return [text.text for text in self._texts.values() if text.row is None]

    def add(self, entity_id: str, whole: str, name: str, examples: Sequence[str]) -> None:
        """Add an entity with its texts."""
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
        """Remove an entity if present, and the texts that only this entity used."""
        pending = self.entities.pop(entity_id, None)
        for key in pending.keys if pending else ():
            text = self._texts[key]
            text.uses -= 1
            if not text.uses:
                del self._texts[key]

    def take(self, rows: Mapping[str, Vector]) -> Iterator[tuple[str, Vector, bool]]:
        """Store *rows*, vectors of texts keyed by text key.

        Yields:
            For each entity changed by *rows* whose whole text has a vector: its id, its row blended
            from the vectors so far, and whether it is complete. Complete entities are removed at
            the end.
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
                # A copy, because the view would keep all rows of its request in memory.
                text.row = text.row.copy()

    def _blend(self, entities: Iterable[_PendingEntity]) -> Iterator[tuple[str, Vector, bool]]:
        """Yield the blended rows of entities whose whole text has a vector."""
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
        """Rows of entities added since the newest matrix. Each entity is in one batch."""
        self._matrix: Matrix = np.zeros((0, 0), dtype=np.float32)
        """Newest matrix. Searches read it, so it never changes."""
        self._places: Mapping[str, int] = {}
        """Row number of each entity in the matrix, keyed by id."""
        self._present: Mask = np.zeros(0, dtype=np.bool_)
        """True for each row of the matrix with a vector."""
        self._outdated: set[str] = set()
        """Ids of entities whose rows in the matrix are outdated."""

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
        """Do nothing, because rows in memory are not stored."""

    def maintain(self) -> None:
        """Do nothing."""

    @property
    def missing_texts(self) -> Sequence[str]:
        """Texts without a vector, without duplicates."""
        return self._pending.missing

    @property
    def missing(self) -> int:
        """Number of texts without a vector."""
        return len(self._pending.missing)

    def add(self, rows: Mapping[str, Vector]) -> None:
        """Add vectors of missing texts, keyed by text key."""
        for entity_id, row, _ in self._pending.take(rows):
            batch = self._batch(entity_id, len(row))
            place = batch.places[entity_id]
            batch.matrix[place], batch.present[place] = row, True

    def _batch(self, entity_id: str, dimensions: int) -> _Batch:
        """Return the batch of an entity. Create one for all pending entities without a batch."""
        for batch in self._batches:
            if entity_id in batch.places:
                return batch
        batched = set[str]().union(*(batch.places for batch in self._batches))
        ids = (key for key in self._pending.entities if key not in batched)
        self._batches.append(_Batch.of(ids, dimensions))
        return self._batches[-1]

    def index(self, eligibility: Eligibility) -> VectorIndex | None:
        """Return the rows for searches; None if all entities lack a vector."""
        rows = self.matrix(eligibility.by_id)
        if rows is None:
            return None
        matrix, present = rows
        listed = listed_rows(eligibility, present)
        total = np.dot(listed.astype(np.float32), matrix)
        mean = np.asarray(total / np.count_nonzero(listed), dtype=np.float32)
        return VectorIndex.of(matrix, present=None if present.all() else present, mean=mean)

    def matrix(self, places: Mapping[str, int]) -> tuple[Matrix, Mask] | None:
        """Return the rows of the entities by position, and a mask of the rows with a vector.

        Args:
            places: Position of each entity, keyed by id, ascending from 0.

        Returns:
            Unit rows, shape (n, d), zeros for an entity without a vector, and a mask, shape (n,).
            None if all entities lack a vector.
        """
        batch = self._batches[0] if len(self._batches) == 1 else None
        if batch and batch.is_whole(places) and not self._present.any():
            # The first build. A second matrix of a large catalog may not fit into memory.
            matrix, present = batch.matrix, batch.present
        else:
            matrix, present = self._merge_batches(places)
        self._matrix, self._places, self._present = matrix, places, present
        # Batches with other entities are kept, because the previous catalog may be indexed once
        # more while the next one is compiled.
        placed = places.keys()
        self._batches = [batch for batch in self._batches if not batch.places.keys() <= placed]
        self._outdated.clear()
        return (matrix, present) if present.any() else None

    def _merge_batches(self, places: Mapping[str, int]) -> tuple[Matrix, Mask]:
        """Merge the rows of the newest matrix and of the batches."""
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
        """Return the row number of each entity in the newest matrix, -1 if missing there."""
        outdated, before = self._outdated, self._places
        numbers = (-1 if key in outdated else before.get(key, -1) for key in places)
        rows = np.fromiter(numbers, dtype=np.intp, count=len(places))
        if len(self._present):
            rows[~self._present[rows]] = -1
        return rows


def listed_rows(eligibility: Eligibility, present: Mask) -> Mask:
    """Return the rows used to compute the mean. Only rows listed by servers count.

    Without such rows, all rows count.

    Args:
        eligibility: The catalog.
        present: True for each row with a vector.
    """
    listed = present.copy()
    listed[eligibility.positions_not_of_kinds(LISTED)] = False
    listed &= eligibility.has("described", False)
    return listed if listed.any() else present


def changed_texts(
    removed: Iterable[Entity], added: Iterable[Entity]
) -> tuple[list[str], list[Entity]]:
    """Return the ids of entities whose rows are dropped, and the entities with new texts.

    Args:
        removed: Removed entities and previous versions of changed ones.
        added: Added entities and new versions of changed ones.
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
    """Return the whole text, the name and the examples of *entity*."""
    return embedding_text(entity), name_text(entity), example_texts(entity)


def blend_name_vectors(wholes: Sequence[Vector], names: Sequence[Vector | None]) -> Matrix:
    """Blend each entity's vector from the vectors of its whole text and its name.

    The name describes a tool best, but has little weight in the whole text.

    Args:
        wholes: Vectors of the whole texts.
        names: Vectors of the names. Without one, the vector of the whole text is used.

    Returns:
        Unit rows, shape (n, d).
    """
    if not wholes:
        return np.zeros((0, 0), dtype=np.float32)
    zeros = np.zeros_like(wholes[0])
    leaning = np.stack([zeros if name is None else name for name in names])
    return unit_rows(np.stack(wholes) + NAME_WEIGHT * leaning)


def lean_to_examples(row: Vector, examples: Sequence[Vector]) -> Vector:
    """Turn an entity's vector towards the vectors of its examples.

    A few examples may not be typical, so the weight of n examples is n / (n + 1) of
    `EXAMPLE_SHARE`.

    Args:
        row: The entity's vector, of unit length.
        examples: Vectors of the examples. Without any, *row* is returned unchanged.
    """
    if not examples:
        return row
    share = EXAMPLE_SHARE * len(examples) / (len(examples) + 1)
    mean = unit_rows(np.mean(examples, axis=0, keepdims=True))
    leaning: Vector = unit_rows((1 - share) * row[None] + share * mean)[0]
    return leaning
