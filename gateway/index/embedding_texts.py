"""What one index build leaves to the next, so that a change costs what changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from gateway.embed.cache import text_key
from gateway.index.texts import embedding_text, name_text
from gateway.runtime.vectors import Vector
from gateway.types import Entity


@dataclass(slots=True)
class Texts:
    """The texts that vectors are made of, and the vectors. Not for two threads at once."""

    keys: dict[str, tuple[str, str]] = field(default_factory=dict)
    """The keys of the whole text and of the name, by entity id."""
    rows: dict[str, Vector] = field(default_factory=dict)
    """The vectors by key; a text that has none is absent."""
    wanted: dict[str, str] = field(default_factory=dict)
    """The texts that have no vector yet, by key."""
    made: int = 0
    """How many times the texts of an entity were made: what a change costs is counted by it."""
    _overdue: set[str] = field(default_factory=set)
    _uses: Counter[str] = field(default_factory=Counter)

    @property
    def count(self) -> int:
        """How many different texts there are."""
        return len(self._uses)

    def change(self, gone: Iterable[Entity], new: Iterable[Entity]) -> None:
        """Forget the texts of the entities that are *gone*, and make those of the *new* ones."""
        left = [key for entity in gone for key in self.keys.pop(entity.id)]
        for entity in new:
            self.made += 1
            texts = embedding_text(entity), name_text(entity)
            keys = text_key(texts[0]), text_key(texts[1])
            self.keys[entity.id] = keys
            for key, text in zip(keys, texts, strict=True):
                self._uses[key] += 1
                if key not in self.rows:
                    self.wanted[key] = text
        # Last, so that a text that another entity has now keeps its vector.
        for key in left:
            self._uses[key] -= 1
            if not self._uses[key]:
                del self._uses[key]
                self.rows.pop(key, None)
                self.wanted.pop(key, None)

    def late(self) -> list[str]:
        """Give the ids of the entities that waited for a vector longer than since the last time."""
        came = self._overdue - self.wanted.keys()
        self._overdue = set(self.wanted)
        if not came:
            return []
        return [key for key, texts in self.keys.items() if not came.isdisjoint(texts)]

    def embedded(self, rows: Mapping[str, Vector]) -> None:
        """Take *rows* for the vectors of wanted texts, by key."""
        for key, row in rows.items():
            if self.wanted.pop(key, None) is not None:
                self.rows[key] = row

    def of(self, entities: Sequence[Entity]) -> list[tuple[Vector | None, Vector | None]]:
        """Give the vectors of the whole text and of the name of each of *entities*."""
        pairs = (self.keys[entity.id] for entity in entities)
        return [(self.rows.get(whole), self.rows.get(name)) for whole, name in pairs]
