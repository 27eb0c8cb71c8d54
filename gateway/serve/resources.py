"""MCP handlers of resources, prompts and completions of all servers.

URIs in responses are rewritten to addresses of this server.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TypeVar

from mcp import types
from pydantic import BaseModel, ValidationError

from gateway.call.resources import ResourceLibrary
from gateway.catalog.identity import from_gateway_uri, to_gateway_uri
from gateway.mcp.error_mapping import request_error
from gateway.mcp.validation import is_malformed, is_well_formed
from gateway.runtime.json_schema import as_object, as_objects
from gateway.runtime.naming import rewrite_block_uri, rewrite_uri
from gateway.serve.auth import caller_of
from gateway.serve.client import Context, PendingCalls, raise_as_mcp_error
from gateway.serve.subscriptions import Subscriptions, listable
from gateway.types import Entity, JsonObject, Kind

M = TypeVar("M", bound=BaseModel)
_Paging = types.PaginatedRequestParams | None
PAGE_SIZE = 100
"""Number of entities on one page of a list."""


def page(entities: Iterable[Entity], params: _Paging) -> tuple[Sequence[Entity], str | None]:
    """Return one page of *entities*, ordered by exposed name, and the cursor of the next page.

    A cursor is the last name of its page, so changes of the catalog neither repeat nor skip
    unchanged entities.
    """
    cursor = params.cursor if params is not None else None
    ordered = sorted(entities, key=lambda entity: entity.exposed_name)
    names = [entity.exposed_name for entity in ordered]
    start = 0 if cursor is None else bisect_right(names, cursor)
    end = start + PAGE_SIZE
    return ordered[start:end], names[end - 1] if len(names) > end else None


class ResourceHandlers:
    """Handlers of the resources and prompts of one server.

    *changes* records the lists that clients were sent.
    """

    def __init__(
        self, library: ResourceLibrary, calls: PendingCalls, changes: Subscriptions
    ) -> None:
        self._library = library
        self._calls = calls
        self._changes = changes

    async def list_resources(self, context: Context, params: _Paging) -> types.ListResourcesResult:
        """Answer ``resources/list``."""
        entities, cursor = await self._page("resource", context, params, templates=False)
        resources = [
            _to_model(types.Resource, entity, uri=entity.exposed_name) for entity in entities
        ]
        return types.ListResourcesResult(resources=resources, next_cursor=cursor)

    async def list_templates(
        self, context: Context, params: _Paging
    ) -> types.ListResourceTemplatesResult:
        """Answer ``resources/templates/list``."""
        entities, cursor = await self._page("resource", context, params, templates=True)
        templates = [
            _to_model(types.ResourceTemplate, entity, uriTemplate=entity.exposed_name)
            for entity in entities
        ]
        return types.ListResourceTemplatesResult(resource_templates=templates, next_cursor=cursor)

    async def list_prompts(self, context: Context, params: _Paging) -> types.ListPromptsResult:
        """Answer ``prompts/list``."""
        entities, cursor = await self._page("prompt", context, params, templates=False)
        return types.ListPromptsResult(prompts=list(map(_prompt, entities)), next_cursor=cursor)

    async def read_resource(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult | types.InputRequiredResult:
        """Answer ``resources/read``. The contents have the address that the client requested."""
        caller = caller_of(context)

        async def work() -> types.ReadResourceResult:
            owner = await self._library.owner("resource", params.uri, caller=caller)
            result = await self._library.read_contents(owner, caller=caller)
            contents: Sequence[JsonObject] = as_objects(result.get("contents"))
            if from_gateway_uri("resource", params.uri) is not None:
                contents = rewrite_contents(contents, owner, params.uri)
            answer = {**result, "contents": contents}
            return _validate(types.ReadResourceResult, answer, owner[0], "resources/read")

        with raise_as_mcp_error({"uri": params.uri}, context):
            return await self._calls.run(context, params, work)

    async def get_prompt(
        self, context: Context, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult | types.InputRequiredResult:
        """Answer ``prompts/get``."""
        caller = caller_of(context)

        async def work() -> types.GetPromptResult:
            owner = await self._library.owner("prompt", params.name, caller=caller)
            arguments = params.arguments or None
            result = await self._library.fill_prompt(owner, arguments, caller=caller)
            messages = [
                _message(message, owner[0]) for message in as_objects(result.get("messages"))
            ]
            answer = {**result, "messages": messages}
            return _validate(types.GetPromptResult, answer, owner[0], "prompts/get")

        with raise_as_mcp_error({"name": params.name}, context):
            return await self._calls.run(context, params, work)

    async def complete(
        self, context: Context, params: types.CompleteRequestParams
    ) -> types.CompleteResult:
        """Answer ``completion/complete``. Empty if the server does not complete."""
        ref = params.ref
        kind: Kind = "prompt" if isinstance(ref, types.PromptReference) else "resource"
        name = ref.name if isinstance(ref, types.PromptReference) else ref.uri
        request = params.model_dump(
            by_alias=True, mode="json", exclude_none=True, include={"argument", "context"}
        )
        caller = caller_of(context)
        with raise_as_mcp_error({"ref": name}, context):
            server, _ = await self._library.owner(kind, name, caller=caller)
            result = await self._library.complete(kind, name, request, caller=caller)
            return _validate(types.CompleteResult, result, server, "completion/complete")

    async def _page(
        self, kind: Kind, context: Context, params: _Paging, *, templates: bool
    ) -> tuple[Sequence[Entity], str | None]:
        caller = caller_of(context)
        entities = listable(await self._library.entities(kind, caller=caller))
        self._changes.note_list(kind, entities, caller)
        chosen = (
            entity
            for entity in entities
            if (entity.definition.details.get("template") is True) is templates
        )
        return page(chosen, params)


def _prompt(entity: Entity) -> types.Prompt:
    properties = as_object(entity.definition.input_schema.get("properties"))
    arguments = [
        {"name": name, "required": name in entity.required}
        | {key: schema[key] for key in ("title", "description") if key in schema}
        for name, schema in properties.items()
    ]
    return _to_model(types.Prompt, entity, name=entity.exposed_name, arguments=arguments or None)


def _to_model(model: type[M], entity: Entity, **own: object) -> M:
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
        # The upstream server's details may be invalid.
        return model.model_validate(fields)


def rewrite_contents(
    contents: Sequence[JsonObject], owner: tuple[str, str], address: str
) -> list[JsonObject]:
    """Return the contents of a resource, with URIs rewritten to addresses of this server.

    *owner* is the upstream server and the resource's URI there, which becomes *address*.
    """
    server, uri = owner
    return [
        {**content, "uri": address}
        if content.get("uri") == uri
        else rewrite_uri(content, partial(to_gateway_uri, "resource", server))
        for content in contents
    ]


def readable_block(block: JsonObject, server: str) -> dict[str, object]:
    """Convert a content block of the upstream *server* to a block that every client can read.

    The URI becomes an address of this server, unless it is a web URI or *server* is empty. A block
    of an unknown type becomes its JSON text.
    """
    if not is_well_formed(block):
        return {"type": "text", "text": json.dumps(block, ensure_ascii=False, default=str)}
    if not server:
        return dict(block)
    return dict(rewrite_block_uri(block, partial(to_gateway_uri, "resource", server)))


def _message(message: JsonObject, server: str) -> JsonObject:
    block = message.get("content")
    if not isinstance(block, dict) or is_malformed(block):
        # The SDK would read a block without a type as text.
        return {**message, "content": None}
    return {**message, "content": readable_block(block, server)}


def _validate(model: type[M], answer: JsonObject, server: str, method: str) -> M:
    """Convert the answer of *server* to a request *method* into *model*.

    Raises:
        UpstreamError: If the answer is invalid.
    """
    try:
        return model.model_validate(answer)
    except ValidationError as error:
        raise request_error(server, method, error) from error
