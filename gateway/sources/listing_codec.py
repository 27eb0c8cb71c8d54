"""A listing as text: one line about everything but its tools, and one line of its tools.

The tools are parsed when they are first looked at: a start whose index is saved looks at none.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, overload

from gateway.runtime.text import digest
from gateway.types import Diagnostic, Hints, JsonObject, ToolDefinition
from gateway.types.listing import Listing


class LazyTools(Sequence[ToolDefinition]):
    """The tools of a stored listing, parsed when one is first looked at.

    Args:
        text: The line of the tools.
        count: How many there are.
        digest: Of *text*: equal digests mean equal tools.
    """

    def __init__(self, text: str, *, count: int, digest: str) -> None:
        self.digest = digest
        self._text = text
        self._count = count

    @cached_property
    def _tools(self) -> tuple[ToolDefinition, ...]:
        return tuple(map(_definition, json.loads(self._text)))

    def __len__(self) -> int:
        """The number of tools; parses none."""
        return self._count

    @overload
    def __getitem__(self, position: int) -> ToolDefinition: ...
    @overload
    def __getitem__(self, position: slice) -> tuple[ToolDefinition, ...]: ...
    def __getitem__(self, position: int | slice) -> ToolDefinition | tuple[ToolDefinition, ...]:
        """Return one tool, or those of a slice."""
        return self._tools[position]

    def __iter__(self) -> Iterator[ToolDefinition]:
        """Yield the tools, always the same objects."""
        return iter(self._tools)

    def __eq__(self, other: object) -> bool:
        """Whether the other holds the same tools, parsed or not."""
        return isinstance(other, tuple | LazyTools) and self._tools == tuple(other)

    def __hash__(self) -> int:
        """As the tuple of them."""
        return hash(self._tools)


def encode(listing: Listing) -> str:
    """Return a listing as text, for `decode` to read."""
    tools = _tools_line(listing.tools)
    header = {
        "count": len(listing.tools),
        "digest": digest(tools),
        "things": [
            {**_to_json(item), "kind": item.kind, "details": item.details}
            for item in listing.things
        ],
        "instructions": listing.instructions,
        "notes": [[note.code, note.detail] for note in listing.diagnostics],
        "digests": dict(listing.digests),
        "suspicions": {name: list(reasons) for name, reasons in listing.suspicions.items()},
    }
    return f"{json.dumps(header)}\n{tools}"


def decode(text: str) -> Listing:
    """Return the listing of a text that `encode` wrote.

    Raises:
        ValueError, KeyError, TypeError: It is not as it was written.
    """
    first, tools = text.split("\n", 1)
    header = json.loads(first)
    if digest(tools) != header["digest"]:
        raise ValueError("the tools are not as they were written")
    return Listing(
        tools=LazyTools(tools, count=header["count"], digest=header["digest"]),
        things=tuple(map(_definition, header.get("things", ()))),
        instructions=header.get("instructions", ""),
        diagnostics=tuple(
            Diagnostic(stage="catalog", code=code, detail=detail)
            for code, detail in header["notes"]
        ),
        digests=header["digests"],
        suspicions={name: tuple(reasons) for name, reasons in header["suspicions"].items()},
    )


def digest_of(listing: Listing) -> str:
    """Return the digest of the tools of a listing, whether they were parsed yet or not.

    Returns:
        Empty where it would not say all: if the listing was never stored, or a tool of it is
        doubted.
    """
    tools = listing.tools
    if isinstance(tools, LazyTools):
        return tools.digest
    if not listing.digests or any(tool.doubts for tool in tools):
        return ""
    return digest(_tools_line(tools))


def _tools_line(tools: Iterable[ToolDefinition]) -> str:
    return json.dumps([_to_json(tool) for tool in tools])


def _to_json(tool: ToolDefinition) -> JsonObject:
    hints = tool.hints
    return {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "input": tool.input_schema,
        "output": tool.output_schema,
        "hints": [hints.read_only, hints.destructive, hints.idempotent],
    }


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
