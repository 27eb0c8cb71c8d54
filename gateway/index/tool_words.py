"""The words of tools, as the rules that derive edges use them. Pure."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

from gateway.runtime.json_schema import as_object, as_text
from gateway.types import Entity
from graphs.lexical.analysis import split_identifier

Relation = Literal["requires", "next_steps"]
Name: TypeAlias = tuple[str, ...]
"""The words of a name in lower case, the s of the plural dropped."""
DISCOVER = frozenset({"search", "find", "list", "query", "discover", "browse", "lookup", "scan"})
INSPECT = frozenset(
    {"get", "read", "fetch", "show", "describe", "inspect", "view", "details", "info", "check"}
)
SUPPLY = frozenset({"get", "fetch", "read", "retrieve", "detect", "determine", "generate"})
CREATE = frozenset({"create", "add", "register", "open", "new"})
HERE = frozenset({"current", "system", "user", "my", "device"})
"""Words for what belongs to the machine or its user, and so means the same to every server."""
FILLERS = HERE | {"the", "a", "an", "desired"}
UNIVERSAL = frozenset(
    {"date", "time", "timezone", "timestamp", "location", "language", "locale", "email", "phone"}
)
"""Single words that mean the same to every server."""
SECRET = frozenset({"key", "token", "secret", "password", "session", "id"})
"""Last words of the names of what a server gives out and no other server understands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolWords:
    """The words of one tool."""

    entity: Entity
    id: str
    server: str
    order: tuple[str, str]
    """The key that the catalog is sorted by."""
    description: str
    name: Name
    """The words of its name."""
    arguments: tuple[tuple[Name, str, bool], ...]
    """The words of each argument's name, its description, and whether it is required."""
    required: tuple[Name, ...]
    """The words of each required argument's name."""

    @classmethod
    def of(cls, entity: Entity) -> ToolWords:
        """Return the words of *entity*."""
        return cls(
            entity=entity,
            id=entity.id,
            server=entity.server,
            order=(entity.exposed_name.casefold(), entity.id),
            description=entity.description,
            name=words(entity.name),
            arguments=tuple(
                (words(name), text, name in entity.required) for name, text in arguments(entity)
            ),
            required=tuple(map(words, entity.required)),
        )

    @property
    def subject(self) -> Name:
        """The words after the verb, without fillers: what the tool is about."""
        return tuple(word for word in self.name[1:] if word not in FILLERS)

    @property
    def verb(self) -> str:
        """The first word; empty where a name has none."""
        return self.name[0] if self.name else ""

    @property
    def reports_environment(self) -> bool:
        """Whether it needs no argument and reports a value that every server understands."""
        return (
            self.verb in SUPPLY
            and not HERE.isdisjoint(self.name)
            and len(self.subject) == 1
            and self.subject[0] in UNIVERSAL
            and not self.required
        )

    def is_understood_by(self, server: str) -> bool:
        """Return whether *server* understands its result; ``status`` alone means another thing."""
        is_specific = len(self.subject) > 1 and self.subject[-1] not in SECRET
        return self.server == server or is_specific or self.reports_environment


@lru_cache(maxsize=1 << 15)
def words(name: str) -> Name:
    """Return the words of an identifier."""
    return tuple(sys.intern(singular(word.casefold())) for word in split_identifier(name))


def singular(word: str) -> str:
    """Drop the s of a plural."""
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def arguments(entity: Entity) -> Iterator[tuple[str, str]]:
    """Return each argument and its description, empty if it has none."""
    for name, schema in as_object(entity.definition.input_schema.get("properties")).items():
        yield str(name), as_text(as_object(schema).get("description"))
