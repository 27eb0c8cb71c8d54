"""Choice of the proxies for the next request, and the definitions of proxies. Pure.

The choice is derived from the messages, of which only answers to searches count. New proxies are
appended and keep their position, so that the prompt's prefix stays cacheable. If there are too
many, the tool that was found or called least recently is removed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from gateway.discovery.meta_tools import FunctionTool, MetaNames
from gateway.discovery.parameters import fits_strict, to_parameters
from gateway.discovery.render_results import MAX_LINE_CHARS, described_names_in, direct_names_in
from gateway.options import DiscoveryOptions
from gateway.runtime.text import clean, one_line
from gateway.types import Entity


def proxy(entity: Entity, options: DiscoveryOptions, *, brief: bool = False) -> FunctionTool:
    """Return *entity* as a tool that a model can call; if *brief*, with one line of description."""
    description = clean(description_of(entity), limit=options.description_chars)
    parameters = to_parameters(entity.definition.input_schema, max_chars=options.parameters_chars)
    function: dict[str, object] = {
        "name": entity.exposed_name,
        "description": one_line(description, limit=MAX_LINE_CHARS) if brief else description,
        "parameters": parameters,
    }
    if options.strict and fits_strict(parameters):
        function["strict"] = True
    return {"type": "function", "function": function}


def description_of(entity: Entity) -> str:
    """Return the description of *entity*, or else its title or name."""
    return entity.description or entity.definition.title or f"{entity.name} of {entity.server}"


Message = Mapping[str, object]
_Use = tuple[tuple[str, ...], bool]
"""One use of tools: their names, best first, and True for a search, False for a call."""


def visible_proxies(
    messages: Sequence[Message],
    names: MetaNames,
    *,
    cap: int,
    found: Mapping[int, tuple[str, ...]] | None = None,
) -> tuple[str, ...]:
    """Return the names of the proxies to show, in a stable order, at most *cap*.

    *messages* are the conversation so far. *found* are names that were found without a call by the
    model, keyed by the index of their message; -1 is before the first one.
    """
    visible: dict[str, None] = {}
    last_used: dict[str, tuple[int, int]] = {}
    """Time of each tool's last use; a larger value is later. In one search, the best match is the
    latest."""
    for moment, (tools, is_search) in enumerate(_uses(messages, names, found or {})):
        best = tuple(dict.fromkeys(tools))[: max(cap, 0)]
        last_used.update((name, (moment, -rank)) for rank, name in enumerate(best))
        for name in best if is_search else ():
            if name not in visible and len(visible) >= cap:
                del visible[min(visible, key=last_used.__getitem__)]
            visible[name] = None
    return tuple(visible)


def described_tools(messages: Sequence[Message], names: MetaNames) -> frozenset[str]:
    """Return the names of the tools whose parameters search results of this conversation show."""
    contents = (content for _, content in _search_results(messages, names))
    return frozenset(name for content in contents for name in described_names_in(content))


def user_texts(messages: Sequence[Message]) -> list[tuple[int, str]]:
    """Return index and text of each user message that is not blank."""
    texts = (
        (index, text_of(message.get("content")).strip())
        for index, message in enumerate(messages)
        if message.get("role") == "user"
    )
    return [(index, text) for index, text in texts if text]


def _uses(
    messages: Sequence[Message], names: MetaNames, found: Mapping[int, tuple[str, ...]]
) -> Iterator[_Use]:
    results = dict(_search_results(messages, names))
    if found.get(-1):
        yield found[-1], True
    for index, message in enumerate(messages):
        if index in found:
            yield found[index], True
        if message.get("role") == "assistant":
            for _, name, arguments in _calls(message):
                if name != names.search:
                    yield (_called_tool(name, arguments, names),), False
        elif index in results:
            yield direct_names_in(results[index]), True


def _search_results(messages: Sequence[Message], names: MetaNames) -> Iterator[tuple[int, str]]:
    """Yield index and text of each message that answers a search in the turn before it."""
    open_searches: set[str] = set()
    for index, message in enumerate(messages):
        if message.get("role") == "assistant":
            calls = list(_calls(message))
            # Ignore ids that a call of another tool also has.
            others = {call_id for call_id, name, _ in calls if name != names.search}
            open_searches = {call_id for call_id, _, _ in calls} - others
        elif message.get("role") == "tool":
            call_id = str(message.get("tool_call_id", ""))
            if call_id in open_searches:
                # Only the first answer counts. A second one with the same id is not from the
                # gateway.
                open_searches.discard(call_id)
                yield index, text_of(message.get("content"))


def _calls(message: Message) -> Iterator[tuple[str, str, str]]:
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list | tuple) else ():
        function = call.get("function") if isinstance(call, Mapping) else None
        if isinstance(function, Mapping):
            yield (
                str(call.get("id", "")),
                str(function.get("name", "")),
                str(function.get("arguments", "")),
            )


def _called_tool(name: str, arguments: str, names: MetaNames) -> str:
    if name != names.call:
        return name
    try:
        parsed = json.loads(arguments)
    except (ValueError, RecursionError):
        return name
    return str(parsed.get("name", name)) if isinstance(parsed, dict) else name


def text_of(content: object) -> str:
    """Return the text of a message's content, which may consist of parts."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list | tuple):
        return ""
    parts = (part.get("text", "") for part in content if isinstance(part, Mapping))
    return "".join(str(part) for part in parts)
