"""One immutable picture of the catalog, ready to be searched. Swapped whole, never changed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from gateway.catalog.kinds import KINDS
from gateway.config import GraphOptions
from gateway.embed.cached import text_key
from gateway.search import toolgraph
from gateway.search.eligible import Eligibility, Mask
from gateway.search.kept import Kept
from gateway.search.names import Names
from gateway.search.scan import VectorIndex
from gateway.search.toolgraph import ToolGraph
from gateway.types import Diagnostic, Entity, Filters
from gateway.vectors import Vector, unit_rows
from graphs import Document, Postings
from graphs.text import fold

_IDENTIFIER = re.compile(r"[^\s\"'`(),;:!?]+")
NAME_WEIGHT = 0.4
"""What the vector of an entity's name counts beside that of its whole text."""
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
    rows: Mapping[str, Vector] = field(default_factory=dict)
    """The vectors by text key: what the next build need not embed."""
    diagnostics: tuple[Diagnostic, ...] = ()
    """What went wrong while building; a search repeats the degrading ones."""

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
    """
    kept = kept or Kept()
    ordered = tuple(sorted(entities, key=lambda each: (each.exposed_name.casefold(), each.id)))
    keys = [text_key(texts[entity.id][0]) if entity.id in texts else "" for entity in ordered]
    mixed = blended(texts.values(), rows)
    indexed = {name: weight for row in KINDS.values() for name, weight in row.indexed.items()}
    lexical = Postings.build(
        kept.fields.of(ordered),
        weights={str(name): weight for name, weight in indexed.items()},
        lexicon=kept.lexicon,
    )
    found = [mixed[key] for key in keys if key in mixed]
    return Snapshot(
        version=version,
        entities=ordered,
        by_id={entity.id: position for position, entity in enumerate(ordered)},
        by_name=_by_name(ordered),
        eligibility=Eligibility.of(ordered),
        lexical=lexical,
        names=Names.of(lexical),
        graph=toolgraph.build(ordered, documents, options=derive, kept=kept) if ordered else None,
        vectors=_vectors(keys, mixed),
        common=np.mean(found, axis=0, dtype=np.float32) if found else None,
        rows=rows,
        diagnostics=tuple(diagnostics),
    )


def blended(texts: Iterable[tuple[str, str]], rows: Mapping[str, Vector]) -> dict[str, Vector]:
    """Make each entity's vector, by the key of its whole text: the whole's, leaning to the name's.

    A description drowns the name that says best what a tool is for. Without the name's vector the
    whole's stands alone; without the whole's there is none.
    """
    found: dict[str, Vector] = {}
    for whole, name in texts:
        row, lean = rows.get(text_key(whole)), rows.get(text_key(name))
        if row is not None:
            mixed = row if lean is None else row + NAME_WEIGHT * lean
            found[text_key(whole)] = unit_rows(mixed)[0]
    return found


def _by_name(entities: Sequence[Entity]) -> Mapping[str, tuple[int, ...]]:
    spots: dict[str, dict[int, None]] = {}
    for position, entity in enumerate(entities):
        for name in (entity.exposed_name, entity.name, entity.id):
            spots.setdefault(fold(name), {})[position] = None
    return {name: tuple(found) for name, found in spots.items()}


def _vectors(keys: Sequence[str], rows: Mapping[str, Vector]) -> VectorIndex | None:
    found = [rows[key] for key in keys if key in rows]
    if not found:
        return None
    zeros = np.zeros(found[0].shape[0], dtype=np.float32)
    return VectorIndex.of(np.stack([rows.get(key, zeros) for key in keys]))
