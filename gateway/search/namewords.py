"""The words of a catalog's names, read once for all rules that derive edges. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

from gateway.types import Entity
from graphs.text import split_identifier

Relation = Literal["requires", "next_steps", "related"]
Name: TypeAlias = tuple[str, ...]
"""The words of a name in lower case, the s of the plural dropped."""
ACT = 2
DISCOVER = frozenset({"search", "find", "list", "query", "discover", "browse", "lookup", "scan"})
INSPECT = frozenset(
    {"get", "read", "fetch", "show", "describe", "inspect", "view", "details", "info", "check"}
)
SUPPLY = frozenset({"get", "fetch", "read", "retrieve", "detect", "determine", "generate"})
HERE = frozenset({"current", "system", "user", "my", "device"})
"""Words for what the machine or its user has, whoever asks."""
FILLERS = HERE | {"the", "a", "an", "desired"}
UNIVERSAL = frozenset(
    {"date", "time", "timezone", "timestamp", "location", "language", "locale", "email", "phone"}
)
"""Single words that mean the same to every server."""
SECRET = frozenset({"key", "token", "secret", "password", "session", "id"})
"""Last words of what one server gave out: to another it means nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Derived:
    """One derived edge between two entities, by position."""

    subject: int
    relation: Relation
    object: int
    rule: str
    """Which rule read it; the reader of an explanation sees it."""


@dataclass(frozen=True, kw_only=True)
class NameWords:
    """The words of a catalog's names."""

    entities: Sequence[Entity]
    names: Sequence[Name]
    """The words of each name."""

    @classmethod
    def of(cls, entities: Sequence[Entity]) -> NameWords:
        """Read the names of *entities*."""
        return cls(entities=entities, names=[words(each.name) for each in entities])

    def nouns(self, position: int) -> Name:
        """The words but the first, which is the verb, and but single letters and other verbs."""
        chosen = [word for word in self.names[position] if len(word) > 1]
        verbs = DISCOVER | INSPECT
        return tuple(dict.fromkeys(word for word in chosen[1:] or chosen if word not in verbs))

    def phase(self, position: int) -> int:
        """0 finds, 1 inspects, 2 acts."""
        verbs = set(self.names[position])
        return 0 if verbs & DISCOVER else 1 if verbs & INSPECT else ACT

    def thing(self, position: int) -> Name:
        """What the words after the verb name, without fillers."""
        return tuple(word for word in self.names[position][1:] if word not in FILLERS)

    def verb(self, position: int) -> str:
        """The first word; empty where a name has none."""
        return self.names[position][0] if self.names[position] else ""

    @cached_property
    def here(self) -> tuple[int, ...]:
        """Who tells, and needs nothing for it, something universal of here and now."""
        return tuple(
            position for position in range(len(self.entities)) if self._tells_of_here(position)
        )

    @cached_property
    def _machines(self) -> frozenset[str]:
        """The servers that speak for the machine."""
        return frozenset(self.entities[position].server for position in self.here)

    def speaks_to(self, supplier: int, server: str) -> bool:
        """Whether what *supplier* gets means the same to *server*: a bare ``status`` does not."""
        thing = self.thing(supplier)
        known = len(thing) > 1 and thing[-1] not in SECRET
        return self.entities[supplier].server == server or known or self._tells_of_here(supplier)

    def serves(self, helper: int, server: str) -> bool:
        """Whether *helper* is of *server*, or of one that speaks for the machine."""
        own = self.entities[helper].server
        return own == server or own in self._machines

    def _tells_of_here(self, position: int) -> bool:
        thing = self.thing(position)
        return (
            self.verb(position) in SUPPLY
            and not HERE.isdisjoint(self.names[position])
            and len(thing) == 1
            and thing[0] in UNIVERSAL
            and not self.entities[position].required
        )


def words(name: str) -> Name:
    """Give the words of an identifier."""
    return tuple(singular(word.casefold()) for word in split_identifier(name))


def singular(word: str) -> str:
    """Drop the s of a plural."""
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def arguments(entity: Entity) -> Iterator[tuple[str, str]]:
    """Give each argument and its description, empty if it has none."""
    properties = entity.definition.input_schema.get("properties")
    if isinstance(properties, Mapping):
        for name, told in properties.items():
            text = told.get("description") if isinstance(told, Mapping) else None
            yield str(name), text if isinstance(text, str) else ""


def described(entity: Entity) -> str:
    """Give the description of a tool and those of its arguments, a line each."""
    return "\n".join([entity.description, *(text for _, text in arguments(entity) if text)])
