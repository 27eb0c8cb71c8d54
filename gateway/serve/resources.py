"""Resources, prompts and completions of all servers, for an MCP client."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from mcp import types
from pydantic import BaseModel, ValidationError

from gateway.catalog.identity import from_gateway_uri
from gateway.mcp.content_blocks import is_malformed
from gateway.mcp.error_mapping import request_error
from gateway.search.resources import ResourceLibrary
from gateway.serve.client import Context
from gateway.serve.errors import raise_as_mcp_error
from gateway.serve.pending_calls import Params, PendingCalls
from gateway.serve.subscriptions import ListChanges
from gateway.serve.views import (
    ListPage,
    is_template,
    listable,
    page,
    prompt_view,
    readable_block,
    resource_view,
    rewrite_block,
    rewrite_contents,
    template_view,
)
from gateway.types import JsonObject, Kind

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)
_Paging = types.PaginatedRequestParams | None


class ResourceHandlers:
    """The handlers of resources and prompts of one server.

    Args:
        library: The resources and prompts.
        calls: Requests that wait for their clients.
        changes: Notes the lists that clients were sent.
    """

    def __init__(self, library: ResourceLibrary, calls: PendingCalls, changes: ListChanges) -> None:
        self._library = library
        self._calls = calls
        self._changes = changes

    async def list_resources(self, _context: Context, params: _Paging) -> types.ListResourcesResult:
        """Answer ``resources/list``."""
        shown = await self._page("resource", params, templates=False)
        resources = list(map(resource_view, shown.entities))
        return types.ListResourcesResult(resources=resources, next_cursor=shown.next_cursor)

    async def list_templates(
        self, _context: Context, params: _Paging
    ) -> types.ListResourceTemplatesResult:
        """Answer ``resources/templates/list``."""
        shown = await self._page("resource", params, templates=True)
        templates = list(map(template_view, shown.entities))
        return types.ListResourceTemplatesResult(
            resource_templates=templates, next_cursor=shown.next_cursor
        )

    async def list_prompts(self, _context: Context, params: _Paging) -> types.ListPromptsResult:
        """Answer ``prompts/list``."""
        shown = await self._page("prompt", params, templates=False)
        prompts = list(map(prompt_view, shown.entities))
        return types.ListPromptsResult(prompts=prompts, next_cursor=shown.next_cursor)

    async def read_resource(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult | types.InputRequiredResult:
        """Answer ``resources/read``, under the address that the client gave."""

        async def work() -> types.ReadResourceResult:
            owner = await self._library.owner("resource", params.uri)
            result = await self._library.ask("resources/read", owner, "uri")
            contents = _objects(result.get("contents"))
            if from_gateway_uri("resource", params.uri) is not None:
                contents = rewrite_contents(contents, owner, params.uri)
            hints = {key: result[key] for key in ("ttlMs", "cacheScope", "_meta") if key in result}
            answer = {"contents": contents, **hints}
            return _validate(types.ReadResourceResult, answer, owner[0], "resources/read")

        return await self._run(context, params, work, {"uri": params.uri})

    async def get_prompt(
        self, context: Context, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult | types.InputRequiredResult:
        """Answer ``prompts/get``."""

        async def work() -> types.GetPromptResult:
            owner = await self._library.owner("prompt", params.name)
            arguments = {"arguments": params.arguments} if params.arguments else {}
            result = await self._library.ask("prompts/get", owner, "name", arguments)
            messages = [_message(each, owner[0]) for each in _objects(result.get("messages"))]
            answer = {**result, "messages": messages}
            return _validate(types.GetPromptResult, answer, owner[0], "prompts/get")

        return await self._run(context, params, work, {"name": params.name})

    async def complete(
        self, context: Context, params: types.CompleteRequestParams
    ) -> types.CompleteResult:
        """Answer ``completion/complete``, with nothing if the server completes nothing."""
        ref = params.ref
        kind: Kind = "prompt" if isinstance(ref, types.PromptReference) else "resource"
        name = ref.name if isinstance(ref, types.PromptReference) else ref.uri
        request = params.model_dump(
            by_alias=True, mode="json", exclude_none=True, include={"argument", "context"}
        )
        with raise_as_mcp_error({"ref": name}, context):
            server, _ = await self._library.owner(kind, name)
            result = await self._library.complete(kind, name, request)
            return _validate(types.CompleteResult, result, server, "completion/complete")

    async def _page(self, kind: Kind, params: _Paging, *, templates: bool) -> ListPage:
        entities = listable(await self._library.entities(kind))
        self._changes.note_list(kind, entities)
        chosen = [entity for entity in entities if is_template(entity) is templates]
        return page(chosen, params.cursor if params is not None else None)

    async def _run(
        self,
        context: Context,
        params: Params,
        work: Callable[[], Awaitable[T]],
        subject: JsonObject,
    ) -> T | types.InputRequiredResult:
        with raise_as_mcp_error(subject, context):
            return await self._calls.run(context, params, work)


def _message(message: JsonObject, server: str) -> JsonObject:
    block = message.get("content")
    if not isinstance(block, dict) or is_malformed(block):
        # The SDK takes a block without a type for a text.
        return {**message, "content": None}
    return {**message, "content": readable_block(block, lambda each: rewrite_block(each, server))}


def _validate(model: type[M], answer: JsonObject, server: str, method: str) -> M:
    """Return *answer* in the form that MCP prescribes.

    Raises:
        UpstreamError: It has another form, which is the fault of *server*.
    """
    try:
        return model.model_validate(answer)
    except ValidationError as error:
        raise request_error(server, method, error, sent=True, status=0) from error


def _objects(value: object) -> list[JsonObject]:
    return [item for item in (value if isinstance(value, list) else ()) if isinstance(item, dict)]
