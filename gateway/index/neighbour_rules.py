"""The rules that derive related tools and next steps from the nouns of names. Pure.

* groups: tools of one server whose names share a noun are members of one group, and so are
  entities of one category. Members of a group are related.
* phases: a tool that finds a thing comes before tools that inspect it, and those before tools that
  act on it. A tool that makes a thing comes before all that does something with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from gateway.index.tool_words import CREATE, DISCOVER, HERE, INSPECT, Name, ToolWords, words
from gateway.types import Entity

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
