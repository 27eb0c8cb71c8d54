"""A listing as text: one line about everything but its tools, and one line of its tools.

The tools are parsed when they are first looked at: a start whose index is saved looks at none.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import partial
from typing import Any

from gateway.runtime.text import digest
from gateway.sources.protocol import LateTools, readable
from gateway.types import Diagnostic, Hints, JsonObject, ToolDefinition
from gateway.types.listing import Listing
from gateway.sources.protocol import LateTools
from gateway.types.listing import Listing


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
        tools=LateTools(header["count"], header["digest"], partial(_definitions, tools)),
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
    if isinstance(tools, LateTools):
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


def _definitions(text: str) -> tuple[ToolDefinition, ...]:
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
