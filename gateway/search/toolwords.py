"""What one tool's words say, before it is compared with others. Pure; each tool is read once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from gateway.types import Entity
from graphs.text import split_identifier

Relation = Literal["requires", "next_steps", "related"]
ACT = 2
_DISCOVER = frozenset({"search", "find", "list", "query", "discover", "browse", "lookup", "scan"})
_INSPECT = frozenset(
    {"get", "read", "fetch", "show", "describe", "inspect", "view", "details", "info", "check"}
)
_SIGN_IN = frozenset({"login", "signin", "authenticate", "authorize"})
_SUPPLY = frozenset({"get", "fetch", "read", "retrieve", "detect", "determine", "generate"})
_OWNERS = frozenset({"current", "system", "user", "my", "device", "the", "a", "an", "desired"})
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
    """Where the tool stands in the catalog."""
    name: str
    """Its source's name for it, without case."""
    words: tuple[str, ...]
    """Lower-case words of the name, plural s dropped."""
    nouns: tuple[str, ...]
    """The words but the first, which is the verb, and but single letters and other verbs."""
    phase: int
    """0 finds, 1 inspects, 2 acts."""
    arguments: tuple[tuple[str, ...], ...]
    """The words of each argument's name."""
    supplies: tuple[str, ...]
    """What it gets, by the words of its name; empty if nothing."""
    free: bool
    """Whether it needs nothing for that."""
    opens: str
    """What it signs in to; empty if to nothing."""
    mentions: tuple[tuple[str, Relation], ...]
    """The identifiers in its texts, without case, and how it speaks of each."""

    @classmethod
    def of(cls, entity: Entity) -> ToolWords:
        """Read *entity*."""
        words = words_of(entity.name)
        arguments = tuple(map(words_of, _arguments(entity)))
        supplies = _supplies(words)
        free = not entity.required
        if not free and (len(supplies) < len(("two", "words")) or supplies in arguments):
            supplies = ()
        return cls(
            id=entity.id,
            server=entity.server,
            order=(entity.exposed_name.casefold(), entity.id),
            name=entity.name.casefold(),
            words=words,
            nouns=_nouns(words),
            phase=_phase(words),
            arguments=arguments,
            supplies=supplies,
            free=free,
            opens=_opens(words),
            mentions=tuple(_mentions(_described(entity))),
        )

    def speaks_to(self, server: str) -> bool:
        """Whether what it gets means the same to *server*: a bare ``status`` does not."""
        return len(self.words) > len(("verb", "word")) or self.server == server


def nouns_of(entity: Entity) -> tuple[str, ...]:
    """Give what an entity's name is about."""
    return _nouns(words_of(entity.name))


def words_of(name: str) -> tuple[str, ...]:
    """Give the lower-case words of *name*, plural s dropped."""
    return tuple(_singular(word.casefold()) for word in split_identifier(name))


def _nouns(words: tuple[str, ...]) -> tuple[str, ...]:
    long = [word for word in words if len(word) > 1]
    verbs = _DISCOVER | _INSPECT
    return tuple(dict.fromkeys(word for word in long[1:] or long if word not in verbs))


def _phase(words: tuple[str, ...]) -> int:
    verbs = set(words)
    return 0 if verbs & _DISCOVER else 1 if verbs & _INSPECT else ACT


def _supplies(words: tuple[str, ...]) -> tuple[str, ...]:
    verb, *rest = words or ("",)
    return tuple(word for word in rest if word not in _OWNERS) if verb in _SUPPLY else ()


def _opens(words: tuple[str, ...]) -> str:
    said = set(words)
    if not (said & _SIGN_IN or {"log", "in"} <= said or {"sign", "in"} <= said):
        return ""
    rest = said - _SIGN_IN - _OWNERS - {"log", "sign", "in", "to", "account"}
    return min(rest, key=words.index) if rest else ""


def _mentions(text: str) -> Iterator[tuple[str, Relation]]:
    for found in _IDENTIFIER.finditer(text):
        cue = text[max(0, found.start() - _CUE_CHARS) : found.start()]
        yield found.group().casefold(), _relation(cue)


def _relation(cue: str) -> Relation:
    """What the words before a name say of it; the last one counts."""
    before = [match.end() for match in _BEFORE.finditer(cue)]
    after = [match.end() for match in _AFTER.finditer(cue)]
    if not before and not after:
        return "related"
    return "requires" if max(before, default=-1) > max(after, default=-1) else "next_steps"


def _described(entity: Entity) -> str:
    properties = entity.definition.input_schema.get("properties")
    told = properties.values() if isinstance(properties, Mapping) else ()
    texts = [each.get("description") for each in told if isinstance(each, Mapping)]
    return "\n".join([entity.description, *(text for text in texts if isinstance(text, str))])


def _arguments(entity: Entity) -> Iterable[str]:
    properties = entity.definition.input_schema.get("properties")
    return map(str, properties) if isinstance(properties, Mapping) else ()


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word
