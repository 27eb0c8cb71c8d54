"""The words of tools, as the rules that derive edges use them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from gateway.types import Entity
from graphs.lexical.analysis import split_identifier

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
"""Words for what belongs to the machine or its user, and so means the same to every server."""
FILLERS = HERE | {"the", "a", "an", "desired"}
UNIVERSAL = frozenset(
    {"date", "time", "timezone", "timestamp", "location", "language", "locale", "email", "phone"}
)
"""Single words that mean the same to every server."""
SECRET = frozenset({"key", "token", "secret", "password", "session", "id"})
"""Last words of the names of what a server gives out and no other server understands."""
_IDENTIFIER = re.compile(
    r"\b[A-Za-z][A-Za-z0-9]*(?:[_.-][A-Za-z0-9]+|(?<=[a-z0-9])[A-Z][a-z0-9]+)+"
)
_BEFORE = re.compile(
    r"\b(?:after|first|requires?|required|from|returned by|obtained|must)\b", re.IGNORECASE
)
_AFTER = re.compile(r"\b(?:before|then|next|followed by|afterwards)\b", re.IGNORECASE)
_CUE_CHARS = 48


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolWords:
    """The words of one tool."""

    id: str
    server: str
    order: tuple[str, str]
    """The key that the catalog is sorted by."""
    own: str
    """Its source's name for it, without case."""
    description: str
    name: Name
    """The words of its name."""
    arguments: tuple[tuple[Name, str, bool], ...]
    """The words of each argument's name, its description, and whether it is required."""
    required: tuple[Name, ...]
    """The words of each required argument's name."""
    mentions: tuple[tuple[str, Relation], ...]
    """The identifiers in its texts, without case, and how it speaks of each."""

    @classmethod
    def of(cls, entity: Entity) -> ToolWords:
        """Return the words of *entity*."""
        return cls(
            id=entity.id,
            server=entity.server,
            order=(entity.exposed_name.casefold(), entity.id),
            own=entity.name.casefold(),
            description=entity.description,
            name=words(entity.name),
            arguments=tuple(
                (words(name), text, name in entity.required) for name, text in arguments(entity)
            ),
            required=tuple(map(words, entity.required)),
            mentions=tuple(_mentions(described(entity))),
        )

    @property
    def nouns(self) -> Name:
        """All words but the first, which is the verb, but single letters and but other verbs."""
        return _nouns(self.name)

    @property
    def phase(self) -> int:
        """What it does with its thing: 0 finds, 1 inspects, 2 acts."""
        verbs = set(self.name)
        return 0 if verbs & DISCOVER else 1 if verbs & INSPECT else ACT

    @property
    def thing(self) -> Name:
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
            and len(self.thing) == 1
            and self.thing[0] in UNIVERSAL
            and not self.required
        )

    def is_understood_by(self, server: str) -> bool:
        """Return whether *server* understands its result; ``status`` alone means another thing."""
        is_specific = len(self.thing) > 1 and self.thing[-1] not in SECRET
        return self.server == server or is_specific or self.reports_environment


def nouns_of(entity: Entity) -> Name:
    """Return what an entity's name is about."""
    return _nouns(words(entity.name))


def _nouns(name: Name) -> Name:
    chosen = [word for word in name if len(word) > 1]
    verbs = DISCOVER | INSPECT
    return tuple(dict.fromkeys(word for word in chosen[1:] or chosen if word not in verbs))


def words(name: str) -> Name:
    """Return the words of an identifier."""
    return tuple(singular(word.casefold()) for word in split_identifier(name))


def singular(word: str) -> str:
    """Drop the s of a plural."""
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def arguments(entity: Entity) -> Iterator[tuple[str, str]]:
    """Return each argument and its description, empty if it has none."""
    properties = entity.definition.input_schema.get("properties")
    if isinstance(properties, Mapping):
        for name, schema in properties.items():
            text = schema.get("description") if isinstance(schema, Mapping) else None
            yield str(name), text if isinstance(text, str) else ""


def described(entity: Entity) -> str:
    """Return the description of a tool and those of its arguments, a line each."""
    return "\n".join([entity.description, *(text for _, text in arguments(entity) if text)])


def _mentions(text: str) -> Iterator[tuple[str, Relation]]:
    for found in _IDENTIFIER.finditer(text):
        cue = text[max(0, found.start() - _CUE_CHARS) : found.start()]
        yield found.group().casefold(), _relation(cue)


def _relation(cue: str) -> Relation:
    """Return what the words before a name say of it; the last one counts."""
    before = [match.end() for match in _BEFORE.finditer(cue)]
    after = [match.end() for match in _AFTER.finditer(cue)]
    if not before and not after:
        return "related"
    return "requires" if max(before, default=-1) > max(after, default=-1) else "next_steps"
