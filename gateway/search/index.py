"""One immutable picture of the catalog, ready to be searched. Swapped whole, never changed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from gateway.catalog.kinds import KINDS
from gateway.config import GraphOptions
from gateway.embed.cached import text_key
from gateway.embed.yardstick import Yardstick
from gateway.search import toolgraph
from gateway.search.doubts import doubts
from gateway.search.eligible import Eligibility, Mask
from gateway.search.kept import Kept
from gateway.search.kinship import narrowness
from gateway.search.mates import Mates
from gateway.search.names import Names
from gateway.search.scan import VectorIndex
from gateway.search.toolgraph import ToolGraph
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
    by_id: Mapping[str, int]
    by_name: Mapping[str, tuple[int, ...]]
    """Positions by folded exposed name and folded own name."""
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
    rows: Mapping[str, Vector] = field(default_factory=dict)
    """The vectors by text key: what the next build need not embed."""
    diagnostics: tuple[Diagnostic, ...] = ()
    """What went wrong while building; a search repeats the degrading ones."""
    yardstick: Yardstick | None = None
    """What the model's cosines mean; None if nobody measured it."""
    doubts: Vector | None = None
    """What each entity loses in `auto`, in deviations, shape (n,); None if nobody loses."""
    narrowness: float = 1.0
    """How much the tools have in common, 0.25 to 1; see `gateway.search.kinship`."""

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
        words = _IDENTIFIER.findall(query)
        bare = (word.strip(".-/") for word in words)
        stated = [query, *(word for word in bare if _NOT_PLAIN.search(word))]
        spots = (spot for name in stated for spot in self.by_name.get(fold(name), ()))
        return [spot for spot in dict.fromkeys(spots) if mask[spot]]


def compile_snapshot(  # noqa: PLR0913  (keyword-only, one a part of the index)
    entities: Sequence[Entity],
    *,
    version: int,
    rows: Mapping[str, Vector],
    texts: Mapping[str, tuple[str, str]],
    documents: Sequence[Document],
    diagnostics: Sequence[Diagnostic],
    derive: GraphOptions | None = None,
    kept: Kept | None = None,
    yardstick: Yardstick | None = None,
) -> Snapshot:
    """Compile *entities* to a snapshot.

    Args:
        entities: In any order.
        version: The number of this build.
        rows: Vectors by text key; missing ones become rows of zeros.
        texts: Each entity's embedding texts, by id.
        documents: The host's own graph documents.
        diagnostics: What went wrong so far.
        derive: Which edges are derived; None derives all.
        kept: What the last build leaves to this one.
        yardstick: What the model's cosines mean.
    """
    kept = kept or Kept()
    ordered = tuple(sorted(entities, key=lambda each: (each.exposed_name.casefold(), each.id)))
    matrix = blended([texts.get(entity.id, ("", "")) for entity in ordered], rows)
    indexed = {name: weight for row in KINDS.values() for name, weight in row.indexed.items()}
    lexical = Postings.build(
        kept.fields.of(ordered),
        weights={str(name): weight for name, weight in indexed.items()},
        lexicon=kept.lexicon,
    )
    return Snapshot(
        version=version,
        entities=ordered,
        by_id={entity.id: position for position, entity in enumerate(ordered)},
        by_name=_by_name(ordered),
        eligibility=Eligibility.of(ordered),
        lexical=lexical,
        names=Names.of(lexical),
        graph=toolgraph.build(ordered, documents, options=derive, kept=kept) if ordered else None,
        vectors=None if matrix is None else VectorIndex.of(matrix),
        common=None if matrix is None else matrix[matrix.any(axis=1)].mean(axis=0),
        mates=Mates.of([entity.server for entity in ordered]),
        rows=rows,
        diagnostics=tuple(diagnostics),
        yardstick=yardstick,
        doubts=doubts(lexical, [each.server for each in ordered], matrix, yardstick),
        narrowness=narrowness(matrix, yardstick),
    )


def blended(texts: Sequence[tuple[str, str]], rows: Mapping[str, Vector]) -> Matrix | None:
    """Make each entity's vector: the whole text's, leaning to the name's.

    A description drowns the name that says best what a tool is for. Without the name's vector the
    whole's stands alone.

    Returns:
        Unit rows, one an entity; zeros without the whole's vector. None if nobody has one.
    """
    keys = [(text_key(whole), text_key(name)) for whole, name in texts]
    known = next((rows[whole] for whole, _ in keys if whole in rows), None)
    if known is None:
        return None
    zeros = np.zeros_like(known, dtype=np.float32)
    wholes = np.stack([rows.get(whole, zeros) for whole, _ in keys])
    names = np.stack([rows.get(name, zeros) for _, name in keys])
    names[~wholes.any(axis=1)] = 0
    return unit_rows(wholes + NAME_WEIGHT * names)


def _by_name(entities: Sequence[Entity]) -> Mapping[str, tuple[int, ...]]:
    spots: dict[str, dict[int, None]] = {}
    for position, entity in enumerate(entities):
        for name in (entity.exposed_name, entity.name, entity.id):
            spots.setdefault(fold(name), {})[position] = None
    return {name: tuple(found) for name, found in spots.items()}
