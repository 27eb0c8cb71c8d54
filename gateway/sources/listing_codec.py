"""A tool list as text: the whole of it, and the head of it, which is all that a start reads.

* The text has two lines: everything about the list but its tools, and the tools.
* The head is made of the first line. It holds one digest of all tools and one of all definitions'
  digests, so that neither has to be parsed before somebody looks at one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from itertools import chain
from typing import Any

from gateway.errors import StoreError
from gateway.runtime.text import digest
from gateway.sources.protocol import LateTools, readable
from gateway.types import Diagnostic, Hints, JsonObject, ToolDefinition
from gateway.types.listing import Listing

Read = Callable[[], str]
"""Reads the line of the tools."""


class LateDigests(Mapping[str, str]):
    """Digests by name that are read only when somebody looks at one of them.

    Args:
        count: How many there are.
        seen: What `seen_of` gives of all of them.
        read: Reads them.
    """

    def __init__(self, count: int, seen: str, read: Callable[[], Mapping[str, str]]) -> None:
        self.seen = seen
        self._count = count
        self._read = read

    @cached_property
    def _all(self) -> Mapping[str, str]:
        return self._read()

    def __len__(self) -> int:
        """Count them, without reading any."""
        return self._count

    def __iter__(self) -> Iterator[str]:
        """Give the names."""
        return iter(self._all)

    def __getitem__(self, name: str) -> str:
        """Give the digest of a name."""
        return self._all[name]


def written(listing: Listing) -> str:
    """Write a list as text, for `whole` to read."""
    tools = _line(listing.tools)
    told = {
        "count": len(listing.tools),
        "digest": digest(tools),
        "things": [
            {**_tool(thing), "kind": thing.kind, "details": thing.details}
            for thing in listing.things
        ],
        "instructions": listing.instructions,
        "notes": [[note.code, note.detail] for note in listing.diagnostics],
        "digests": dict(listing.digests),
        "suspicions": {name: list(why) for name, why in listing.suspicions.items()},
    }
    return f"{json.dumps(told)}\n{tools}"


def digest_of(listing: Listing) -> str:
    """Give the digest of the tools of a list as it is kept, whether they were read late or not.

    Returns:
        Empty where it would not tell all: if the list was never kept, or a tool of it is doubted.
    """
    tools = listing.tools
    if isinstance(tools, LateTools):
        return tools.digest
    if not listing.digests or any(tool.doubts for tool in tools):
        return ""
    return digest(_line(tools))


def whole(text: str) -> Listing:
    """Read a whole list, as `written` writes it.

    Raises:
        ValueError, KeyError, TypeError: It is not as it was written.
    """
    head, digests = head_of(text)
    listing = of_head(json.loads(head), digests, partial(tools_of, text))
    if not readable(listing):
        raise ValueError("the tools are not as they were written")
    return listing


def tools_of(text: str) -> str:
    """Give the second line of a list that was `written`: its tools."""
    return text[text.index("\n") + 1 :]


def head_of(text: str) -> tuple[str, str]:
    """Give the head of a list that was `written`, and its digests.

    Raises:
        ValueError, KeyError, TypeError: It is not as it was written.
    """
    told = json.loads(text[: text.index("\n")])
    digests = told.pop("digests")
    sums = {"pins": len(digests), "seen": seen_of(digests)}
    return json.dumps({**told, **sums}), json.dumps(digests)


def parsed(heads: Sequence[str]) -> Sequence[Any]:
    """Parse many heads at once, which costs a third of one by one; None for what is none."""
    with suppress(ValueError, TypeError):
        told: list[Any] = json.loads(f"[{','.join(heads)}]")
        if len(told) == len(heads):
            return told
    return [_parsed(head) for head in heads]


def _parsed(head: str) -> Any:
    with suppress(ValueError, TypeError):
        return json.loads(head)
    return None


def of_head(head: Any, digests: str, read: Read) -> Listing:
    """Give the list of a head.

    Args:
        head: What `head_of` gave, parsed.
        digests: The same.
        read: Reads its tools, when somebody looks at them; may raise `StoreError`.

    Raises:
        ValueError, KeyError, TypeError: It is not as it was written.
    """
    tools = partial(_definitions, head["digest"], read)
    return Listing(
        tools=LateTools(head["count"], head["digest"], tools),
        things=tuple(map(_definition, head.get("things", ()))),
        instructions=head.get("instructions", ""),
        diagnostics=tuple(
            Diagnostic(stage="catalog", code=code, detail=detail) for code, detail in head["notes"]
        ),
        digests=LateDigests(head["pins"], head["seen"], partial(json.loads, digests)),
        suspicions={name: tuple(why) for name, why in head["suspicions"].items()},
    )


def seen_of(digests: Mapping[str, str]) -> str:
    """Give one digest of all *digests*, by which two sets are compared; empty if there are none."""
    if isinstance(digests, LateDigests):
        return digests.seen
    told = "\0".join(chain.from_iterable(sorted(digests.items())))
    return digest(told) if digests else ""


def _line(tools: Iterable[ToolDefinition]) -> str:
    return json.dumps([_tool(tool) for tool in tools])


def _tool(tool: ToolDefinition) -> JsonObject:
    hints = tool.hints
    return {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "input": tool.input_schema,
        "output": tool.output_schema,
        "hints": [hints.read_only, hints.destructive, hints.idempotent],
    }


def _definitions(kept: str, read: Read) -> tuple[ToolDefinition, ...]:
    text = read()
    if digest(text) != kept:
        raise StoreError("the tools of a remembered list are others by now")
    return tuple(map(_definition, json.loads(text)))


def _definition(raw: Any) -> ToolDefinition:
    read_only, destructive, idempotent = raw["hints"]
    return ToolDefinition(
        name=raw["name"],
        title=raw["title"],
        description=raw["description"],
        input_schema=raw["input"],
        output_schema=raw["output"],
        hints=Hints(read_only=read_only, destructive=destructive, idempotent=idempotent),
        kind=raw.get("kind", "tool"),
        details=raw.get("details", {}),
    )
