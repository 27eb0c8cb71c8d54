from __future__ import annotations

from gateway.types import Entity, JsonObject, ToolDefinition
from tests import fakes


def entity(key: str, description: str, schema: JsonObject | None = None) -> Entity:
    """Make the entity with an id such as ``server/name``."""
    server, _, name = key.partition("/")
    definition = ToolDefinition(name=name, description=description, input_schema=schema or {})
    return fakes.entity(definition, server=server)
