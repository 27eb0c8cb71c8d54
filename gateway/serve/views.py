"""Convert entities and results of the gateway to what an MCP client reads. Pure.

* A tool keeps the schema and the hints of its server; its description stays a claim of that server.
* Every URI that goes out is rewritten to its address here, so that a client can read it.
* Results of calls are JSON, not models of the SDK, which checks them by the version of the protocol
  that the client speaks.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from mcp import types
from pydantic import BaseModel, ValidationError

from gateway.catalog.identity import to_gateway_uri
from gateway.discovery.call_handler import ToolAnswer
from gateway.discovery.meta_tools import FunctionTool, MetaNames
from gateway.discovery.proxies import description_of
from gateway.mcp.content_blocks import is_well_formed
from gateway.mcp.naming import rewrite_block_uri, rewrite_uri
from gateway.types import Entity, JsonObject, SearchResult

M = TypeVar("M", bound=BaseModel)
PAGE_SIZE = 100
"""Entities on one page of a list."""
RewriteBlock = Callable[[JsonObject], JsonObject]
"""Rewrites the URIs of a block of content to addresses here."""
CallResult = dict[str, Any]
"""A result of ``tools/call`` as JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListPage:
    """A part of a list, by exposed name."""

    entities: tuple[Entity, ...]
    next_cursor: str | None = None
    """None on the last page."""


def listable(entities: Iterable[Entity]) -> tuple[Entity, ...]:
    """Return those of *entities* that a list may hold: none that looks like an attack on a model.

    A client gives the texts of a list to its model. An entity that is in no list can still be
    called, read or filled in by its name.
    """
    return tuple(entity for entity in entities if not entity.suspicious)


def page(entities: Iterable[Entity], cursor: str | None, *, size: int = PAGE_SIZE) -> ListPage:
    """Return the entities that follow *cursor*.

    Args:
        entities: In any order.
        cursor: The last name of the page before, so that a change of the catalog between two pages
            neither repeats nor skips an entity that stayed. None is the first page.
        size: Entities on a page.
    """
    ordered = sorted(entities, key=lambda entity: entity.exposed_name)
    names = [entity.exposed_name for entity in ordered]
    start = 0 if cursor is None else bisect_right(names, cursor)
    chosen = tuple(ordered[start : start + size])
    has_more = len(ordered) > start + size
    return ListPage(entities=chosen, next_cursor=chosen[-1].exposed_name if has_more else None)


def meta_tool_views(names: MetaNames, tools: Iterable[FunctionTool]) -> tuple[types.Tool, ...]:
    """Return the meta-tools as tools of MCP; all but the call tool are read-only."""
    return tuple(_meta_tool(names, tool["function"]) for tool in tools)


def _meta_tool(names: MetaNames, function: Any) -> types.Tool:
    is_call = function["name"] == names.call
    return types.Tool(
        name=function["name"],
        description=function["description"],
        input_schema=function["parameters"],
        annotations=types.ToolAnnotations(
            read_only_hint=not is_call, idempotent_hint=not is_call, open_world_hint=is_call
        ),
    )


def tool_view(entity: Entity) -> types.Tool:
    """Return *entity* as a tool under its exposed name."""
    definition, hints = entity.definition, entity.hints
    output = definition.output_schema
    return types.Tool(
        name=entity.exposed_name,
        title=definition.title or None,
        description=description_of(entity),
        input_schema={"type": "object", **definition.input_schema},
        # Only an object can be carried by every version of the protocol.
        output_schema=dict(output) if output and output.get("type") == "object" else None,
        annotations=types.ToolAnnotations(
            read_only_hint=hints.read_only,
            destructive_hint=hints.destructive,
            idempotent_hint=hints.idempotent,
        ),
    )


def resource_view(entity: Entity) -> types.Resource:
    """Return *entity* as a resource at its address here."""
    return _to_model(types.Resource, entity, {"uri": entity.exposed_name})


def template_view(entity: Entity) -> types.ResourceTemplate:
    """Return *entity* as a template at its address here; its expressions stay as they are."""
    return _to_model(types.ResourceTemplate, entity, {"uriTemplate": entity.exposed_name})


def prompt_view(entity: Entity) -> types.Prompt:
    """Return *entity* as a prompt under its exposed name."""
    properties = entity.definition.input_schema.get("properties")
    arguments = [
        {"name": name, "required": name in entity.required}
        | {key: schema[key] for key in ("title", "description") if key in schema}
        for name, schema in (properties.items() if isinstance(properties, Mapping) else ())
    ]
    return _to_model(
        types.Prompt, entity, {"name": entity.exposed_name, "arguments": arguments or None}
    )


def is_template(entity: Entity) -> bool:
    """Return whether *entity* is a template of resources."""
    return entity.definition.details.get("template") is True


def _to_model(model: type[M], entity: Entity, own: JsonObject) -> M:
    definition = entity.definition
    fields = {
        "name": definition.title or definition.name,
        "title": definition.title or None,
        "description": definition.description or None,
        **own,
    }
    details = {key: value for key, value in definition.details.items() if key != "template"}
    try:
        return model.model_validate({**details, **fields})
    except ValidationError:
        # The details are the server's, and may have any form.
        return model.model_validate(fields)


def rewrite_block(block: JsonObject, server: str) -> JsonObject:
    """Return a block of *server* with the URI that it names as an address here; web URIs stay."""
    return rewrite_block_uri(block, partial(to_gateway_uri, "resource", server))


def rewrite_contents(
    contents: Sequence[JsonObject], owner: tuple[str, str], address: str
) -> list[JsonObject]:
    """Return the contents of a resource with addresses here.

    Args:
        contents: As its server gave them.
        owner: The server and the URI of the resource.
        address: The address of the resource here, for contents that bear its URI.
    """
    server, uri = owner
    return [
        {**content, "uri": address}
        if content.get("uri") == uri
        else rewrite_uri(content, partial(to_gateway_uri, "resource", server))
        for content in contents
    ]


def readable_block(block: JsonObject, rewrite: RewriteBlock) -> dict[str, object]:
    """Return a block that every client can read; a block of an unknown type becomes its JSON."""
    if not is_well_formed(block):
        return {"type": "text", "text": json.dumps(block, ensure_ascii=False, default=str)}
    return dict(rewrite(block))


def call_result(answer: ToolAnswer, rewrite: RewriteBlock) -> CallResult:
    """Return the result of a call: a tool's blocks with their annotations, or a search.

    A search is a text for the model and an object for programs.
    """
    result: CallResult = {"isError": answer.failed, "resultType": "complete"}
    if answer.result is None:
        result["content"] = [{"type": "text", "text": answer.text}]
        if answer.search is not None:
            result["structuredContent"] = search_view(answer.search)
        return result
    result["content"] = [
        readable_block(block.data, rewrite)
        if block.data
        else {"type": block.type or "text", "text": block.text}
        for block in answer.result.content
    ]
    if answer.result.structured is not None:
        result["structuredContent"] = answer.result.structured
    return result


def search_view(result: SearchResult) -> dict[str, object]:
    """Return a search result for programs: names, ids and confidences, in the order shown."""
    return {
        "mode": result.mode,
        "tools": list(_match_rows(result)),
        "diagnostics": [note.code for note in result.diagnostics],
    }


def _match_rows(result: SearchResult) -> Iterator[dict[str, object]]:
    lists = {
        "match": result.matches,
        "prerequisite": result.prerequisites,
        "related": result.related,
        "next_step": result.next_steps,
    }
    for kind, matches in lists.items():
        for match in matches:
            yield {
                "kind": kind,
                "name": match.name,
                "id": match.id,
                "server": match.server,
                "confidence": round(match.confidence, 4),
            }
