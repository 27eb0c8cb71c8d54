"""One immutable picture of the catalog, ready to be searched. It is replaced, never changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

from gateway.index.eligibility import Eligibility, Mask
from gateway.index.order import Places, Step
from gateway.index.vectors.exact import VectorIndex
from gateway.index.vectors.segments import Positions
from gateway.runtime.vectors import Vector
from gateway.search.index.toolgraph import ToolGraph
from gateway.types import Diagnostic, Entity, Filters
from gateway.types.diagnostics import DEGRADING, REPEATED
from graphs.lexical.analysis import fold
from graphs.lexical.bm25_index import Postings
from graphs.patched import patched

_REPEATED_EACH = 5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Snapshot:
    """The index at one moment."""

    version: int
    """Counts index builds: the key of everything that is remembered about searches."""
    entities: Sequence[Entity]
    """In the order of their exposed names, so that ties by position are ties by name."""
    by_name: Named
    """Positions by folded exposed name, folded own name and folded id."""
    eligibility: Eligibility
    lexical: Postings
    graph: ToolGraph | None
    vectors: VectorIndex | None
    """Unit rows, shape (n, d); zeros where an entity has no vector. None without any vector."""
    common: Vector | None
    """The mean row of what servers list, shape (d,); None without any."""
    server_ids: Positions
    """The number of each entity's server, from 0 without gaps, shape (n,). What no server lists has
    a number of its own."""
    diagnostics: tuple[Diagnostic, ...] = ()
    """What went wrong while building; a large catalog may have a note for each of many tools."""
    repeated: tuple[Diagnostic, ...] = ()
    """Those of them that every search repeats; see `repeated`."""

    def told(self, notes: Iterable[Diagnostic]) -> Self:
        """Give the same with *notes* of what went wrong since it was built."""
        every = (*self.diagnostics, *notes)
        return replace(self, diagnostics=every, repeated=repeated(every))

    def position(self, key: str) -> int:
        """Give the position of the entity with this id.

        Raises:
            KeyError: There is none.
        """
        return self.by_name.places.position(key)

    @property
    def dimensions(self) -> int | None:
        """How many numbers a vector has; None without any vector."""
        return None if self.vectors is None else self.vectors.dimensions

    def mask(self, filters: Filters) -> Mask:
        """Give the mask of *filters*, shape (n,), read-only."""
        return self.eligibility.mask(filters, self.by_name.places.numbers)

    def exposed(self, name: str, mask: Mask) -> tuple[int, ...]:
        """Give the position of the eligible entity with exactly this exposed name; () for none."""
        spots = self.by_name.get(fold(name), ())
        entities = self.entities
        return tuple(spot for spot in spots if mask[spot] and entities[spot].exposed_name == name)


def repeated(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Give those of *diagnostics* that tell what every search goes without, each once.

    Of a code that costs a search nothing only the first few are given: a folder may hold very many
    broken documents.
    """
    kept: list[Diagnostic] = []
    counts: Counter[str] = Counter()
    for note in dict.fromkeys(note for note in diagnostics if note.code in REPEATED):
        counts[note.code] += 1
        if note.code in DEGRADING or counts[note.code] <= _REPEATED_EACH:
            kept.append(note)
    return tuple(kept)


class Named(Mapping[str, tuple[int, ...]]):
    """Positions by folded exposed name, folded own name and folded id."""

    def __init__(self, numbers: Mapping[str, tuple[int, ...]], places: Places) -> None:
        self._numbers = numbers
        self.places = places

    @classmethod
    def of(cls, step: Step) -> Named:
        """Gather the names of all entities."""
        numbers: dict[str, tuple[int, ...]] = {}
        for position, entity in enumerate(step.entities):
            for name in _names(entity):
                numbers[name] = (*numbers.get(name, ()), position)
        return cls(numbers, step.places)

    def changed(self, step: Step) -> Named:
        """Give the same after *step*."""
        if step.places.fresh:
            return self.of(step)
        turned: dict[str, tuple[int, ...]] = {}
        for entity in step.gone.values():
            gone = self.places.numbers[entity.id]
            for name in _names(entity):
                known = turned[name] if name in turned else self._numbers[name]
                turned[name] = tuple(number for number in known if number != gone)
        for entity in step.new.values():
            number = step.places.numbers[entity.id]
            for name in _names(entity):
                known = turned[name] if name in turned else self._numbers.get(name, ())
                turned[name] = (*known, number)
        lost = [name for name, held in turned.items() if not held]
        held = {name: held for name, held in turned.items() if held}
        return Named(patched(self._numbers, lost, held), step.places)

    def __getitem__(self, name: str) -> tuple[int, ...]:
        """Give the positions of the entities with a folded name, ascending."""
        return tuple(sorted(self.places.positions[list(self._numbers[name])].tolist()))

    def of_name(self, name: str) -> tuple[int, ...]:
        """Give the positions of the entities with a folded name; () if none has it."""
        # Nearly every query is no name at all: an exception for each would cost too much.
        return self[name] if name in self._numbers else ()

    def __iter__(self) -> Iterator[str]:
        """Give the folded names."""
        return iter(self._numbers)

    def __len__(self) -> int:
        """Count the folded names."""
        return len(self._numbers)


def _names(entity: Entity) -> Iterable[str]:
    return dict.fromkeys(map(fold, (entity.exposed_name, entity.name, entity.id)))
