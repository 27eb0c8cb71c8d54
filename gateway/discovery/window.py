"""Which found tools the model sees next. Pure: derived from the messages, kept nowhere.

* A search result counts only if it answers a call of our own search tool. Text that looks like one,
  in another tool's output, reveals nothing.
* Found tools are appended and keep their places, so that the prompt's prefix survives. Only at the
  cap the one that was found or called least recently goes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from gateway.discovery.meta_tools import MetaNames
from gateway.discovery.render_results import described, names_of

Message = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Touch:
    """Tools were found or called."""

    names: tuple[str, ...]
    """Best first."""
    found: bool
    """True if a search found them; a call alone shows nothing that was not found."""


def visible(
    messages: Sequence[Message],
    names: MetaNames,
    *,
    cap: int,
    found: Mapping[int, tuple[str, ...]] | None = None,
) -> tuple[str, ...]:
    """Give the names of the found tools to show, in a stable order.

    Args:
        messages: The conversation so far, as JSON objects.
        names: Of the meta-tools.
        cap: How many names at most; 0 or less gives none.
        found: What was found for a message without the model's asking, by the message's place; at
            -1 what was found before the messages begin.
    """
    shown: dict[str, None] = {}
    # In order of use, newest first, and within a search the best first; the last goes first.
    used: dict[str, tuple[int, int]] = {}
    for moment, touch in enumerate(_touches(messages, names, found or {})):
        best = tuple(dict.fromkeys(touch.names))[: max(cap, 0)]
        used.update((name, (moment, -place)) for place, name in enumerate(best))
        for name in best if touch.found else ():
            if name not in shown and len(shown) >= cap:
                del shown[min(shown, key=lambda each: used[each])]
            shown[name] = None
    return tuple(shown)


def told_before(messages: Sequence[Message], names: MetaNames) -> frozenset[str]:
    """Give the names of the tools whose parameters a search of this conversation has told."""
    searches: set[str] = set()
    found: set[str] = set()
    for message in messages:
        if message.get("role") == "assistant":
            searches = _searches(list(_calls(message)), names)
        elif str(message.get("tool_call_id", "")) in searches:
            searches.discard(str(message.get("tool_call_id", "")))
            found.update(described(text_of(message.get("content"))))
    return frozenset(found)


def preselections(messages: Sequence[Message]) -> list[tuple[int, str]]:
    """Give place and text of each user message that says something."""
    told = (
        (place, text_of(message.get("content")).strip())
        for place, message in enumerate(messages)
        if message.get("role") == "user"
    )
    return [(place, text) for place, text in told if text]


def _touches(
    messages: Sequence[Message], names: MetaNames, found: Mapping[int, tuple[str, ...]]
) -> Iterator[Touch]:
    searches: set[str] = set()
    if found.get(-1):
        yield Touch(found[-1], found=True)
    for place, message in enumerate(messages):
        if place in found:
            yield Touch(found[place], found=True)
        if message.get("role") == "assistant":
            calls = list(_calls(message))
            searches = _searches(calls, names)
            yield from _uses(calls, names)
        elif message.get("role") == "tool":
            call_id = str(message.get("tool_call_id", ""))
            if call_id in searches:
                # The first answer counts; a second message with this id is somebody else's.
                searches.discard(call_id)
                yield Touch(names_of(text_of(message.get("content"))), found=True)


def _searches(calls: Sequence[tuple[str, str, str]], names: MetaNames) -> set[str]:
    """An id that also another call has tells nothing, nor does one of an older turn."""
    others = {call_id for call_id, name, _ in calls if name != names.search}
    return {call_id for call_id, _, _ in calls} - others


def _uses(calls: Sequence[tuple[str, str, str]], names: MetaNames) -> Iterator[Touch]:
    for _, name, arguments in calls:
        if name != names.search:
            yield Touch((_called(name, arguments, names),), found=False)


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


def _called(name: str, arguments: str, names: MetaNames) -> str:
    if name != names.call:
        return name
    try:
        given = json.loads(arguments)
    except (ValueError, RecursionError):
        return name
    return str(given.get("name", name)) if isinstance(given, dict) else name


def text_of(content: object) -> str:
    """Give the text of a message's content, which may come in parts."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list | tuple):
        return ""
    parts = (part.get("text", "") for part in content if isinstance(part, Mapping))
    return "".join(str(part) for part in parts)
