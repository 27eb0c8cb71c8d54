"""Resources and prompts of the catalog -> what an MCP client is shown of them, and back. Pure.

Every URI that goes out is rewritten to its address here, so that a client can read whatever it was
shown; every URI that comes in leads back to its server.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TypeVar

from mcp import types
from pydantic import BaseModel, ValidationError

from gateway.catalog.resource_uris import placed
from gateway.mcp.naming import addressed, moved
from gateway.types import Entity, JsonObject

M = TypeVar("M", bound=BaseModel)


def resource(entity: Entity) -> types.Resource:
    """Write *entity* as a resource of ours."""
    return _made(types.Resource, entity, {"uri": entity.exposed_name})


def template(entity: Entity) -> types.ResourceTemplate:
    """Write *entity* as a template of ours; its expressions stay as they are."""
    return _made(types.ResourceTemplate, entity, {"uriTemplate": entity.exposed_name})


def prompt(entity: Entity) -> types.Prompt:
    """Write *entity* as a prompt of ours."""
    schema = entity.definition.input_schema
    properties = schema.get("properties")
    told = properties if isinstance(properties, Mapping) else {}
    arguments = [
        {"name": name, "required": name in entity.required}
        | {key: each[key] for key in ("title", "description") if key in each}
        for name, each in told.items()
    ]
    return _made(
        types.Prompt, entity, {"name": entity.exposed_name, "arguments": arguments or None}
    )


def is_template(entity: Entity) -> bool:
    """Whether *entity* is a template of resources."""
    return entity.definition.details.get("template") is True


def _made(model: type[M], entity: Entity, own: JsonObject) -> M:
    definition = entity.definition
    told = {
        "name": definition.title or definition.name,
        "title": definition.title or None,
        "description": definition.description or None,
        **own,
    }
    details = {key: value for key, value in definition.details.items() if key != "template"}
    try:
        return model.model_validate({**details, **told})
    except ValidationError:
        # A server may have written anything into the parts that we only pass on.
        return model.model_validate(told)


def block(content: JsonObject, server: str) -> JsonObject:
    """Give a block of *server* with the URI that it names as an address here; the web's stay."""
    return addressed(content, partial(placed, "resource", server))


def contents(read: Sequence[JsonObject], owner: tuple[str, str], address: str) -> list[JsonObject]:
    """Give what was read of *owner*, a server and a URI, with addresses here.

    The contents that bear the URI itself get the *address* that was asked for.
    """
    server, uri = owner
    return [
        {**each, "uri": address}
        if each.get("uri") == uri
        else moved(each, partial(placed, "resource", server))
        for each in read
    ]
