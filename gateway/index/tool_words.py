"""The words of tools, as the rules that derive edges use them. Pure.

The rules that derive related tools and next steps from the nouns of names. Pure.

* groups: tools of one server whose names share a noun are members of one group, and so are
  entities of one category. Members of a group are related.
* phases: a tool that finds a thing comes before tools that inspect it, and those before tools that
  act on it. A tool that makes a thing comes before all that does something with it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
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


NounKey: TypeAlias = tuple[str, tuple[str, str]]
"""``about``, and a server with a noun of its tools."""
MAX_STEPS = 3
_ACT = 2


def groups_of(entity: Entity) -> list[str]:
    """Return the groups that *entity* is a member of."""
    domains = [f"{entity.server} {noun}" for noun in _nouns(words(entity.name))]
    return [*domains, *(f"category {category}" for category in entity.hints.categories)]


def noun_keys(tool: ToolWords) -> Iterator[NounKey]:
    """Yield a key for each noun of *tool*."""
    return (("about", (tool.server, noun)) for noun in _nouns(tool.name))


def step_keys(tool: ToolWords) -> list[NounKey]:
    """Return the keys that next steps of *tool* have all; empty if nothing comes after it."""
    if _phase(tool) == _ACT and not _creates(tool):
        return []
    return sorted(key for key in noun_keys(tool) if key[1][1] not in HERE)


def steps_after(tool: ToolWords, others: Iterable[ToolWords]) -> list[ToolWords]:
    """Return those of *others* that do more with all that *tool* is about.

    What it is about alone comes first.
    """
    about = frozenset(_nouns(tool.name)) - HERE
    fitting = [each for each in others if about <= {*_nouns(each.name)} and _precedes(tool, each)]
    fitting.sort(key=lambda each: (len(_nouns(each.name)), _phase(each), each.order))
    return fitting[:MAX_STEPS]


def _nouns(name: Name) -> Name:
    """Return the words that are no verbs, but single letters; the first word is one where no other
    is known.
    """
    chosen = [word for word in name if len(word) > 1]
    verbs = DISCOVER | INSPECT
    nouns = [word for word in chosen if verbs.isdisjoint({word, _verb(word)})]
    return tuple(dict.fromkeys(nouns if len(nouns) < len(chosen) else chosen[1:] or chosen))


def _verb(word: str) -> str:
    """Return the verb of what does something: ``search`` of ``searcher``, ``get`` of ``getter``."""
    stem = word.removesuffix("er")
    return stem[:-1] if len(stem) > 1 and stem[-1] == stem[-2] and stem != word else stem


def _phase(tool: ToolWords) -> int:
    """Return what *tool* does with its thing: 0 finds, 1 inspects, 2 acts."""
    verbs = {*tool.name, *map(_verb, tool.name)}
    return 0 if verbs & DISCOVER else 1 if verbs & INSPECT else _ACT


def _creates(tool: ToolWords) -> bool:
    """Return whether *tool* makes its thing: whatever is done with it comes after."""
    return tool.verb in CREATE


def _precedes(tool: ToolWords, other: ToolWords) -> bool:
    """Return whether *other* does more with the same thing."""
    return not _creates(other) and (_creates(tool) or _phase(other) > _phase(tool))
