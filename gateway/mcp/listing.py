"""Reading the lists of an open connection, page by page, within the limits.

Resources and prompts are read beside the tools, and nothing of them may cost the tools.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TypeAlias

from mcp import Client, MCPError, types

from gateway.errors import UpstreamError
from gateway.mcp.error_mapping import FAULTS, failed, late
from gateway.mcp.lenient_transport import RAW
from gateway.mcp.listing_validation import Sieve
from gateway.mcp.resource_listing import OFFERS, PROMPTS, RESOURCES, TEMPLATES, Gathered, Offer
from gateway.options import UpstreamOptions
from gateway.types.listing import Listing

_Page: TypeAlias = (
    types.ListResourcesResult | types.ListResourceTemplatesResult | types.ListPromptsResult
)


async def tools_of(client: Client, server: str, options: UpstreamOptions) -> Listing:
    """Read the tools of *client*'s server. Raises what the SDK raises."""
    sieve = Sieve(server, options)
    cursor: str | None = None
    seen: set[str] = set()
    for _ in range(options.max_pages):
        page = await client.list_tools(cursor=cursor)
        _take(sieve, page)
        cursor = page.next_cursor
        if cursor is None or sieve.full:
            return sieve.listing()
        if cursor in seen:
            sieve.cut("the same page again and again")
            return sieve.listing()
        seen.add(cursor)
    sieve.cut(f"more than {options.max_pages} pages")
    return sieve.listing()


def _take(sieve: Sieve, page: types.ListToolsResult) -> None:
    raw = (page.meta or {}).get(RAW)
    if raw is None:
        tools = [
            tool.model_dump(by_alias=True, mode="json", exclude_none=True) for tool in page.tools
        ]
        sieve.take(tools)
        return
    sieve.take(raw["tools"], passed=frozenset(tool.name for tool in page.tools))


async def things_of(client: Client, server: str, options: UpstreamOptions) -> Gathered:
    """Read what *client*'s server offers besides tools, within the limits of *options*.

    A list that cannot be read leaves a diagnostic; what was read before stays.
    """
    gathered = Gathered(server, options)
    limit_s = options.list_timeout_s
    for offer in OFFERS:
        if gathered.full or not _offered(client, offer):
            continue
        try:
            async with asyncio.timeout(limit_s):
                await _walk(client, offer, gathered, options.max_pages)
        except TimeoutError:
            told = late(server, f"answer {offer.method}", limit_s, "list_timeout_s")
            _lost(gathered, told)
            break
        except FAULTS as error:
            if not (isinstance(error, MCPError) and error.code == types.METHOD_NOT_FOUND):
                _lost(gathered, failed(server, offer.method, error, sent=True, status=0))
    return gathered


def _offered(client: Client, offer: Offer) -> bool:
    can = client.server_capabilities
    return (can.prompts if offer == PROMPTS else can.resources) is not None


def _lost(gathered: Gathered, error: UpstreamError) -> None:
    gathered.note("listing_incomplete", error.detail)


async def _walk(client: Client, offer: Offer, gathered: Gathered, max_pages: int) -> None:
    cursor: str | None = None
    seen: set[str] = set()
    for _ in range(max_pages):
        page = await _page(client, offer, cursor)
        gathered.take(offer, _raw(page, offer))
        cursor = page.next_cursor
        if cursor is None or gathered.full:
            return
        if cursor in seen:
            gathered.cut(f"the same page of {offer.method} again and again")
            return
        seen.add(cursor)
    gathered.cut(f"more than {max_pages} pages of {offer.method}")


async def _page(client: Client, offer: Offer, cursor: str | None) -> _Page:
    if offer == RESOURCES:
        return await client.list_resources(cursor=cursor)
    if offer == TEMPLATES:
        return await client.list_resource_templates(cursor=cursor)
    return await client.list_prompts(cursor=cursor)


def _raw(page: _Page, offer: Offer) -> list[object]:
    raw = (page.meta or {}).get(RAW)
    given = (
        raw
        if isinstance(raw, Mapping)
        else page.model_dump(by_alias=True, mode="json", exclude_none=True)
    )
    found = given.get(offer.key)
    return list(found) if isinstance(found, list) else []
