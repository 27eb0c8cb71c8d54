from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any

from gateway.catalog.entries import TOOLS, entry_digest
from gateway.catalog.identity import SERVER_KINDS, entity_id
from gateway.catalog.kinds import tool_details
from gateway.catalog.visibility import Visibility
from gateway.runtime.json_schema import as_objects, as_text
from gateway.sources.entries import described_server
from gateway.types import Entity, JsonObject, ToolDefinition


def hide_denied(
    entities: MutableMapping[str, Entity], visible: Visibility, before: Mapping[str, Entity]
) -> None:
    """Remove tools that *visible* may deny from the descriptions of their servers.

    *entities* is changed in place. Servers that are unchanged since *before* remain the same
    objects.
    """
    if not visible.hiding:
        return
    for key in [key for key, entity in entities.items() if entity.kind in SERVER_KINDS]:
        server, previous = _without_denied(entities[key], entities, visible), before.get(key)
        entities[key] = server if previous is None or previous != server else previous


def _without_denied(entity: Entity, entities: Mapping[str, Entity], visible: Visibility) -> Entity:
    is_listed = entity.id == entity_id(entity.kind, entity.server, entity.server)
    server = entity.server if is_listed else described_server(entity.name)
    names = entity.definition.details.get("tools")
    hidden = {
        name
        for name in (names if isinstance(names, list) else ())
        if (tool := entities.get(f"{server}/{name}")) and visible.may_deny(tool)
    }
    tools = as_objects(entity.metadata.get(TOOLS))
    return without_tools(entity, tools, hidden) if hidden else entity


def without_tools(entity: Entity, tools: Sequence[JsonObject], hidden: AbstractSet[str]) -> Entity:
    """Return the server *entity* with a description that omits the tools named in *hidden*.

    *tools* are the tools in its metadata.
    """
    details: Any = entity.definition.details
    listed = zip(details["tools"], details["tool_descriptions"], strict=True)
    visible = [
        ToolDefinition(name=name, description=text) for name, text in listed if name not in hidden
    ]
    visible_tools = [tool for tool in tools if as_text(tool.get("name")) not in hidden]
    metadata = (
        {**entity.metadata, TOOLS: visible_tools} if TOOLS in entity.metadata else entity.metadata
    )
    definition = replace(entity.definition, details={**details, **tool_details(visible)})
    digest = entry_digest(entity.server, definition, metadata)
    return replace(entity, definition=definition, metadata=metadata, digest=digest)
