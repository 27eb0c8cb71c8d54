"""The meta-tools: search, and call by name; on demand route, and next tools. Pure.

* If a tool of the host has the same name, the host's keeps it and ours gets another.
* The description of the search tool holds a digest of the catalog. It stays the same to the byte
  until the catalog changes, since it stands at the head of every prompt.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from gateway.index.texts import humanized
from gateway.options import DiscoveryOptions
from gateway.runtime.text import estimate_tokens
from gateway.types import Entity

FunctionTool = dict[str, object]
"""One entry of a request's ``tools``."""

_WORDS_A_SERVER = 8
_VERBS = frozenset({"get", "set", "list", "add", "create", "delete", "update", "from", "to", "and"})


@dataclass(frozen=True, slots=True, kw_only=True)
class MetaNames:
    """The names of the meta-tools in one conversation."""

    search: str
    call: str
    route: str = ""
    """Empty if it is not offered."""
    next: str = ""
    """Likewise."""

    def __contains__(self, name: object) -> bool:
        """Return whether *name* is one of them."""
        return bool(name) and name in {self.search, self.call, self.route, self.next}


def meta_names(
    options: DiscoveryOptions, host_names: Collection[str], *, avoid: Collection[str] = ()
) -> MetaNames:
    """Name the meta-tools beside the host's own tools, whose names are *host_names*.

    Args:
        options: Their names, as long as these are free.
        host_names: The names of the host's tools.
        avoid: Names of the catalog: a meta-tool that gets another name may not get one of these.
    """
    wanted = (options.search_name, options.call_name, options.route_name, options.next_name)
    chosen: list[str] = []
    for index, name in enumerate(wanted):
        # The catalog gives no tool the first two names; the others may be taken.
        is_avoided = index > 1 and name in avoid
        used = {*host_names, *chosen, *((name,) if is_avoided else ())}
        chosen.append(_free_name(name, used, avoid) if name else "")
    return MetaNames(search=chosen[0], call=chosen[1], route=chosen[2], next=chosen[3])


def _free_name(name: str, used: Collection[str], avoid: Collection[str]) -> str:
    """Return the name, else ``gateway_name``, else with a number; at most 64 characters."""
    if name not in used:
        return name
    base = f"gateway_{name}"[:60]
    numbered = (f"{base}_{number}" for number in range(2, len(used) + len(avoid) + 3))
    return next(free for free in (base, *numbered) if free not in used and free not in avoid)


_QUERY: dict[str, object] = {
    "query": {
        "type": "string",
        "description": "What a tool should do and to what, in any language.",
    },
    "queries": {
        "type": "array",
        "items": {"type": "string"},
        "description": "Instead of query: one search for each step of a longer task.",
    },
}
_FIND = "Find tools for what has to be done."
_FIRST = "Search before saying that you cannot."


def meta_tools(names: MetaNames, digest: str, *, stable: bool = False) -> tuple[FunctionTool, ...]:
    """Write the definitions of the meta-tools.

    Args:
        names: Their names; those without one are left out.
        digest: What is in the catalog.
        stable: True if found tools do not become tools, but are called through the call tool.
    """
    suffix = f" {digest}" if digest else ""
    how = (
        f"Tools that are found are called by {names.call}, as their parameters say."
        if stable
        else "Tools that are found can be called directly, by their own names, from your next turn "
        "on."
    )
    find = _function(names.search, f"{_FIND} {how} {_FIRST}{suffix}", _QUERY, [])
    return (find, call_tool(names, stable=stable), *adviser_tools(names))


def call_tool(names: MetaNames, *, stable: bool = False) -> FunctionTool:
    """Write the meta-tool that calls a tool by its name."""
    description = (
        f"Call a tool that {names.search} has found."
        if stable
        else "Call a tool by its name, one that a search has named but that is not among your "
        "tools."
    )
    properties: dict[str, object] = {
        "name": {"type": "string", "description": "The tool's name as the search gave it."},
        "arguments": {"type": "object", "description": "Its arguments."},
    }
    return _function(names.call, description, properties, ["name"])


def adviser_tools(names: MetaNames) -> tuple[FunctionTool, ...]:
    """Write the meta-tools that only advise: route and next, those that have a name."""
    tools = {"type": "array", "items": {"type": "string"}, "description": "The last one last."}
    route = _function(
        names.route,
        "Say which servers have tools for a task, before tools are searched for.",
        {"query": _QUERY["query"]},
        ["query"],
    )
    following = _function(
        names.next,
        "Say which tools are likely to be needed after those that were just used.",
        {"tools": tools},
        ["tools"],
    )
    return tuple(tool for name, tool in ((names.route, route), (names.next, following)) if name)


def native_tool(digest: str) -> FunctionTool:
    """Write the Responses API's own tool search, executed by us."""
    suffix = f" {digest}" if digest else ""
    return {
        "type": "tool_search",
        "execution": "client",
        "description": f"{_FIND} Tools that are found can be called at once. {_FIRST}{suffix}",
        "parameters": {
            "type": "object",
            "properties": _QUERY,
            "required": [],
            "additionalProperties": False,
        },
    }


def _function(
    name: str, description: str, properties: Mapping[str, object], required: list[str]
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


def catalog_digest(entities: Sequence[Entity], *, budget: int) -> str:
    """Return in a few words what the catalog holds, server by server, the largest first.

    Args:
        entities: Those that may be found.
        budget: Estimated tokens at most; 0 gives nothing.
    """
    if not entities or budget <= 0:
        return ""
    servers: dict[str, list[Entity]] = {}
    for entity in entities:
        servers.setdefault(entity.server, []).append(entity)
    ordered = sorted(servers, key=lambda server: (-len(servers[server]), server))
    head = f"The catalog holds {_plural(len(entities), 'tool')}:"
    parts: list[str] = []
    for index, server in enumerate(ordered):
        subjects = ", ".join(_subjects(servers[server]))
        part = f"{server} ({len(servers[server])}: {subjects})"
        if estimate_tokens("; ".join([head, *parts, part])) > budget:
            rest = _plural(len(ordered) - index, "more server")
            return f"{head} {'; '.join([*parts, rest])}."
        parts.append(part)
    return f"{head} {'; '.join(parts)}."


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _subjects(entities: Sequence[Entity]) -> list[str]:
    """Return the words that most names of a server share, but verbs; ties in alphabetical order."""
    counts = Counter(
        word
        for entity in entities
        for word in dict.fromkeys(humanized(entity.name).casefold().split())
        if len(word) > 2 and word not in _VERBS
    )
    return sorted(counts, key=lambda word: (-counts[word], word))[:_WORDS_A_SERVER]
