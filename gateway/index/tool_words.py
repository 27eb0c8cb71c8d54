"""Words of tools, and the rules that derive groups and next steps from the nouns in names. Pure.

* groups: tools of one server whose names share a noun, and entities of one category.
* phases: tools that find a thing come before tools that inspect it, which come before tools that
  act on it. A tool that creates a thing comes before tools that inspect it or act on it. Tools that
  take something back, such as ``delete_note``, are never derived as next steps.
"""

from __future__ import annotations

import re
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
"""Words of an identifier in lower case, without the plural s."""
DISCOVER = frozenset({"search", "find", "list", "query", "discover", "browse", "lookup", "scan"})
INSPECT = frozenset(
    {"get", "read", "fetch", "show", "describe", "inspect", "view", "details", "info", "check"}
)
SUPPLY = frozenset({"get", "fetch", "read", "retrieve", "detect", "determine", "generate"})
CREATE = frozenset({"create", "add", "register", "open", "new"})
UNDO = frozenset(
    {
        "archive", "cancel", "clear", "close", "delete", "disconnect", "drop", "kill", "remove",
        "revoke", "uninstall", "unregister", "void",
    }
)  # fmt: skip
"""Verbs of tools that take back what another tool has created."""
HERE = frozenset({"current", "system", "user", "my", "device"})
"""Words for the machine or its user, with the same meaning for every server."""
FILLERS = HERE | {"the", "a", "an", "desired"}
UNIVERSAL = frozenset(
    {"date", "time", "timezone", "timestamp", "location", "language", "locale", "email", "phone"}
)
"""Single words with the same meaning for every server."""
FREE_TEXT = frozenset(
    {"query", "q", "search", "name", "term", "text", "keyword", "title", "filter", "pattern"}
)
"""Last words in the names of arguments that take any text, such as words to search for."""
ID = frozenset({"id", "ids", "uuid", "guid", "key"})
"""Last words in the names of arguments that identify a thing."""
SECRET = frozenset({"key", "token", "secret", "password", "session", "id"})
"""Last words in the names of values that only the server that issued them understands."""
_ALL = frozenset({"all", "my", "current", "available"})
"""Words that do not change which things a tool finds."""
_IE = frozenset({"movie", "cookie", "calorie", "selfie", "zombie", "serie"})
"""Singular words that end in ie."""
_ID_PATH = re.compile(r"/(\w+)/\{id\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolWords:
    """The words of one tool."""

    entity: Entity
    id: str
    server: str
    order: tuple[str, str]
    description: str
    name: Name
    arguments: tuple[tuple[Name, str, bool], ...]
    """The tool's arguments: words of the name, description, and True if required."""
    required: tuple[Name, ...]
    """Words of the name of each required argument."""

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
        """Words of the tool's name after the verb, without fillers."""
        return tuple(word for word in self.name[1:] if word not in FILLERS)

    @property
    def verb(self) -> str:
        """First word of the tool's name; empty for a name without words."""
        return self.name[0] if self.name else ""

    @property
    def reports_environment(self) -> bool:
        """True if the tool returns a universal value of the machine or user, such as a date, and
        requires no argument.
        """
        return (
            self.verb in SUPPLY
            and not HERE.isdisjoint(self.name)
            and len(self.subject) == 1
            and self.subject[0] in UNIVERSAL
            and not self.required
        )

    @property
    def takes_text(self) -> bool:
        """True if an argument takes any text, such as words to search for."""
        return any(name[-1] in FREE_TEXT for name, _, _ in self.arguments if name)

    @property
    def finds(self) -> Name:
        """Words for the things that a search or list tool returns; empty for other tools.

        The name of a search or list tool has a verb like ``search`` or ``list``. Its only
        required arguments are search texts.
        """
        if DISCOVER.isdisjoint(self.name) or any(
            name[-1] not in FREE_TEXT for name in self.required if name
        ):
            return ()
        # In `find_user_by_name`, the words after ``by`` are not the thing.
        end = self.name.index("by") if "by" in self.name else len(self.name)
        return tuple(word for word in _nouns(self.name[:end]) if word not in _ALL)

    @property
    def identified(self) -> list[Name]:
        """Words for each thing whose id is a required argument. An argument ``id`` is the id of the
        thing in the tool's name, or in a path such as ``/thing/{id}`` in the description.
        """
        things = [name[:-1] for name in self.required if len(name) > 1 and name[-1] in ID]
        if ("id",) in self.required:
            path = _ID_PATH.search(self.description)
            nouns = words(path[1])[-1:] if path else _nouns(self.name)
            things += [nouns] if len(nouns) == 1 else []
        return things

    def is_understood_by(self, server: str) -> bool:
        """Return whether *server* understands the tool's result. A ``status`` is ambiguous."""
        is_specific = len(self.subject) > 1 and self.subject[-1] not in SECRET
        return self.server == server or is_specific or self.reports_environment


@lru_cache(maxsize=1 << 15)
def words(name: str) -> Name:
    """Return the words of the identifier *name*."""
    return tuple(sys.intern(singular(word.casefold())) for word in split_identifier(name))


def singular(word: str) -> str:
    """Return the singular of an English *word*; other words are unchanged.

    Example:
        >>> [singular(word) for word in ("tools", "entities", "movies", "branches", "status")]
        ['tool', 'entity', 'movie', 'branch', 'status']
    """
    if len(word) <= 3 or not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith(("ches", "shes", "sses", "xes")):
        return word[:-2]
    if word.endswith("ies") and word[:-1] not in _IE and len(word) > 4:
        return f"{word[:-3]}y"
    return word[:-1]


def arguments(entity: Entity) -> Iterator[tuple[str, str]]:
    """Yield the name and the description, maybe empty, of each argument of *entity*."""
    for name, schema in as_object(entity.definition.input_schema.get("properties")).items():
        yield str(name), as_text(as_object(schema).get("description"))


NounKey: TypeAlias = tuple[str, tuple[str, str]]
"""Key of a server's tools whose names share a noun: ``about``, then the server and the noun."""
MAX_STEPS = 3
_ACT = 2


def groups_of(entity: Entity) -> list[str]:
    """Return the names of the groups to which *entity* belongs."""
    nouns, server = _nouns(words(entity.name)), entity.server
    domains = [server if noun == server.casefold() else f"{server} {noun}" for noun in nouns]
    return [*domains, *(f"category {category}" for category in entity.hints.categories)]


def noun_keys(tool: ToolWords) -> Iterator[NounKey]:
    """Yield a key for each noun in the name of *tool*."""
    return (("about", (tool.server, noun)) for noun in _nouns(tool.name))


def step_keys(tool: ToolWords) -> list[NounKey]:
    """Return the keys of *tool* that each of its next steps also has; empty if it has none."""
    if _phase(tool) == _ACT and not _creates(tool):
        return []
    return sorted(key for key in noun_keys(tool) if key[1][1] not in HERE)


def steps_after(tool: ToolWords, others: Iterable[ToolWords]) -> list[ToolWords]:
    """Return the next steps of *tool* among *others*: tools of a later phase with all its nouns.

    Tools with the fewest other nouns come first.
    """
    about = frozenset(_nouns(tool.name)) - HERE
    fitting = [
        other for other in others if about <= {*_nouns(other.name)} and _precedes(tool, other)
    ]
    fitting.sort(key=lambda other: (len(_nouns(other.name)), _phase(other), other.order))
    return fitting[:MAX_STEPS]


def _nouns(name: Name) -> Name:
    """Return the nouns of a tool's name: its words without verbs and single letters.

    If the name contains no known verb, its first word counts as the verb.
    """
    chosen = [word for word in name if len(word) > 1]
    verbs = DISCOVER | INSPECT
    nouns = [word for word in chosen if verbs.isdisjoint({word, _verb(word)})]
    return tuple(dict.fromkeys(nouns if len(nouns) < len(chosen) else chosen[1:] or chosen))


def _verb(word: str) -> str:
    """Return the verb of an agent noun: ``search`` for ``searcher``, ``get`` for ``getter``."""
    stem = word.removesuffix("er")
    return stem[:-1] if len(stem) > 1 and stem[-1] == stem[-2] and stem != word else stem


def _phase(tool: ToolWords) -> int:
    """Return 0 if *tool* finds things, 1 if it inspects them, 2 if it acts on them."""
    verbs = {*tool.name, *map(_verb, tool.name)}
    return 0 if verbs & DISCOVER else 1 if verbs & INSPECT else _ACT


def _creates(tool: ToolWords) -> bool:
    return tool.verb in CREATE


def _precedes(tool: ToolWords, other: ToolWords) -> bool:
    """Return whether *other* comes in a later phase than *tool*. A tool that creates a thing comes
    before tools that inspect it or act on it. A tool that takes something back is no next step.
    """
    if _creates(other) or not UNDO.isdisjoint(other.name):
        return False
    return _phase(other) > (0 if _creates(tool) else _phase(tool))
