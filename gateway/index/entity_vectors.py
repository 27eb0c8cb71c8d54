"""The vector of each entity, blended from those of its texts; and where these rows are kept.

* They are in memory (`EntityVectors`), or where another `EntityRows` keeps them.
* A text and its vector are held only while an entity that they belong to lacks another one. After
  that the entity's row is all that stays, in the matrix that searches read.
* An entity that changes keeps its row if its texts are the same.
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


class PendingTexts:
    """Entities some of whose texts have no vector yet, and these texts."""

    def __init__(self) -> None:
        self.entities: dict[str, _PendingEntity] = {}
        """By id."""
        self._texts: dict[str, _PendingText] = {}
        """By text key."""

    @property
    def missing(self) -> list[str]:
        """The texts that have no vector, each once, entity by entity."""
        return [text.text for text in self._texts.values() if text.row is None]

    def add(self, entity_id: str, whole: str, name: str, examples: Sequence[str]) -> None:
        """Put an entity in, with its texts."""
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
            wanted = self._texts.get(key)
            if wanted is None:
                wanted = self._texts[key] = _PendingText(text)
            wanted.users.append(pending)
            wanted.uses += 1
            pending.lacking += wanted.row is None

    def forget(self, entity_id: str) -> None:
        """Take an entity out, if it is here, and the texts that no other one wants."""
        pending = self.entities.pop(entity_id, None)
        for key in pending.keys if pending else ():
            text = self._texts[key]
            text.uses -= 1
            if not text.uses:
                del self._texts[key]

    def take(self, rows: Mapping[str, Vector]) -> Iterator[tuple[str, Vector, bool]]:
        """Take *rows* for the vectors of texts, by text key.

        Yields:
            The id of each entity whose whole text has a vector, of those that *rows* change; its
            row, blended from the vectors there are; whether it has all of them. Such an entity is
            out at the end.
        """
        changed: dict[str, _PendingEntity] = {}
        for key, row in rows.items():
            text = self._texts.get(key)
            if text is None or text.row is not None:
                continue
            text.row = row
            users = [each for each in text.users if self.entities.get(each.id) is each]
            changed |= {user.id: user for user in users}
            for user in users:
                user.lacking -= 1
        yield from self._blend(changed.values())
        for pending in changed.values():
            if not pending.lacking:
                self.forget(pending.id)
        for key in rows:
            if (text := self._texts.get(key)) and text.row is not None:
                # Else it would hold all rows of its request.
                text.row = text.row.copy()

    def _blend(self, entities: Iterable[_PendingEntity]) -> Iterator[tuple[str, Vector, bool]]:
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
            yield pending.id, lean_to_examples(row, found), not pending.lacking


class EntityVectors:
    """`EntityRows` in memory. Not for two threads at once."""

    blocking = False
    has_gaps = False

    def __init__(self) -> None:
        self._pending = PendingTexts()
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
        """See `EntityRows.update`."""
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
        """Memory keeps no rows."""

    def maintain(self) -> None:
        """There is nothing to do."""

    @property
    def missing_texts(self) -> Sequence[str]:
        """See `EntityRows.missing_texts`."""
        return self._pending.missing

    @property
    def missing(self) -> int:
        """See `EntityRows.missing`."""
        return len(self._pending.missing)

    def add(self, rows: Mapping[str, Vector]) -> None:
        """See `EntityRows.add`."""
        for entity_id, row, _ in self._pending.take(rows):
            batch = self._batch(entity_id, len(row))
            place = batch.places[entity_id]
            batch.matrix[place], batch.present[place] = row, True

    def _batch(self, entity_id: str, dimensions: int) -> _Batch:
        """Return the batch of an entity; begin one for all that wait and are in none."""
        for batch in self._batches:
            if entity_id in batch.places:
                return batch
        batched = set[str]().union(*(batch.places for batch in self._batches))
        ids = (key for key in self._pending.entities if key not in batched)
        self._batches.append(_Batch.of(ids, dimensions))
        return self._batches[-1]

    def index(self, eligibility: Eligibility) -> VectorIndex | None:
        """See `EntityRows.index`."""
        found = self.matrix(eligibility.by_id)
        if found is None:
            return None
        matrix, present = found
        listed = listed_rows(eligibility, present)
        total = np.dot(listed.astype(np.float32), matrix)
        mean = np.asarray(total / np.count_nonzero(listed), dtype=np.float32)
        return VectorIndex.of(matrix, present=None if present.all() else present, mean=mean)

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
        # While the next catalog is compiled, the last one may be indexed once more.
        placed = places.keys()
        self._batches = [batch for batch in self._batches if not batch.places.keys() <= placed]
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


def listed_rows(eligibility: Eligibility, present: Mask) -> Mask:
    """Return which rows the mean is of: of what servers list, so that nothing beside it moves it.

    Args:
        eligibility: The catalog.
        present: Which rows are vectors.
    """
    listed = present.copy()
    listed[eligibility.positions_not_of_kinds(LISTED)] = False
    listed &= eligibility.has("described", False)
    return listed if listed.any() else present


def changed_texts(
    removed: Iterable[Entity], added: Iterable[Entity]
) -> tuple[list[str], list[Entity]]:
    """Return the ids of entities that lose their rows, and the entities that want others.

    Args:
        removed: Entities that leave; one that changes is among both.
        added: Entities that come.
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
