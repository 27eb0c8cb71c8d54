"""What describes a server, without the tools that some of its callers may not find. Pure."""

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
    """Take the tools that *visible* denies to any caller out of what describes their servers.

    Args:
        entities: By id.
        visible: What callers may see.
        before: The entities of the build before; what stays the same stays the same object.
    """
    if not visible.hiding:
        return
    for key in [key for key, each in entities.items() if each.kind in SERVER_KINDS]:
        left, previous = _without_denied(entities[key], entities, visible), before.get(key)
        entities[key] = left if previous is None or previous != left else previous


def _without_denied(entity: Entity, entities: Mapping[str, Entity], visible: Visibility) -> Entity:
    """Return a server without the tools that *visible* denies to any caller."""
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
    """Return a server without the *hidden* ones of its *tools*."""
    details: Any = entity.definition.details
    listed = zip(details["tools"], details["tool_descriptions"], strict=True)
    left = [
        ToolDefinition(name=name, description=text) for name, text in listed if name not in hidden
    ]
    shown = [tool for tool in tools if as_text(tool.get("name")) not in hidden]
    metadata = {**entity.metadata, TOOLS: shown} if TOOLS in entity.metadata else entity.metadata
    definition = replace(entity.definition, details={**details, **tool_details(left)})
    digest = entry_digest(entity.server, definition, metadata)
    return replace(entity, definition=definition, metadata=metadata, digest=digest)
