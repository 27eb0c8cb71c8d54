"""Listings over an open connection: reading all pages within limits, and watching for changes.

* Resources and prompts are read after the tools, so that their failures do not affect the tools.
* Since protocol version 2026-07-28, changes arrive in a stream; before, in the session.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from mcp import ClientSession, MCPError, types
from mcp.client.subscriptions import SubscriptionLost, listen

from gateway.errors import InvalidRequestError
from gateway.mcp.collector import DefinitionCollector
from gateway.mcp.definitions import PROMPTS, RESOURCES, SKILLS, TEMPLATES, TOOLS, ListMethod
from gateway.mcp.error_mapping import SDK_ERRORS, request_error, timeout_error
from gateway.mcp.skills import EXTENSION
from gateway.mcp.validation import keep_raw, send_request
from gateway.options import UpstreamOptions
from gateway.types.listing import Listing, WatchCallbacks

_STREAMED_SINCE = "2026-07-28"
Watchers = list[tuple[str, WatchCallbacks]]
"""Pairs (URI of a watched resource, callbacks) of a connection without streams of changes."""


async def read_listing(session: ClientSession, server: str, options: UpstreamOptions) -> Listing:
    """Read all tools, resources and prompts of *server*, within the limits of *options*.

    An unusable definition causes a diagnostic. Raises the errors of the SDK.
    """
    collector = DefinitionCollector(server, options, session.instructions or "")
    capabilities = session.server_capabilities or types.ServerCapabilities()
    methods = [RESOURCES, TEMPLATES] if capabilities.resources is not None else []
    methods += [PROMPTS] if capabilities.prompts is not None else []
    methods += [SKILLS] if EXTENSION in (capabilities.extensions or {}) else []
    # Ask for tools even if the server declares no capability.
    if capabilities.tools is not None or not methods:
        await _read_pages(session, TOOLS, collector)
    collector.begin("resources and prompts", options.max_resources)
    for method in methods:
        if collector.is_full:
            break
        try:
            await _read_pages(session, method, collector)
        except TimeoutError:
            error = timeout_error(server, f"answer {method.method}", options, "list_timeout_s")
            collector.add_note("listing_incomplete", error.detail)
            break
        except SDK_ERRORS as error:
            if not (isinstance(error, MCPError) and error.code == types.METHOD_NOT_FOUND):
                failure = request_error(server, method.method, error)
                collector.add_note("listing_incomplete", failure.detail)
    return collector.listing()


async def _read_pages(
    session: ClientSession, method: ListMethod, collector: DefinitionCollector
) -> None:
    options = collector.options
    cursors: list[str | None] = [None]
    async with asyncio.timeout(options.list_timeout_s):
        while len(cursors) <= options.max_pages:
            items, cursor, accepted = await _fetch_page(session, method, cursors[-1])
            # Scanning megabytes of text takes seconds, during which other sessions continue.
            try:
                await asyncio.to_thread(collector.add_page, method, items, accepted)
            except asyncio.CancelledError:
                collector.is_full = True  # also stops the thread
                raise
            if cursor is None or collector.is_full:
                return
            if cursor in cursors:
                collector.truncate(f"the same page of {method.method} again and again")
                return
            cursors.append(cursor)
    collector.truncate(f"more than {options.max_pages} pages of {method.method}")


async def _fetch_page(
    session: ClientSession, method: ListMethod, cursor: str | None
) -> tuple[object, str | None, frozenset[str] | None]:
    """Return the definitions of one page, the cursor of the next page (None after the last), and
    the names of tools that the SDK accepts (None for other lists).
    """
    if method is not TOOLS:
        page = await send_request(session, method.method, {"cursor": cursor} if cursor else {})
        return page.get(method.key), page.get("nextCursor"), None
    # The SDK must read the listed tools, because their x-mcp-header marks define headers of calls.
    params = types.PaginatedRequestParams(cursor=cursor)
    with keep_raw() as raw:
        tools = await session.list_tools(params=params)
    page = raw or tools.model_dump(by_alias=True, mode="json", exclude_none=True)
    return page[TOOLS.key], tools.next_cursor, frozenset(tool.name for tool in tools.tools)


def notify(watchers: Watchers, uri: str) -> None:
    """Call the watchers of *uri*, or of a resource that contains *uri*."""
    for watched, callbacks in tuple(watchers):
        if uri == watched or uri.startswith(f"{watched.rstrip('/')}/"):
            callbacks.on_change()


async def stream_changes(
    session: ClientSession, uri: str, callbacks: WatchCallbacks, limit_s: float
) -> None:
    """Report changes of the resource *uri* from a stream until the stream ends.

    The watching must begin within *limit_s*. Also raises the errors of the SDK.

    Raises:
        InvalidRequestError: If the server does not report changes of this resource.
        TimeoutError: If the watching did not begin in time.
    """
    async with (
        asyncio.timeout(limit_s) as limit,
        listen(session, resource_subscriptions=[uri]) as events,
    ):
        if uri not in (events.honored.resource_subscriptions or ()):
            raise InvalidRequestError(f"the server does not report changes of {uri!r}")
        limit.reschedule(None)
        callbacks.on_start()
        # The end of a stream is not a failure of the server.
        with suppress(SubscriptionLost):
            async for _ in events:
                callbacks.on_change()


def is_streamed(session: ClientSession) -> bool:
    """Return whether the server reports changes in streams."""
    return (session.protocol_version or "") >= _STREAMED_SINCE


@asynccontextmanager
async def watch_lists(session: ClientSession, on_change: Callable[[], None]) -> AsyncIterator[None]:
    """Call *on_change* in the block whenever the server reports in a stream that a list changed."""
    capabilities = session.server_capabilities or types.ServerCapabilities()
    tools, prompts, resources = (
        capability is not None and bool(capability.list_changed)
        for capability in (capabilities.tools, capabilities.prompts, capabilities.resources)
    )
    if not is_streamed(session) or not (tools or prompts or resources):
        yield
        return

    async def follow() -> None:
        # Without the stream, changes are found when the listing's lifetime ends.
        with suppress(*SDK_ERRORS):
            async with listen(
                session,
                tools_list_changed=tools,
                prompts_list_changed=prompts,
                resources_list_changed=resources,
            ) as events:
                async for _ in events:
                    on_change()

    task = asyncio.create_task(follow(), name="tools/list_changed")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})
