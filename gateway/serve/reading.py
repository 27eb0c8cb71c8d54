"""Resources, prompts and completions of all servers, for an MCP client."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from mcp import types
from pydantic import TypeAdapter, ValidationError

from gateway.catalog.resource_uris import origin
from gateway.mcp.content_blocks import malformed
from gateway.mcp.error_mapping import failed
from gateway.search.library import Library
from gateway.serve.answered import readable
from gateway.serve.client import Context
from gateway.serve.exchange import Exchanges, Params
from gateway.serve.faulty import faulty
from gateway.serve.notifications import Notifications
from gateway.serve.placed import block, contents, is_template, prompt, resource, template
from gateway.serve.shown import Page, listable, page
from gateway.types import Entity, JsonObject, Kind

T = TypeVar("T")
_Paging = types.PaginatedRequestParams | None
_READ: TypeAdapter[types.ReadResourceResult] = TypeAdapter(types.ReadResourceResult)
_PROMPT: TypeAdapter[types.GetPromptResult] = TypeAdapter(types.GetPromptResult)
_COMPLETION: TypeAdapter[types.CompleteResult] = TypeAdapter(types.CompleteResult)


class Reading:
    """The handlers of one server.

    Args:
        library: The resources and prompts.
        exchanges: Requests that wait for their clients.
        notifications: Hears what clients were shown.
    """

    def __init__(
        self, library: Library, exchanges: Exchanges, notifications: Notifications
    ) -> None:
        self._library = library
        self._exchanges = exchanges
        self._notifications = notifications

    async def resources(self, _context: Context, params: _Paging) -> types.ListResourcesResult:
        """Answer ``resources/list``."""
        shown = await self._page("resource", params, templates=False)
        found = [resource(each) for each in shown.entities]
        return types.ListResourcesResult(resources=found, next_cursor=shown.next_cursor)

    async def templates(
        self, _context: Context, params: _Paging
    ) -> types.ListResourceTemplatesResult:
        """Answer ``resources/templates/list``."""
        shown = await self._page("resource", params, templates=True)
        found = [template(each) for each in shown.entities]
        return types.ListResourceTemplatesResult(
            resource_templates=found, next_cursor=shown.next_cursor
        )

    async def prompts(self, _context: Context, params: _Paging) -> types.ListPromptsResult:
        """Answer ``prompts/list``."""
        shown = await self._page("prompt", params)
        found = [prompt(each) for each in shown.entities]
        return types.ListPromptsResult(prompts=found, next_cursor=shown.next_cursor)

    async def read(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult | types.InputRequiredResult:
        """Answer ``resources/read``, under the address that was asked for."""

        async def work() -> types.ReadResourceResult:
            owner = await self._library.owner("resource", params.uri)
            result = await self._library.ask("resources/read", owner, "uri")
            found = _objects(result.get("contents"))
            ours = origin("resource", params.uri) is not None
            told = contents(found, owner, params.uri) if ours else list(found)
            return _known(_READ, {"contents": told, **_hints(result)}, owner[0], "resources/read")

        return await self._asked(context, params, work, {"uri": params.uri})

    async def get_prompt(
        self, context: Context, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult | types.InputRequiredResult:
        """Answer ``prompts/get``."""

        async def work() -> types.GetPromptResult:
            owner = await self._library.owner("prompt", params.name)
            arguments = {"arguments": params.arguments} if params.arguments else {}
            result = await self._library.ask("prompts/get", owner, "name", arguments)
            messages = [_message(each, owner[0]) for each in _objects(result.get("messages"))]
            return _known(_PROMPT, {**result, "messages": messages}, owner[0], "prompts/get")

        return await self._asked(context, params, work, {"name": params.name})

    async def complete(
        self, context: Context, params: types.CompleteRequestParams
    ) -> types.CompleteResult:
        """Answer ``completion/complete``, with nothing if the server completes nothing."""
        ref = params.ref
        kind: Kind = "prompt" if isinstance(ref, types.PromptReference) else "resource"
        name = ref.name if isinstance(ref, types.PromptReference) else ref.uri
        given = params.model_dump(by_alias=True, mode="json", exclude_none=True)
        kept: JsonObject = {key: given[key] for key in given if key in {"argument", "context"}}

        async def work() -> types.CompleteResult:
            server, _ = await self._library.owner(kind, name)
            result = await self._library.complete(kind, name, kept)
            return _known(_COMPLETION, result, server, "completion/complete")

        return await faulty(work(), {"ref": name}, context)

    async def _page(self, kind: Kind, params: _Paging, *, templates: bool | None = None) -> Page:
        every = listable(await self._library.entities(kind))
        self._notifications.seen(kind, every)
        chosen: Sequence[Entity] = [
            each for each in every if templates is None or is_template(each) is templates
        ]
        return page(chosen, params.cursor if params is not None else None)

    async def _asked(
        self, context: Context, params: Params, work: Callable[[], Awaitable[T]], about: JsonObject
    ) -> T | types.InputRequiredResult:
        return await faulty(self._exchanges.run(context, params, work), about, context)


def _message(message: JsonObject, server: str) -> JsonObject:
    held = message.get("content")
    if not isinstance(held, dict) or malformed(held):
        # The SDK takes a block without a kind for a text.
        return {**message, "content": None}
    return {**message, "content": readable(held, lambda each: block(each, server))}


def _known(form: TypeAdapter[T], answer: JsonObject, server: str, method: str) -> T:
    """Give *answer* in the form that MCP prescribes.

    Raises:
        UpstreamError: It has another one, which is the fault of *server*, not of who asks.
    """
    try:
        return form.validate_python(answer)
    except ValidationError as error:
        raise failed(server, method, error, sent=True, status=0) from error


def _hints(result: JsonObject) -> JsonObject:
    return {key: result[key] for key in ("ttlMs", "cacheScope", "_meta") if key in result}


def _objects(value: object) -> tuple[JsonObject, ...]:
    return tuple(
        each for each in (value if isinstance(value, list) else ()) if isinstance(each, dict)
    )
