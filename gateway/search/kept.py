"""What one index build leaves to the next: work on what did not change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from gateway.search.texts import embedding_text, lexical_fields, name_text
from gateway.types import Entity
from graphs import Compiler, Document
from graphs.lexicon import Lexicon

T = TypeVar("T")


@dataclass(slots=True)
class Memo(Generic[T]):
    """What was made of each entity, for as long as the entity is the same object."""

    make: Callable[[Entity], T]
    made: int = 0
    """How often something was really made."""
    _known: dict[int, tuple[Entity, T]] = field(default_factory=dict)

    def of(self, entities: Iterable[Entity]) -> list[T]:
        """Give what is made of each of *entities*, and forget what was made of others."""
        pairs = [self._one(entity) for entity in entities]
        self._known = {id(pair[0]): pair for pair in pairs}
        return [made for _, made in pairs]

    def _one(self, entity: Entity) -> tuple[Entity, T]:
        # The entity is held, so that no other object can have its number.
        known = self._known.get(id(entity))
        if known is not None:
            return known
        self.made += 1
        return entity, self.make(entity)


def _texts(entity: Entity) -> tuple[str, str]:
    return embedding_text(entity), name_text(entity)


def _fields(entity: Entity) -> Mapping[str, str]:
    return {str(name): text for name, text in lexical_fields(entity).items()}


@dataclass(slots=True)
class Kept:
    """The memory of an `Indexer`. Not for two builds at once."""

    texts: Memo[tuple[str, str]] = field(default_factory=lambda: Memo(_texts))
    fields: Memo[Mapping[str, str]] = field(default_factory=lambda: Memo(_fields))
    documents: Memo[Document] | None = None
    """The graph's documents; the graph says how they are made."""
    lexicon: Lexicon = field(default_factory=Lexicon)
    compiler: Compiler = field(default_factory=Compiler)

    def embedding_texts(self, entities: Sequence[Entity]) -> dict[str, tuple[str, str]]:
        """Give the two texts that each entity's vector is made of, by id: the whole, the name."""
        ids = [entity.id for entity in entities]
        return dict(zip(ids, self.texts.of(entities), strict=True))
