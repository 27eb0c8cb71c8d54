"""One immutable picture of the catalog, ready to be searched. Swapped whole, never changed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from gateway.catalog.kinds import KINDS
from gateway.config import GraphOptions
from gateway.embed.cached import text_key
from gateway.search import toolgraph
from gateway.search.eligible import Eligibility, Mask
from gateway.search.kept import Kept
from gateway.search.scan import VectorIndex
from gateway.search.texts import embedding_text
from gateway.search.toolgraph import ToolGraph
from gateway.types import Diagnostic, Entity, Filters
from gateway.vectors import Vector
from graphs import Document, Postings
from graphs.text import fold

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
    graph: ToolGraph | None
    vectors: VectorIndex | None
    """Zeros where an entity has no vector. None without any vector."""
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
        stated = [query, *(word.strip(".-/") for word in words if _NOT_PLAIN.search(word))]
        spots = (spot for name in stated for spot in self.by_name.get(fold(name), ()))
        return [spot for spot in dict.fromkeys(spots) if mask[spot]]


def compile_snapshot(  # noqa: PLR0913  (keyword-only, one a part of the index)
    entities: Sequence[Entity],
    *,
    version: int,
    rows: Mapping[str, Vector],
    texts: Mapping[str, str],
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
        texts: Each entity's embedding text, by id.
        documents: The host's own graph documents.
        diagnostics: What went wrong so far.
        derive: Which edges are derived; None derives all.
        kept: What the last build leaves to this one.
    """
    kept = kept or Kept()
    ordered = tuple(sorted(entities, key=lambda each: (each.exposed_name.casefold(), each.id)))
    keys = [text_key(texts[entity.id]) if entity.id in texts else "" for entity in ordered]
    indexed = {name: weight for row in KINDS.values() for name, weight in row.indexed.items()}
    return Snapshot(
        version=version,
        entities=ordered,
        by_id={entity.id: position for position, entity in enumerate(ordered)},
        by_name=_by_name(ordered),
        eligibility=Eligibility.of(ordered),
        lexical=Postings.build(
            kept.fields.of(ordered),
            weights={str(name): weight for name, weight in indexed.items()},
            lexicon=kept.lexicon,
        ),
        graph=toolgraph.build(ordered, documents, options=derive, kept=kept) if ordered else None,
        vectors=_vectors(keys, rows),
        rows={key: rows[key] for key in keys if key in rows},
        diagnostics=tuple(diagnostics),
    )


def embedding_texts(entities: Sequence[Entity]) -> dict[str, str]:
    """Give the text that each entity's vector is made of, by id."""
    return {entity.id: embedding_text(entity) for entity in entities}


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
