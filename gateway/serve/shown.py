"""The tools of the catalog -> what an MCP client is shown of them. Pure.

* Two meta-tools stand for the catalog, or all of it is listed, page by page.
* A tool keeps the schema and the hints of its server; what it says of itself stays a hint.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mcp import types

from gateway.discovery.meta_tools import FunctionTool, MetaNames
from gateway.discovery.proxies import described
from gateway.types import Entity, JsonObject

PAGE = 100
"""Things on one page where all are listed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A part of the catalog, by exposed name."""

    entities: tuple[Entity, ...]
    next_cursor: str | None = None
    """None on the last page."""


def meta(names: MetaNames, tools: Iterable[FunctionTool]) -> tuple[types.Tool, ...]:
    """Write the meta-tools for an MCP client; all but the one that calls only read."""
    return tuple(_meta(names, tool["function"]) for tool in tools)


def _meta(names: MetaNames, function: object) -> types.Tool:
    told = function if isinstance(function, Mapping) else {}
    calls = told["name"] == names.call
    return types.Tool(
        name=told["name"],
        description=told["description"],
        input_schema=told["parameters"],
        annotations=types.ToolAnnotations(
            read_only_hint=not calls, idempotent_hint=not calls, open_world_hint=calls
        ),
    )


def listable(entities: Iterable[Entity]) -> tuple[Entity, ...]:
    """Give those of *entities* that a list may hold: none whose definition looks like an attack.

    A client gives the texts of a list to its model. What is in no list can still be called, read
    or filled in by its name.
    """
    return tuple(each for each in entities if not each.suspicious)


def page(entities: Sequence[Entity], cursor: str | None, *, size: int = PAGE) -> Page:
    """Give the entities that follow *cursor*.

    Args:
        entities: Those that may be seen, in any order.
        cursor: What the page before gave: the last name on it, so that a change of the catalog
            between two pages neither repeats nor skips one that stayed. None begins.
        size: Entities on a page.
    """
    ordered = sorted(entities, key=lambda entity: entity.exposed_name)
    first = 0 if cursor is None else bisect_right([each.exposed_name for each in ordered], cursor)
    chosen = tuple(ordered[first : first + size])
    rest = len(ordered) > first + size
    return Page(
        entities=chosen,
        next_cursor=chosen[-1].exposed_name if rest else None,
    )


def tool(entity: Entity) -> types.Tool:
    """Write *entity* as a tool of ours, under its exposed name."""
    definition = entity.definition
    hints = definition.hints
    return types.Tool(
        name=entity.exposed_name,
        title=definition.title or None,
        description=described(entity),
        input_schema={"type": "object", **definition.input_schema},
        output_schema=_output(definition.output_schema),
        annotations=types.ToolAnnotations(
            read_only_hint=hints.read_only,
            destructive_hint=hints.destructive,
            idempotent_hint=hints.idempotent,
        ),
    )


def _output(schema: JsonObject | None) -> dict[str, object] | None:
    """The schema of the result, where every version of the protocol can carry it."""
    return dict(schema) if schema is not None and schema.get("type") == "object" else None
