"""The two meta-tools: search, and call by name. Pure.

* A host's tool of the same name wins; ours moves aside.
* The search tool's description tells what lies behind it, and stays the same to the byte until
  the catalog changes: it stands at the head of every prompt.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from gateway.config import DiscoveryOptions
from gateway.search.texts import humanized
from gateway.text import estimate_tokens
from gateway.types import Entity

FunctionTool = dict[str, object]
"""One entry of a request's ``tools``."""

_WORDS_A_SERVER = 8
_DULL = frozenset({"get", "set", "list", "add", "create", "delete", "update", "from", "to", "and"})


@dataclass(frozen=True, slots=True, kw_only=True)
class MetaNames:
    """What the two meta-tools are called in one conversation."""

    search: str
    call: str

    def __contains__(self, name: object) -> bool:
        """Whether *name* is one of them."""
        return name in {self.search, self.call}


def meta_names(
    options: DiscoveryOptions, taken: Collection[str], *, avoid: Collection[str] = ()
) -> MetaNames:
    """Name the meta-tools beside the host's own tools, whose names are *taken*.

    Args:
        options: What they are called if nobody else is called so.
        taken: The host's names.
        avoid: Names of the catalog, which one that moves aside may not meet either.
    """
    search = _free(options.search_name, taken, avoid)
    return MetaNames(search=search, call=_free(options.call_name, {*taken, search}, avoid))


def _free(name: str, taken: Collection[str], avoid: Collection[str]) -> str:
    """The name, else ``gateway_name``, else with a number; at most 64 characters."""
    if name not in taken:
        return name
    base = f"gateway_{name}"[:60]
    numbered = (f"{base}_{number}" for number in range(2, len(taken) + len(avoid) + 3))
    return next(each for each in (base, *numbered) if each not in taken and each not in avoid)


def meta_tools(names: MetaNames, digest: str) -> tuple[FunctionTool, FunctionTool]:
    """Write the definitions of the meta-tools."""
    told = f" {digest}" if digest else ""
    search = _function(
        names.search,
        "Find tools for what has to be done. Tools that are found can be called directly, by "
        f"their own names, from your next turn on. Search before saying that you cannot.{told}",
        {
            "query": {
                "type": "string",
                "description": "What a tool should do and to what, in any language.",
            },
            "queries": {
                "type": "array",
                "items": {"type": "string"},
                "description": "Instead of query: one search for each step of a longer task.",
            },
        },
        [],
    )
    call = _function(
        names.call,
        "Call a tool by its name, one that a search has named but that is not among your tools.",
        {
            "name": {"type": "string", "description": "The tool's name as the search gave it."},
            "arguments": {"type": "object", "description": "Its arguments."},
        },
        ["name"],
    )
    return search, call


def _function(
    name: str, description: str, properties: dict[str, object], required: list[str]
) -> FunctionTool:
    return {
        "type": "function",
        "function": {
            "name": name,
            "description": description,
            "parameters": {
                "type": "object",
                "properties": properties,
                "required": required,
                "additionalProperties": False,
            },
        },
    }


def digest(entities: Sequence[Entity], *, budget: int) -> str:
    """Tell in a few words what the catalog holds, server by server, the largest first.

    Args:
        entities: Those that may be found.
        budget: Estimated tokens at the most; 0 tells nothing.
    """
    if not entities or budget <= 0:
        return ""
    servers: dict[str, list[Entity]] = {}
    for entity in entities:
        servers.setdefault(entity.server, []).append(entity)
    ordered = sorted(servers, key=lambda server: (-len(servers[server]), server))
    head = f"The catalog holds {_counted(len(entities), 'tool')}:"
    parts: list[str] = []
    for place, server in enumerate(ordered):
        words = ", ".join(_subjects(servers[server]))
        part = f"{server} ({len(servers[server])}: {words})"
        rest = len(ordered) - place
        if estimate_tokens("; ".join([head, *parts, part])) > budget:
            return f"{head} {'; '.join([*parts, _counted(rest, 'more server')])}."
        parts.append(part)
    return f"{head} {'; '.join(parts)}."


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _subjects(entities: Sequence[Entity]) -> list[str]:
    """The words that most names of a server share, verbs left out; ties in alphabetical order."""
    counts = Counter(
        word
        for entity in entities
        for word in dict.fromkeys(humanized(entity.name).casefold().split())
        if len(word) > 2 and word not in _DULL
    )
    return [word for word, _ in sorted(counts.items(), key=lambda each: (-each[1], each[0]))][
        :_WORDS_A_SERVER
    ]
