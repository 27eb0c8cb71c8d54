"""One immutable picture of the catalog, ready to be searched. Swapped whole, never changed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gateway.catalog.kinds import KINDS
from gateway.catalog.refresh import Turnover
from gateway.config import GraphOptions
from gateway.embed.yardstick import Yardstick
from gateway.search.dense.doubts import Boasts, doubts
from gateway.search.dense.kinship import narrowness
from gateway.search.dense.mates import Mates
from gateway.search.dense.scan import VectorIndex
from gateway.search.dense.segments import Positions
from gateway.search.eligible import Eligibility, Mask
from gateway.search.index.kept import Texts
from gateway.search.index.names import Names
from gateway.search.index.texts import lexical_fields
from gateway.search.index.toolgraph import ToolGraph, ToolGraphs
from gateway.search.order import Order, Places, Step
from gateway.types import Diagnostic, Entity, Filters
from gateway.vectors import Matrix, Vector, unit_rows
from graphs import Document, Postings
from graphs.text import fold

NAME_WEIGHT = 0.4
"""What the vector of an entity's name counts beside that of its whole text."""
_IDENTIFIER = re.compile(r"[^\s\"'`(),;:!?]+")
_NOT_PLAIN = re.compile(r"[_\-./]|[a-z0-9][A-Z]")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Snapshot:
    """The index at one moment."""

    version: int
    """Counts index builds: the key of everything that is remembered about searches."""
    entities: tuple[Entity, ...]
    """In the order of their exposed names, so that ties by position are ties by name."""
    by_name: Named
    """Positions by folded exposed name, folded own name and folded id."""
    eligibility: Eligibility
    lexical: Postings
    names: Names
    graph: ToolGraph | None
    vectors: VectorIndex | None
    """Zeros where an entity has no vector. None without any vector."""
    common: Vector | None
    """Their mean row; None without any."""
    mates: Mates | None = None
    """Who serves with whom; None if all are of one server."""
    diagnostics: tuple[Diagnostic, ...] = ()
    """What went wrong while building; a search repeats the degrading ones."""
    yardstick: Yardstick | None = None
    """What the model's cosines mean; None if nobody measured it."""
    doubts: Vector | None = None
    """What each entity loses in `auto`, in deviations, shape (n,); None if nobody loses."""
    narrowness: float = 1.0
    """How much the tools have in common, 0.25 to 1; see `gateway.search.dense.kinship`."""

    def position(self, key: str) -> int:
        """Give the position of the entity with this id.

        Raises:
            KeyError: There is none.
        """
        return self.by_name.places.position(key)

    @property
    def dimensions(self) -> int | None:
        """How long the vectors are."""
        return None if self.vectors is None else self.vectors.dimensions

    def mask(self, filters: Filters) -> Mask:
        """Give who passes *filters*, shape (n,)."""
        return self.eligibility.mask(filters)

    def exposed(self, name: str) -> tuple[int, ...]:
        """Give the position of the entity with exactly this exposed name; () if there is none."""
        spots = self.by_name.get(fold(name), ())
        return tuple(spot for spot in spots if self.entities[spot].exposed_name == name)

    def named(self, query: str, mask: Mask) -> list[int]:
        """Give the eligible entities whose names *query* states, in the order of the stating.

        The whole query may be a name in any spelling of its spaces; within a longer one only
        words count that look like identifiers, so that ``run`` in a sentence names nothing.
        """
        stated = [query]
        if _NOT_PLAIN.search(query):
            bare = (word.strip(".-/") for word in _IDENTIFIER.findall(query))
            stated += (word for word in bare if _NOT_PLAIN.search(word))
        spots = (spot for name in stated for spot in self.by_name.get(fold(name), ()))
        return [spot for spot in dict.fromkeys(spots) if mask[spot]]


def compile_snapshot(  # noqa: PLR0913  (keyword-only, one a part of the index)
    entities: Sequence[Entity],
    *,
    version: int = 1,
    rows: Mapping[str, Vector],
    documents: Sequence[Document] = (),
    diagnostics: Sequence[Diagnostic] = (),
    derive: GraphOptions | None = None,
    yardstick: Yardstick | None = None,
) -> Snapshot:
    """Compile *entities* to a snapshot; see `Snapshots`.

    Args:
        entities: In any order.
        version: The number of this build.
        rows: Vectors by text key; missing ones become rows of zeros.
        documents: The host's own graph documents.
        diagnostics: What went wrong so far.
        derive: Which edges are derived; None derives all.
        yardstick: What the model's cosines mean.
    """
    snapshots = Snapshots(derive or GraphOptions())
    snapshots.texts.change((), entities)
    snapshots.texts.embedded(rows)
    turnover = Turnover(gone=(), new=tuple(entities))
    return snapshots.change(
        turnover,
        version=version,
        documents=documents,
        diagnostics=diagnostics,
        yardstick=yardstick,
    )


class Snapshots:
    """The index of a catalog that changes: each snapshot is made from the last one.

    What differs costs Python; what stays costs a pass over arrays. Whatever way a catalog came to
    be, its snapshot is that of a fresh build. Not for two builds at once.

    Args:
        derive: Which edges are derived.
    """

    def __init__(self, derive: GraphOptions) -> None:
        self.texts = Texts()
        self.graphs = ToolGraphs(derive)
        self._order = Order()
        self._last: Snapshot | None = None
        self._fresh: Positions | None = None
        """Whose rows are new since the last snapshot; None if all are."""
        self._boasts = Boasts()

    def change(
        self,
        turnover: Turnover,
        *,
        version: int,
        documents: Sequence[Document],
        diagnostics: Sequence[Diagnostic],
        yardstick: Yardstick | None = None,
    ) -> Snapshot:
        """Make the snapshot after *turnover*, whose texts `texts` knows already.

        Args:
            turnover: How the catalog changed.
            version: The number of this build.
            documents: The host's own graph documents.
            diagnostics: What went wrong so far.
            yardstick: What the model's cosines mean.
        """
        last = self._last or _nothing()
        step = self._order.change(turnover.gone, turnover.new)
        lexical = _lexical(last.lexical, step)
        vectors = self._vectors(last.vectors, step)
        graph = self.graphs.change(step, documents)
        mates = Mates.of([entity.server for entity in step.entities])
        boasts = self._boasts.change(vectors, step.moves, self._fresh, yardstick)
        self._last = Snapshot(
            version=version,
            entities=step.entities,
            by_name=last.by_name.changed(step),
            eligibility=last.eligibility.changed(step, last.by_name.places),
            lexical=lexical,
            names=Names.of(lexical),
            graph=graph if step.entities else None,
            vectors=vectors,
            common=None if vectors is None else vectors.mean.row,
            mates=mates,
            diagnostics=tuple(diagnostics),
            yardstick=yardstick,
            doubts=doubts(lexical, mates, boasts),
            narrowness=narrowness(vectors, yardstick),
        )
        return self._last

    def _vectors(self, last: VectorIndex | None, step: Step) -> VectorIndex | None:
        late = self.texts.late()
        if last is None or len(late) + len(step.new) > len(step.entities) / 2:
            self._fresh = None
            matrix = blended(self.texts.of(step.entities))
            return None if matrix is None else VectorIndex.of(matrix)
        entities = step.entities
        places = step.moves.table()
        numbers = dict.fromkeys(step.new)
        numbers |= dict.fromkeys(map(step.places.position, late))
        self._fresh = spots = np.asarray(sorted(numbers), dtype=np.intp)
        stays = places >= 0
        stays[stays] = ~np.isin(places[stays], spots)
        kept = np.flatnonzero(stays)
        order = np.empty(len(entities), dtype=np.intp)
        order[places[kept]] = np.arange(len(kept))
        order[spots] = len(kept) + np.arange(len(spots))
        rows = blended(self.texts.of([entities[at] for at in spots.tolist()]))
        if rows is None:
            rows = np.zeros((len(spots), last.dimensions), dtype=np.float32)
        found = last.changed(kept, rows, order)
        return found if found.mean.count else None


def _nothing() -> Snapshot:
    weights = {str(name): each for row in KINDS.values() for name, each in row.indexed.items()}
    lexical = Postings.build([], weights=weights)
    return Snapshot(
        version=0,
        entities=(),
        by_name=Named.of(Step.first(())),
        eligibility=Eligibility.of(()),
        lexical=lexical,
        names=Names.of(lexical),
        graph=None,
        vectors=None,
        common=None,
    )


def _lexical(last: Postings, step: Step) -> Postings:
    if len(step.new) > len(step.entities) / 2:
        scale = last.inverted.scale
        weights = dict(zip(scale.fields, scale.weights, strict=True))
        return Postings.build(list(map(_fields, step.entities)), weights=weights)
    return last.changed(
        {at: _fields(entity) for at, entity in step.gone.items()},
        {at: _fields(entity) for at, entity in step.new.items()},
    )


def _fields(entity: Entity) -> Mapping[str, str]:
    return {str(name): text for name, text in lexical_fields(entity).items()}


def blended(pairs: Sequence[tuple[Vector | None, Vector | None]]) -> Matrix | None:
    """Make each entity's vector: the whole text's, leaning to the name's.

    A description drowns the name that says best what a tool is for. Without the name's vector the
    whole's stands alone.

    Args:
        pairs: The vectors of the whole text and of the name, where there are any.

    Returns:
        Unit rows, one an entity; zeros without the whole's vector. None if nobody has one.
    """
    known = next((whole for whole, _ in pairs if whole is not None), None)
    if known is None:
        return None
    zeros = np.zeros_like(known, dtype=np.float32)
    wholes = np.stack([zeros if whole is None else whole for whole, _ in pairs])
    names = np.stack([zeros if name is None else name for _, name in pairs])
    names[~wholes.any(axis=1)] = 0
    return unit_rows(wholes + NAME_WEIGHT * names)


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
        numbers = dict(self._numbers)
        for entity in step.gone.values():
            gone = self.places.numbers[entity.id]
            for name in _names(entity):
                if left := tuple(number for number in numbers[name] if number != gone):
                    numbers[name] = left
                else:
                    del numbers[name]
        for entity in step.new.values():
            for name in _names(entity):
                numbers[name] = (*numbers.get(name, ()), step.places.numbers[entity.id])
        return Named(numbers, step.places)

    def __getitem__(self, name: str) -> tuple[int, ...]:
        """Give who has a folded name, in the order of the catalog."""
        return tuple(sorted(self.places.positions[list(self._numbers[name])].tolist()))

    def __iter__(self) -> Iterator[str]:
        """Give the folded names."""
        return iter(self._numbers)

    def __len__(self) -> int:
        """Count the folded names."""
        return len(self._numbers)


def _names(entity: Entity) -> Iterable[str]:
    return dict.fromkeys(map(fold, (entity.exposed_name, entity.name, entity.id)))
